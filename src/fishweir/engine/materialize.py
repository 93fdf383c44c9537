"""Materializes published results: turns the results of a feed or query into documents or tuples of a stream.

In: committed micro-batches. Out: entries in the logs of two kinds of streams: those created by `register feed VIRTUAL
... as N`, with each item transformed by the stylesheet, if any (RoSeS 3.1), and those created by `publish N` for
queries that read N. Results of a select list are tuples with typed columns, and so are whole tuples that are passed on.
A query that selects whole documents or tuples keeps their ids; a projection, join or construction creates new ones. The
entries of one micro-batch are one segment whose cursor names it, so each is appended exactly once, even after a crash.
The job processes them like any other arrivals, in its next micro-batch.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishweir.algebra.alternatives import parts, steps_of
from fishweir.algebra.construct import element_text
from fishweir.algebra.documents import tuple_to_document
from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import DERIVED, ElementOutput, Shape, Source, StreamDefinition, VariableOutput, sources_of
from fishweir.algebra.output_streams import keeps_items
from fishweir.algebra.returns import ReturnOutput
from fishweir.catalog.catalog import Catalog
from fishweir.delivery.stylesheet_pool import applying
from fishweir.delivery.stylesheets import BadItem, Stylesheet
from fishweir.engine.absences import Absences, DocumentKey, first_documents, second_sources
from fishweir.errors import QueryError
from fishweir.intake import StreamLog, log_batch
from fishweir.intake.schema import column_name
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.event_time import Published
from fishweir.pipeline.home import Home, open_log, read_json, write_json
from fishweir.pipeline.result import Result
from fishweir.pipeline.results import ResultReader
from fishweir.pipeline.source_documents import SourceDocument, read_document

Transform = Callable[[str], bytes]
CURSOR, UNTIL = "micro_batch", "until"


@dataclass
class Target:
    """A stream to fill from the results of some query numbers, starting at a catalog version."""

    log: StreamLog
    transform: Transform
    numbers: frozenset[int]
    since: int
    position: int
    keeps_ids: bool = False
    absences: Absences | None = None
    """The waiting documents of `NOT FOLLOWED BY`, which passes them on."""


class Materializer:
    def __init__(
        self,
        home: Home,
        catalog: Catalog,
        table: ResultsTable,
        reader: ResultReader,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.home, self.catalog, self.table, self.reader, self.clock = home, catalog, table, reader, clock
        self.targets: dict[int, Target] = {}
        self.reached: Callable[[Source, Commit], float] = lambda source, commit: -math.inf
        """The time before which no more documents of a source are expected, as known to the job."""
        self.version = -1
        self._done = home.delivery / "materialized.json"
        """The progress of each stream, so that micro-batches without items for it are not read again."""

    def pending(self) -> int:
        """Appends the committed results that are not materialized yet, and returns the number of entries."""
        self._refresh()
        count = sum(self._publish(commit) for commit in self._commits())
        return count + sum(self._pass_on(target) for target in self.targets.values() if target.absences)

    def waiting(self) -> bool:
        self._refresh()
        return bool(self._commits())

    def published(self) -> dict[int, Published]:
        """The streams of published results with their progress and inputs. Called by the job in its own thread."""
        streams, targets = self.catalog.streams(), self.targets
        found = {}
        for id, stream in streams.values():
            if stream.virtual is None:
                continue
            query = self.catalog.query(stream.virtual)
            read = set() if query is None else set(query.shape.sources)
            if id in targets and (absences := targets[id].absences):
                read |= set(absences.sources)
            inputs = tuple(other for other, one in streams.values() if read.intersection(sources_of(one)))
            found[id] = Published(self._settled(targets[id]) if id in targets else -1, inputs)
        return found

    def _settled(self, target: Target) -> int:
        return self.table.settled(target.numbers, target.position).batch

    def _commits(self) -> list[Commit]:
        if not self.targets:
            return []
        return self.table.commits(after=min(target.position for target in self.targets.values()))

    def _refresh(self) -> None:
        """Updates the targets: feeds may have been registered, replaced or dropped."""
        version = self.catalog.version()
        if version == self.version:
            return
        self.version = version
        added, done = self.catalog.stream_versions(), read_json(self._done, {}, rebuilt="reading the results again")
        before, self.targets = self.targets, {}
        for id, stream in self.catalog.streams().values():
            if stream.virtual is None:
                continue
            query = self.catalog.query(stream.virtual)
            numbers = frozenset(query.numbers if query else ())
            own = query.shape if query and stream.virtual == stream.name else None
            if id in before:
                self.targets[id] = before[id]
                self._follow(before[id], numbers, own)
                continue
            self.home.add_stream(id, stream)
            log = open_log(self.home.streams, id)
            appended = log.newest(CURSOR)
            position = max(-1 if appended is None else appended, done.get(str(id), -1))
            absences = self._absences(own, log)
            if absences is not None:
                position = done.get(str(id), -1)
            self.targets[id] = Target(log, transform_of(stream), numbers, added[id], position, absences=absences)
            self._follow(self.targets[id], numbers, own)

    def _absences(self, own: Shape | Selection | None, log: StreamLog) -> Absences | None:
        if not isinstance(own, Shape) or own.unless is None:
            return None
        matches = self.catalog.query(own.unless.query)
        assert matches is not None, "it is dropped with the query that needs it"
        decided = (-1, -math.inf) if (until := log.newest(UNTIL)) is None else (log.newest(CURSOR), until)
        return Absences(own.unless, second_sources(matches.shape), frozenset(matches.numbers), decided)

    def _follow(self, target: Target, numbers: frozenset[int], own: Shape | Selection | None) -> None:
        """Updates a target after its query may have changed."""
        target.numbers = numbers
        if own is not None:
            target.keeps_ids = keeps_items(own)
        if isinstance(own, Shape):
            target.transform = str.encode if gives_elements(own) else wrapped

    def _publish(self, commit: Commit) -> int:
        due = {id: target for id, target in self.targets.items() if target.position < commit.batch}
        reading = [target for target in due.values() if target.since <= commit.version and commit.matches]
        if commit.completes >= 0:
            reading = []  # where results are completed later, published ones lack no patterns
        for target in reading:
            if target.absences:
                self._wait(target, target.absences, commit)
        reading = [target for target in reading if not target.absences]
        wanted = frozenset().union(*(target.numbers for target in reading))
        found: dict[int, list[Result]] = defaultdict(list)
        if wanted:
            with self.reader.spent.counting(commit.batch, commit.documents, published=True):
                for number, result in self.reader.read(self.table, commit, np.array(sorted(wanted), dtype=np.int64)):
                    found[number].append(result)
        count = 0
        for target in reading:
            results = [result for number in sorted(target.numbers) for result in found.get(number, ())]
            if results:
                append(self.home, target, results, commit.batch, self.clock())
                count += len(results)
        for target in due.values():
            target.position = commit.batch
        write_json(self._done, {str(id): _done(target) for id, target in self.targets.items()})
        return count

    def _wait(self, target: Target, absences: Absences, commit: Commit) -> None:
        found, matched = (list(self._first_documents(commit, some)) for some in (target.numbers, absences.matches))
        absences.add(commit.batch, found, (place for place, _ in matched))

    def _first_documents(self, commit: Commit, queries: frozenset[int]) -> Iterator[tuple[DocumentKey, float]]:
        """The documents of the first side in the results of some queries, with the times of the results."""
        wanted = np.array(sorted(queries), np.int64)
        if not self.reader.may_have(self.table, commit, wanted):
            return iter(())
        return first_documents(self.table.rows(commit), self.reader.expansion(self.table, commit), wanted)

    def _pass_on(self, target: Target) -> int:
        """Appends the documents whose window ended without a match, dated by its end."""
        absences = target.absences
        if not absences or not absences.ends or target.position < 0:
            return 0
        commit = self.table.settled(target.numbers, target.position)
        reached = min(self.reached(source, commit) for source in absences.sources)
        if self.table.newest().batch != target.position:
            return 0  # the job is ahead: there may be unread matches
        due = absences.due(reached)
        if due:
            entries = [(open_log(self.home.streams, stream).entry(number), stream) for _, (stream, number) in due]
            stream = target.log.stream
            columns: dict[str, Sequence[Any]] = {
                "id": [entry.id for entry, _ in entries],
                "timestamp": [end for end, _ in due],
                "origin": [read_document(self.home, *place).origin for _, place in due],
                "body": [entry.body for entry, _ in entries],
                "context": [entry.context for entry, _ in entries],
            }
            for name, _ in stream.columns:
                columns[column_name(name)] = [(entry.values or {})[name] for entry, _ in entries]
            cursor = {CURSOR: target.position, UNTIL: reached}
            target.log.append(log_batch(stream, len(due), self.clock(), columns), cursor)
            absences.decide(target.position, reached)
        return len(due)


def _done(target: Target) -> int:
    """The micro-batch after which a restart continues reading, so that waiting documents are found again."""
    oldest = target.absences.oldest() if target.absences else None
    return target.position if oldest is None else min(target.position, oldest - 1)


def append(home: Home, target: Target, results: Sequence[Result], batch: int, now: float) -> None:
    """Appends results as one segment."""
    stream = target.log.stream
    columns = _tuples(home, stream, results) if stream.is_tuples else _documents(home, target, results)
    columns["timestamp"] = [result.timestamp for result in results]
    if stream.name.startswith(DERIVED):
        columns["since"] = [result.since for result in results]
    if target.keeps_ids:
        columns["id"] = [result.documents[0] for result in results]
        columns["origin"] = [result.origin for result in results]
    target.log.append(log_batch(stream, len(results), now, columns), {CURSOR: batch})


def _tuples(home: Home, stream: StreamDefinition, results: Sequence[Result]) -> dict[str, Sequence[Any]]:
    """The columns of select lists, or of the tuples themselves if another kind of query passes them on."""
    rows = [r.output if isinstance(r.output, Mapping) else _item(home, r).values or {} for r in results]
    return {column_name(name): [row.get(name) for row in rows] for name, _ in stream.columns}


def _documents(home: Home, target: Target, results: Sequence[Result]) -> dict[str, Sequence[Any]]:
    """The documents. An item on which the stylesheet fails keeps its position, with the reason."""
    bodies: list[bytes] = []
    problems: list[str | None] = []
    for result in results:
        if isinstance(result.output, Mapping):
            bodies.append(_selected(home, target, result, result.output))
            problems.append(None)
            continue
        try:
            bodies.append(target.transform(result.output))
            problems.append(None)
        except BadItem as error:
            bodies.append(result.output.encode())
            problems.append(f"{', '.join(result.documents)}: {error}")
    return {"body": bodies, "problem": problems}


def _selected(home: Home, target: Target, result: Result, columns: Mapping[str, Any]) -> bytes:
    """The result of `*` over documents: the document itself, or for a join, a flat document of the existing columns."""
    whole = target.keeps_ids
    root = _item(home, result).nodes[0] if whole else tuple_to_document(target.log.stream.name, columns)
    return element_text(root).encode()


def _item(home: Home, result: Result) -> SourceDocument:
    assert result.place is not None, "only a selection passes items on"
    return read_document(home, *result.place)


def gives_elements(shape: Shape) -> bool:
    """Whether each output is a single element, and so a document as it is."""
    if len(shape.output) != 1:
        return False
    shown = shape.output[0]
    if isinstance(shown, ReturnOutput):
        return len(shown.parts) == 1 and isinstance(shown.parts[0], ElementOutput)
    if not isinstance(shown, VariableOutput):
        return isinstance(shown, ElementOutput)
    always = all(shown.name in steps_of(part) for part in parts(shape))
    return always and not shown.content and not steps_of(shape)[shown.name][1].is_attribute


def wrapped(text: str) -> bytes:
    return f"<result>{text}</result>".encode()


def transform_of(stream: StreamDefinition) -> Transform:
    """The transformation of a stream. If the stylesheet is now missing or broken, every item is set aside for that
    reason.
    """
    if stream.stylesheet is None:
        return str.encode
    try:
        Stylesheet(stream.stylesheet)
        return applying(stream.stylesheet)
    except QueryError as error:
        reason = error.reason

        def fail(_: str) -> bytes:
            raise BadItem(reason)

        return fail
