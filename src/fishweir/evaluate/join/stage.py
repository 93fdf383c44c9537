"""The join stage of a plan: what is kept of documents, for how long, and for which joins.

In: the join operators of the plan in force. Out: the run of a batch, what its documents join, and which documents may
still join others. All operators share one state (state.py): cells for joins that equal values decide, rows for others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.nodes import Source
from fishweir.evaluate.group import Batch, Kept, Stage, State
from fishweir.evaluate.join.operators import JoinOperator, RowSide
from fishweir.evaluate.join.pairing import RunContext
from fishweir.evaluate.join.ranks import newest_times
from fishweir.evaluate.join.state import Hashes, Run, Versions, build_run, concatenated_rows, merge_runs, no_versions
from fishweir.evaluate.join.variables import Variable
from fishweir.evaluate.results import ResultRows
from fishweir.evaluate.witnesses.path_tables import Path, hash_texts


class JoinStage(Stage):
    """The joins of a plan: the operators of its segments, so that one more query among a million is its own segment."""

    def __init__(self, parts: Sequence[JoinOperator]) -> None:
        self.parts = tuple(parts)

    def reads(self, sources: Sequence[Source]) -> bool:
        return any(source in part.sources for source in sources for part in self.parts)

    def keep(self, batch: Batch) -> Kept:
        return Kept(batch_run(self, batch))

    def probe(self, new: Sequence[Kept], old: Sequence[State], part: int, parts: int) -> Iterator[ResultRows]:
        fresh = [kept.state for kept in new if isinstance(kept.state, Run)]
        before = [state for state in old if isinstance(state, Run)]
        known = RunContext([*before, *fresh], self.rows > 0)
        for run in fresh:
            for operator in self.parts:
                yield from operator.find(run, before, part, parts, known)
            before = [*before, run]

    def counted(self, sources: Sequence[Source]) -> tuple[list[Path], set[Path]]:
        return [path for path, valued in self.paths(sources).items() if valued], set()

    def needed(self, states: Sequence[State], clock: float, dropped: Collection[int]) -> NeededDocuments:
        runs = [state for state in states if isinstance(state, Run)]
        now = min(clock, max((run.newest for run in runs), default=0.0))
        return self.needed_at(now, self.reach(dropped), runs)

    def paths(self, sources: Sequence[Source]) -> dict[Path, bool]:
        """What the documents of some sources are walked for, and whether the values are read."""
        found: dict[Path, bool] = {}
        for table in (table for part in self.parts for table in part.tables):
            for path, valued in table.paths(sources).items():
                found[path] = found.get(path, False) or valued
        return found

    @cached_property
    def kept(self) -> dict[Variable, bool]:
        """All variables of plain joins, each with whether its values are compared."""
        found: dict[Variable, bool] = {}
        for part in self.parts:
            for variable, compared in part.variables.items():
                found[variable] = found.get(variable, False) or compared
        return found

    def variables(self, sources: Sequence[Source]) -> dict[Variable, bool]:
        return {variable: compared for variable, compared in self.kept.items() if variable.source in sources}

    @cached_property
    def row_sides(self) -> list[RowSide]:
        """The sides whose rows are kept. Joins of several segments may be of one class: its rows are the same for all
        of them and kept once, unless they list the queries whose constants they satisfy: then each keeps its own."""
        found: dict[tuple[int, int], RowSide] = {}
        for place, side in enumerate(side for part in self.parts for side in part.row_sides):
            found.setdefault((side.key, place if side.lists_queries else -1), side)
        return list(found.values())

    @cached_property
    def classes(self) -> Hashes:
        return np.array([side.key for side in self.row_sides], dtype=np.uint64)

    def reach(self, dead: Collection[int] = ()) -> float:
        """The longest window in seconds: what is older than that, and no longer counted by rows, meets nothing."""
        return max((part.longest(False, dead) for part in self.parts), default=-1.0)

    @cached_property
    def rows(self) -> float:
        """The longest window in rows; 0 where none counts rows."""
        return max([0.0, *(part.longest(True) for part in self.parts)])

    def needed_at(self, now: float, reach: float, runs: Sequence[Run]) -> NeededDocuments:
        """Which documents may still join others; of `runs`, all there are, the newest are kept for windows of rows."""
        return NeededDocuments(now, reach, newest_times(runs, self.rows) if self.rows else {})

    def merged(self, runs: Sequence[Any], needed: Any = None) -> Run:
        """One run of several, without what no query needs any more."""
        compared = {variable.key: compared for variable, compared in self.kept.items()}
        return merge_runs(runs, compared, self.classes, needed or (lambda run: np.ones(len(run), np.bool_)))


@dataclass(frozen=True)
class NeededDocuments:
    """Documents that are at most `reach` seconds before `now`, and those of each stream from a time on."""

    now: float
    reach: float
    counted: Mapping[int, float]

    def __call__(self, run: Run) -> NDArray[np.bool_]:
        kept: NDArray[np.bool_] = self.now - run.times <= self.reach  # subtracted as in the join, to round alike
        for stream, least in self.counted.items():
            kept |= (run.streams == stream) & (run.times >= least)
        return kept

    def some(self, state: State) -> bool:
        assert isinstance(state, Run)
        if len(state.versions):
            return True
        if not self.counted:
            return len(state) > 0 and self.now - state.newest <= self.reach
        return bool(self(state).any())


def batch_run(stage: JoinStage, batch: Batch) -> Run:
    """What a batch of one stream's documents leaves for later ones to join."""
    sides = (side for side in stage.row_sides if side.source in batch.sources)
    rows = [found for side in sides if (found := side.rows(batch.witnesses)) is not None]
    return build_run(
        np.full(len(batch), batch.stream, np.int64),
        batch.numbers,
        batch.times,
        batch.since,
        stage.variables(batch.sources),
        batch.witnesses,
        concatenated_rows(rows, [0] * len(rows)),
        batch.arrivals,
        _versions(batch.stream, batch.changes),
        batch.origins,
    )


def _versions(stream: int, changes: Sequence[tuple[int, float, str]]) -> Versions:
    if not changes:
        return no_versions()
    numbers, arrivals, keys = zip(*changes, strict=True)
    hashes = hash_texts(pa.array(keys, pa.large_string()))
    return Versions(np.full(len(keys), stream, np.int64), np.array(numbers), np.array(arrivals, np.float64), hashes)
