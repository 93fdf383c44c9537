"""What is published becomes documents: the results of a feed or query, of a stream of their own.

In: committed micro-batches. Out: entries in the logs of the streams that `register feed VIRTUAL ... as N` made,
each item transformed by the stylesheet if there is one (RoSeS 3.1), and of those that `publish N` made for
queries that read N. A query that selects whole documents keeps their ids; what joins or constructs makes new ones.
The entries of one micro-batch are one segment whose cursor names it, so each is appended exactly once, also over a
crash. The job takes them up like any other arrivals, in its next micro-batch.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import DERIVED, ElementOutput, Shape, StreamDefinition, TextOutput, VariableOutput
from fishweir.catalog.catalog import Catalog
from fishweir.delivery.stylesheets import BadItem, Stylesheet
from fishweir.errors import QueryError
from fishweir.intake import StreamLog, log_batch
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.home import Home, open_log, read_json, write_json
from fishweir.pipeline.results import Result, ResultReader

Transform = Callable[[str], bytes]
CURSOR = "micro_batch"


@dataclass
class Target:
    """A stream to fill: from the results of some query numbers, from a version of the catalog on."""

    log: StreamLog
    transform: Transform
    numbers: frozenset[int]
    since: int
    position: int
    keeps_ids: bool = False


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
        self.version = -1
        self._done = home.delivery / "materialized.json"
        """How far each stream is, so that micro-batches without items for it are not read again."""

    def pending(self) -> int:
        """Appends what is committed and not yet materialised; how many entries."""
        self._refresh()
        return sum(self._publish(commit) for commit in self._commits())

    def waiting(self) -> bool:
        self._refresh()
        return bool(self._commits())

    def settled(self) -> int | None:
        """The micro-batch up to which all that is published is in its stream's log; None where no stream is one of
        published results. Asked by the job, from its own thread."""
        derived = [id for id, stream in self.catalog.streams().values() if stream.virtual is not None]
        targets = self.targets
        return min((targets[id].position if id in targets else -1 for id in derived), default=None)

    def _commits(self) -> list[Commit]:
        if not self.targets:
            return []
        return self.table.commits(after=min(target.position for target in self.targets.values()))

    def _refresh(self) -> None:
        """Feeds may have been registered, replaced or dropped since."""
        version = self.catalog.version()
        if version == self.version:
            return
        self.version = version
        added, done = self.catalog.stream_versions(), read_json(self._done, {})
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
            self.targets[id] = Target(log, transform_of(stream), numbers, added[id], position)
            self._follow(self.targets[id], numbers, own)

    def _follow(self, target: Target, numbers: frozenset[int], own: Shape | Selection | None) -> None:
        """The query may be another by now."""
        target.numbers = numbers
        if isinstance(own, Selection):
            target.keeps_ids = not own.joins
        if isinstance(own, Shape):
            target.keeps_ids = selects_documents(own)
            target.transform = str.encode if gives_elements(own) else wrapped

    def _publish(self, commit: Commit) -> int:
        due = {id: target for id, target in self.targets.items() if target.position < commit.batch}
        reading = [target for target in due.values() if target.since <= commit.version and commit.matches]
        wanted = frozenset().union(*(target.numbers for target in reading))
        found: dict[int, list[Result]] = defaultdict(list)
        if wanted:
            for number, result in self.reader.read(self.table, commit, np.array(sorted(wanted), dtype=np.int64)):
                found[number].append(result)
        count = 0
        for target in reading:
            results = [result for number in sorted(target.numbers) for result in found.get(number, ())]
            if results:
                append(target, results, commit.batch, self.clock())
                count += len(results)
        for target in due.values():
            target.position = commit.batch
        write_json(self._done, {str(id): target.position for id, target in self.targets.items()})
        return count


def append(target: Target, results: Sequence[Result], batch: int, now: float) -> None:
    """One segment; an item that the stylesheet fails on keeps its place, with the reason."""
    bodies: list[bytes] = []
    problems: list[str | None] = []
    for result in results:
        text = str(result.output)
        try:
            bodies.append(target.transform(text))
            problems.append(None)
        except BadItem as error:
            bodies.append(text.encode())
            problems.append(f"{', '.join(result.documents)}: {error}")
    times = [result.timestamp for result in results]
    columns: dict[str, Sequence[Any]] = {"body": bodies, "problem": problems, "timestamp": times}
    if target.log.stream.name.startswith(DERIVED):
        columns["since"] = [result.since for result in results]
    if target.keeps_ids:
        columns["id"] = [result.documents[0] for result in results]
        columns["origin"] = [result.origin for result in results]
    target.log.append(log_batch(target.log.stream, len(results), now, columns), {CURSOR: batch})


def selects_documents(shape: Shape) -> bool:
    """Whether each result is a whole document as it came: a filter."""
    if shape.window is not None or len(shape.output) != 1:
        return False
    (block,), (shown,) = shape.blocks, shape.output
    whole = block.pattern.step.axis in ("item", "child")
    return whole and isinstance(shown, VariableOutput) and not shown.content and shown.name in block.pattern.variables


def gives_elements(shape: Shape) -> bool:
    """Whether each output is one element, and so a document as it is."""
    if len(shape.output) != 1 or isinstance(shape.output[0], TextOutput):
        return False
    shown = shape.output[0]
    if isinstance(shown, ElementOutput):
        return True
    nodes = [node for block in shape.blocks for node in block.pattern.walk() if shown.name in node.variables]
    return not shown.content and not nodes[0].step.is_attribute


def wrapped(text: str) -> bytes:
    return f"<result>{text}</result>".encode()


def transform_of(stream: StreamDefinition) -> Transform:
    """Where the stylesheet is gone or broken by now, every item is set aside with that reason."""
    if stream.stylesheet is None:
        return str.encode
    try:
        return Stylesheet(stream.stylesheet).apply
    except QueryError as error:
        reason = error.reason

        def fail(_: str) -> bytes:
            raise BadItem(reason)

        return fail
