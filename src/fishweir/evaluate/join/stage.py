"""The join stage of a plan: the state kept of documents, its retention, and the joins that use it.

In: the join operators of the plan in force. Out: the run of a batch, the join partners of its documents, and the
documents that may still join others. All operators share one state (state.py): cells for joins that equal values
decide, rows for others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.nodes import Source
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import Batch, Stage, State
from fishweir.evaluate.join.hashes import Hashes
from fishweir.evaluate.join.merging import merge_runs
from fishweir.evaluate.join.operators import JoinOperator, ProbeOrder, RowSide, Waits
from fishweir.evaluate.join.pairing import RunContext
from fishweir.evaluate.join.ranks import arrival_blocks, oldest_of_newest
from fishweir.evaluate.join.state import Run, Versions, build_run, concatenated_rows, no_versions
from fishweir.evaluate.join.superseded import are_among, needed_versions
from fishweir.evaluate.join.variables import Variable
from fishweir.evaluate.outline import Outline
from fishweir.evaluate.results import ResultRows
from fishweir.evaluate.watermarks import Watermarks
from fishweir.evaluate.witnesses.path_tables import Path, hash_texts

ROUNDING = 1e-9
"""Tolerance for windows, which are differences of times: covers rounding errors."""


class JoinStage(Stage):
    """The joins of a plan: the operators of its segments. One more query among a million is a segment of its own."""

    def __init__(self, parts: Sequence[JoinOperator]) -> None:
        self.parts = tuple(parts)

    def only(self, queries: Sequence[int]) -> JoinStage | None:
        parts = [part for part in self.parts if any(np.isin(table.numbers, queries).any() for table in part.tables)]
        return JoinStage(parts) if parts else None

    def evaluates(self, queries: Sequence[int]) -> bool:
        numbers = [table.numbers for part in self.parts for table in part.tables]
        return bool(np.isin(queries, np.concatenate(numbers)).all()) if numbers else False

    def reads(self, sources: Sequence[Source]) -> bool:
        return any(source in part.sources for source in sources for part in self.parts)

    def keep(self, batch: Batch) -> Run | None:
        run = batch_run(self, batch, is_sorted=False)  # `merged` sorts the rows of all batches at once
        return run if len(run) or len(run.versions) else None

    def probe(self, new: Sequence[State], old: Sequence[State], part: int, parts: int) -> Iterator[ResultRows]:
        fresh, before = ([state for state in some if isinstance(state, Run)] for some in (new, old))
        for order in ProbeOrder:
            operators = [operator for operator in self.parts if operator.order is order]
            if operators:
                yield from self._probe(order, operators, fresh, before, part, parts)

    def _probe(
        self,
        order: ProbeOrder,
        operators: Sequence[JoinOperator],
        fresh: Sequence[Run],
        before: list[Run],
        part: int,
        parts: int,
    ) -> Iterator[ResultRows]:
        for block in self._blocks(order, fresh, before):
            known = RunContext([*before, *block], order is ProbeOrder.ARRIVAL_AND_TIME)
            for run in block:
                for operator in operators:
                    yield from operator.find(run, before, part, parts, known)
                before = [*before, run]

    def _blocks(self, order: ProbeOrder, fresh: Sequence[Run], before: Sequence[Run]) -> Iterator[list[Run]]:
        """The documents of a micro-batch in blocks, in arrival order if their order matters."""
        if order is ProbeOrder.ANY:
            yield list(fresh)
            return
        newest = max((run.newest for run in before), default=-np.inf)
        front = newest if order is ProbeOrder.ARRIVAL_AND_TIME else None
        for block in arrival_blocks([run.times for run in fresh], [run.arrivals for run in fresh], front):
            yield [self._some(run, chosen) for run, chosen in zip(fresh, block, strict=True) if chosen.any()]

    def _some(self, run: Run, chosen: NDArray[np.bool_]) -> Run:
        return run if chosen.all() else self.merged([run], Chosen(chosen))

    def counted(self, sources: Sequence[Source]) -> tuple[list[Path], set[Path]]:
        return [path for path, valued in self.paths(sources).items() if valued], set()

    @cached_property
    def takes_outlines(self) -> bool:  # type: ignore[override]
        """Unless rows of documents, or their number, decide until when they are kept."""
        return not self.listing and not any(wait.rows for part in self.parts for wait in part.waits(()))

    def needed(
        self, states: Sequence[State | Outline], watermarks: Watermarks, dropped: Collection[int] = ()
    ) -> NeededDocuments:
        waits = [wait for part in self.parts for wait in part.waits(dropped)]
        runs = [state for state in states if isinstance(state, Run)]
        streams = {stream for run in runs for stream in run.times_by_stream}
        streams |= {stream for state in states if isinstance(state, Outline) for stream in state.newest}
        used: dict[int, float] = {}
        oldest = {stream: _oldest_needed(stream, waits, watermarks, runs, used) for stream in streams}
        needed = NeededDocuments(oldest, used)
        if self.listing:
            waits = [wait for part in self.parts if part.keeps_all for wait in part.waits(dropped)]
            whole = {stream: _oldest_needed(stream, waits, watermarks, runs, {}) for stream in streams}
            needed = replace(needed, whole=whole, lists=NeededLists(self.listing, watermarks))
        if not any(len(run.versions) for run in runs):
            return needed
        there = [np.full(len(run), needed.count(run) > 0) for run in runs]  # a run is dropped only as a whole
        return replace(needed, entries=needed_versions(runs, there))

    def keeps_all(self, sources: Collection[Source]) -> bool:
        """Whether all documents of some sources are kept, or only those that have rows."""
        return any(part.keeps_all and not part.sources.isdisjoint(sources) for part in self.parts)

    @cached_property
    def listing(self) -> list[JoinOperator]:
        """The operators that keep documents by the lists of their rows."""
        return [part for part in self.parts if not part.keeps_all]

    def paths(self, sources: Sequence[Source]) -> dict[Path, bool]:
        """The paths to find in the documents of some sources, each with a flag: whether the values are read."""
        found: dict[Path, bool] = {}
        for table in (table for part in self.parts for table in part.tables):
            for path, valued in table.paths(sources).items():
                found[path] = found.get(path, False) or valued
        return found

    @cached_property
    def kept(self) -> dict[Variable, bool]:
        """All variables of plain joins, each with a flag: whether its values are compared."""
        found: dict[Variable, bool] = {}
        for part in self.parts:
            for variable, compared in part.variables.items():
                found[variable] = found.get(variable, False) or compared
        return found

    def variables(self, sources: Sequence[Source]) -> dict[Variable, bool]:
        return {variable: compared for variable, compared in self.kept.items() if variable.source in sources}

    @cached_property
    def row_sides(self) -> list[RowSide]:
        """The sides whose rows are kept. Joins of several segments may share a class. Its rows are the same for all of
        them and stored once, unless they list the queries whose constants they satisfy: then each join stores its
        own."""
        found: dict[tuple[int, tuple[Source, ...], int], RowSide] = {}
        for place, side in enumerate(side for part in self.parts for side in part.row_sides):
            found.setdefault((side.key, side.sources, place if side.lists_queries else -1), side)
        return list(found.values())

    @cached_property
    def classes(self) -> Hashes:
        return np.array([side.key for side in self.row_sides], dtype=np.uint64)

    @cached_property
    def is_by_arrival(self) -> bool:  # type: ignore[override]
        """Whether the content of some window depends on the arrival order."""
        return any(part.order is not ProbeOrder.ANY for part in self.parts)

    @cached_property
    def states_at_once(self) -> int:  # type: ignore[override]
        return min((part.runs_at_once for part in self.parts), default=1)

    def merged(self, runs: Sequence[Any], needed: Any = None) -> Run:
        """Merges several runs into one, without state that no query needs any more."""
        compared = {variable.key: compared for variable, compared in self.kept.items()}
        return merge_runs(runs, compared, self.classes, needed or Chosen())


@dataclass(frozen=True)
class NeededLists:
    """The needed entries in the lists of rows, for operators that keep documents by these lists."""

    operators: Sequence[JoinOperator]
    watermarks: Watermarks

    def own(self, run: Run) -> NDArray[np.bool_]:
        """Mask of the entries that belong to these operators."""
        classes = [side.key for operator in self.operators for side in operator.row_sides if side.lists_queries]
        rows = np.isin(run.rows.classes, np.array(classes, np.uint64))
        return np.repeat(rows, np.diff(run.rows.member_starts))

    def needed(self, runs: Sequence[Run]) -> list[NDArray[np.bool_]]:
        """For runs that are merged, masks of the entries that are needed or belong to other operators."""
        parts = zip(*(operator.listed(runs, self.watermarks) for operator in self.operators), strict=True)
        return [np.logical_or.reduce([~self.own(run), *some]) for run, some in zip(runs, parts, strict=True)]


@dataclass(frozen=True)
class NeededDocuments:
    """The documents of each stream from a given time: `oldest` for those that are kept by the lists of their rows,
    `whole` for all others."""

    oldest: Mapping[int, float]
    used: Mapping[int, float]
    whole: Mapping[int, float] | None = None
    lists: NeededLists | None = None
    entries: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """The entries of changing files that determine until when these documents are in force."""

    def listed(self, runs: Sequence[Run]) -> Sequence[NDArray[np.bool_] | None]:
        return [None] * len(runs) if self.lists is None else self.lists.needed(runs)

    def __call__(self, run: Run, listed: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        from_then_on = self.oldest if self.whole is None else self.whole
        if self.whole is None and self.count(run) == len(run):
            return np.ones(len(run), np.bool_)
        streams, place = np.unique(run.streams, return_inverse=True)
        oldest = np.array([from_then_on.get(stream, np.inf) for stream in streams.tolist()])
        needed = np.asarray(run.times >= oldest[place], np.bool_)
        if self.lists is not None and listed is not None:
            needed |= run.has_listed(listed & self.lists.own(run))
        return needed

    def versions(self, run: Run) -> NDArray[np.bool_]:
        return are_among(run.versions, self.entries)

    def share(self, state: State | Outline) -> float:
        if isinstance(state, Outline):
            return float(any(newest >= self.oldest.get(stream, np.inf) for stream, newest in state.newest.items()))
        assert isinstance(state, Run)
        kept = self.count(state) + (int(self.versions(state).sum()) if len(state.versions) else 0)
        return kept / max(1, len(state) + len(state.versions))

    def count(self, run: Run) -> int:
        """The number of a run's documents among them."""
        times = ((own, self.oldest.get(stream, np.inf)) for stream, own in run.times_by_stream.items())
        return sum(len(own) - (0 if own[0] >= oldest else int(own.searchsorted(oldest))) for own, oldest in times)


