"""Materializes published results: turns the results of a feed or query into documents or tuples of a stream.

In: committed micro-batches. Out: entries in the logs of two kinds of streams: those created by `register feed VIRTUAL
... as N`, with each item transformed by the stylesheet, if any (RoSeS 3.1), and those created by `publish N` for
queries that read N. Results of a select list are tuples with typed columns, and so are whole tuples that are passed on.
A query that selects whole documents or tuples keeps their ids; a projection, join or construction creates new ones. The
entries of one micro-batch are one segment whose cursor names it, so each is appended exactly once, even after a crash.
The job processes them like any other arrivals, in its next micro-batch.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishweir.algebra.alternatives import parts, steps_of
from fishweir.algebra.construct import element_text
from fishweir.algebra.documents import tuple_to_document
from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import DERIVED, NO_OUTPUT, ElementOutput, Shape, StreamDefinition, VariableOutput
from fishweir.algebra.output_streams import keeps_items
from fishweir.algebra.returns import ReturnOutput
from fishweir.catalog.catalog import Catalog
from fishweir.delivery.stylesheet_pool import applying
from fishweir.delivery.stylesheets import BadItem, Stylesheet
from fishweir.engine.positions import Positions
from fishweir.engine.published_streams import Progress, PublishedStreams
from fishweir.errors import QueryError
from fishweir.intake import StreamLog, log_batch
from fishweir.intake.schema import column_name
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.event_time import Published
from fishweir.pipeline.home import Home, open_log
from fishweir.pipeline.result import Result
from fishweir.pipeline.results import ResultReader
from fishweir.pipeline.source_documents import SourceDocument, read_document

Transform = Callable[[str], bytes]
CURSOR = "micro_batch"


@dataclass
class Target:
    """A stream to fill from the results of some query numbers, starting at a catalog version."""

    id: int
    log: StreamLog
    transform: Transform
    numbers: frozenset[int]
    since: int
    positions: Positions
    keeps_ids: bool = False
    passes_on: bool = False
    """Whether the entries of its documents are appended as they are: its query constructs nothing."""

    @property
    def position(self) -> int:
        """The last micro-batch that was read for the stream."""
        return self.positions.of(self.id)

    def reads(self, commit: Commit) -> bool:
        return self.position < commit.batch and self.since <= commit.version


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
        self._streams: PublishedStreams | None = None
        self._version = -1
        self._targets_of: dict[int, list[int]] = {}
        """By query number, the streams that its results go to."""
        self._wanted = np.empty(0, np.int64)
        """The numbers of these queries."""
        self._positions = Positions(home.delivery / "materialized.json")
        """The progress of each stream, so that micro-batches without items for it are not read again."""
        self._refresh()  # at once: the first micro-batch needs the watermarks of the streams

    def pending(self) -> int:
        """Appends the committed results that are not materialized yet, and returns the number of entries."""
        self._refresh()
        return sum(self._publish(commit) for commit in self._commits())

    def waiting(self) -> bool:
        self._refresh()
        return bool(self._commits())

    def reads(self, commit: Commit) -> bool:
        """Whether a commit may have results for a stream. Called by the job in its own thread."""
        return bool(self.targets) or self._version != commit.version

    def published(self, version: int) -> Mapping[int, Published]:
        """The streams of published results as of a version of the catalog or a later one, with their progress and
        inputs. Called by the job in its own thread."""
        targets = self.targets

        def settled(id: int) -> int:
            return self._settled(targets[id]).batch if id in targets else -1

        return Progress(self._streams_of(version), settled)

    def _streams_of(self, version: int) -> PublishedStreams:
        known = self._streams
        if known is None or known.version < version:
            known = self._streams = PublishedStreams(self.catalog, version)
        return known

    def _settled(self, target: Target) -> Commit:
        return self.table.settled(target.numbers, target.position, target.since)

    def _commits(self) -> list[Commit]:
        if not self.targets:
            return []
        return self.table.commits(after=self._positions.first())

    def _refresh(self) -> None:
        """Updates the targets: feeds may have been registered, replaced or dropped."""
        streams = self._streams_of(self.catalog.version())
        if streams.version == self._version:
            return
        added, done = self.catalog.stream_versions(), self._positions.saved()
        targets, positions = dict[int, Target](), dict[int, int]()
        for id, one in streams.by_id.items():
            numbers = frozenset(one.query.numbers if one.query else ())
            if id not in self.targets:
                self.home.add_stream(id, one.stream)
                log = open_log(self.home.streams, id)
                appended = log.newest(CURSOR)
                positions[id] = done(id) if appended is None else max(done(id), appended)
                targets[id] = Target(id, log, transform_of(one.stream), numbers, added[id], self._positions)
            else:
                targets[id] = self.targets[id]
            self._follow(targets[id], numbers, one.own)
        self._positions.update(targets, positions)  # first: the job reads the positions of targets
        self.targets, self._version = targets, streams.version
        self._targets_of = {}
        for id, target in targets.items():
            for number in target.numbers:
                self._targets_of.setdefault(number, []).append(id)
        self._wanted = np.array(sorted(self._targets_of), np.int64)

    def _follow(self, target: Target, numbers: frozenset[int], own: Shape | Selection | None) -> None:
        """Updates a target after its query may have changed."""
        target.numbers = numbers
        if own is not None:
            target.keeps_ids = keeps_items(own)
        if isinstance(own, Shape):
            target.transform = str.encode if outputs_elements(own) else wrapped
            target.passes_on = own.output == NO_OUTPUT

    def _publish(self, commit: Commit) -> int:
        """Appends the results of a micro-batch, looking only at the streams whose queries have any."""
        count = 0
        if commit.matches and commit.completes < 0:  # if results are completed later, published ones have all patterns
            fired = self.reader.fired(self.table, commit, self._wanted)
            ids = sorted({id for number in fired.tolist() for id in self._targets_of[number]})
            count = self._append([target for id in ids if (target := self.targets[id]).reads(commit)], commit)
        self._positions.advance(commit.batch)
        self._positions.save()
        return count

    def _append(self, targets: Sequence[Target], commit: Commit) -> int:
        if not targets:
            return 0
        numbers = np.array(sorted({number for target in targets for number in target.numbers}), np.int64)
        found: dict[int, list[Result]] = defaultdict(list)
        with self.reader.spent.counting(commit.batch, commit.documents, published=True):
            for number, result in self.reader.read(self.table, commit, numbers):
                found[number].append(result)
        count = 0
        for target in targets:
            results = [result for number in sorted(target.numbers) for result in found.get(number, ())]
            if results:
                append(self.home, target, results, commit.batch, self.clock())
                count += len(results)
        return count


def append(home: Home, target: Target, results: Sequence[Result], batch: int, now: float) -> None:
    """Appends results as one segment."""
    stream = target.log.stream
    if target.passes_on:
        columns = _entries(home, stream, results)
    else:
        columns = _tuples(home, stream, results) if stream.is_tuples else _documents(home, target, results)
    columns["timestamp"] = [result.timestamp for result in results]
    if stream.name.startswith(DERIVED):
        columns["since"] = [result.since for result in results]
    if target.keeps_ids:
        columns["id"] = [result.documents[0] for result in results]
        columns["origin"] = [result.origin for result in results]
    target.log.append(log_batch(stream, len(results), now, columns), {CURSOR: batch})


def _entries(home: Home, stream: StreamDefinition, results: Sequence[Result]) -> dict[str, Sequence[Any]]:
    """The entries that the results were found in."""
    places = [result.place for result in results]
    assert None not in places, "only a selection passes items on"
    entries = [open_log(home.streams, stream).entry(number) for stream, number in places]  # type: ignore[misc]
    columns: dict[str, Sequence[Any]] = {name: [getattr(one, name) for one in entries] for name in ("body", "context")}
    return columns | {column_name(name): [(one.values or {})[name] for one in entries] for name, _ in stream.columns}


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


def outputs_elements(shape: Shape) -> bool:
    """Whether each output is a single element and can be used as a document."""
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