@dataclass(frozen=True)
class Chosen:
    """Some or all documents of a run, with all entries of changing files."""

    documents: NDArray[np.bool_] | None = None

    def listed(self, runs: Sequence[Run]) -> Sequence[None]:
        return [None] * len(runs)

    def __call__(self, run: Run, listed: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        return np.ones(len(run), np.bool_) if self.documents is None else self.documents

    def versions(self, run: Run) -> NDArray[np.bool_]:
        return np.ones(len(run.versions), np.bool_)


def _oldest_needed(
    stream: int, waits: Sequence[Waits], watermarks: Watermarks, runs: Sequence[Run], used: dict[int, float]
) -> float:
    """The time from which a stream's documents may still join others: the watermarks of the streams they wait for have
    not passed their windows, or not enough documents are newer. Adds these watermarks to `used`."""
    oldest = np.inf
    for wait in waits:
        if wait.source not in watermarks.sources.get(stream, ()):
            continue
        reached = watermarks.least(wait.other, stream)
        for other in watermarks.streams(wait.other):
            used[other] = max(reached, used.get(other, -np.inf))
        if wait.rows:
            oldest = min(oldest, oldest_of_newest(runs, stream, reached, wait.reach))
        elif reached < np.inf:
            oldest = min(oldest, reached - wait.reach - ROUNDING * abs(reached))
    return oldest


def batch_run(stage: JoinStage, batch: Batch, is_sorted: bool = True) -> Run:
    """The state that a batch of one stream's documents leaves for later ones to join."""
    sides = (side for side in stage.row_sides if side.reads(batch.sources))
    by_class = {(side.key, i if side.lists_queries else -1): side for i, side in enumerate(sides)}
    parts = [found for side in by_class.values() if (found := side.rows(batch)) is not None]
    rows, documents = concatenated_rows(parts, [0] * len(parts)), np.arange(len(batch))
    if not stage.keeps_all(batch.sources):
        documents, place = np.unique(rows.documents, return_inverse=True)
        rows = replace(rows, documents=place)
    return build_run(
        np.full(len(documents), batch.stream, np.int64),
        batch.numbers[documents],
        batch.times[documents],
        batch.since if isinstance(batch.since, int) else np.asarray(batch.since)[documents],
        stage.variables(batch.sources),
        batch.witnesses,
        rows.sorted() if is_sorted else rows,
        batch.arrivals[documents],
        _versions(batch.stream, batch.changes),
        np.asarray(batch.origins)[documents] if len(batch.origins) else (),
    )


def _versions(stream: int, changes: Sequence[tuple[int, float, str]]) -> Versions:
    if not changes:
        return no_versions()
    numbers, arrivals, keys = zip(*changes, strict=True)
    hashes = hash_texts(pa.array(keys, pa.large_string()))
    return Versions(np.full(len(keys), stream, np.int64), np.array(numbers), np.array(arrivals, np.float64), hashes)
