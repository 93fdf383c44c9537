"""The join stage of a plan: what to keep of documents, for how long, and for which joins.

In: the join tables of the plan in force. Out: the run of a batch, and which documents may still meet others. Plain
joins are decided by edge sets (edges, pairs), the others by rows (row_joins, probing); joins of three and more streams
keep rows here too and are joined by `many`. What documents meet is found in meeting.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.nodes import Source
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.edges import EdgeSets
from fishweir.evaluate.join.many.tables import ManyTable
from fishweir.evaluate.join.many.views import many_rows
from fishweir.evaluate.join.ranks import newest_times
from fishweir.evaluate.join.rows.row_joins import RowJoin, row_joins
from fishweir.evaluate.join.state import (
    Hashes,
    Needed,
    Run,
    Versions,
    build_run,
    concatenated_rows,
    merge_runs,
    no_versions,
)
from fishweir.evaluate.join.tables import JoinTable, Variable
from fishweir.evaluate.witnesses.path_tables import Path, PathTable, hash_texts


class Joins:
    """The join tables of one segment, with what they remember of the edge sets met."""

    def __init__(self, tables: Sequence[JoinTable | ManyTable]) -> None:
        self.tables = tuple(tables)
        of_two = [table for table in tables if isinstance(table, JoinTable)]
        self.sets = EdgeSets([table for table in of_two if table.is_plain])
        self.others = [table for table in of_two if not table.is_plain]
        self.many = [table for table in tables if isinstance(table, ManyTable)]
        self.by_rows = row_joins(self.others)
        self._alone: dict[int, RowJoin] = {}

    def alone(self, plain: int) -> RowJoin:
        """A plain table as a join by rows, for pairs that equal values do not decide."""
        if plain not in self._alone:
            (self._alone[plain],) = row_joins([self.sets.tables[plain]])
        return self._alone[plain]

    @cached_property
    def _windows(self) -> dict[bool, tuple[Ints, NDArray[np.float64]]]:
        """By whether they count rows, each query's number and its window, longest first."""
        found = {}
        for rows in (False, True):
            parts = [
                (table.numbers, reach)
                for table in self.tables
                for is_rows, reach in zip(table.template.counts_rows, table.reaches, strict=True)
                if is_rows == rows
            ]
            numbers = np.concatenate([np.empty(0, np.int64), *(numbers for numbers, _ in parts)])
            reaches = np.concatenate([np.empty(0), *(reach for _, reach in parts)])
            order = np.argsort(-reaches, kind="stable")
            found[rows] = numbers[order], reaches[order]
        return found

    def longest(self, rows: bool, dead: Collection[int] = ()) -> float:
        """The longest window of a living query in seconds, or in rows; -1 where there is none."""
        numbers, reaches = self._windows[rows]
        return next((float(reaches[i]) for i in range(len(numbers)) if int(numbers[i]) not in dead), -1.0)

    @cached_property
    def sources(self) -> frozenset[Source]:
        return frozenset(source for table in self.tables for source in table.sources)


class JoinStage:
    """The joins of a plan: those of its segments, so that one more query among a million is a segment of its own."""

    def __init__(self, parts: Sequence[Joins]) -> None:
        self.parts = tuple(parts)
        self.by_rows = [join for part in parts for join in part.by_rows]
        self.many = [table for part in parts for table in part.many]

    @property
    def is_empty(self) -> bool:
        return not any(part.tables for part in self.parts)

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
            for variable, compared in part.sets.variables.items():
                found[variable] = found.get(variable, False) or compared
        return found

    def variables(self, sources: Sequence[Source]) -> dict[Variable, bool]:
        return {variable: compared for variable, compared in self.kept.items() if variable.source in sources}

    def reads(self, sources: Sequence[Source]) -> bool:
        return any(source in part.sources for source in sources for part in self.parts)

    @cached_property
    def row_sides(self) -> list[tuple[RowJoin, int]]:
        """The sides whose rows are kept. Joins of several segments may be of one class: its rows are the same for all
        of them and kept once, unless they list the queries whose constants they satisfy: then each keeps its own."""
        found: dict[tuple[int, int], tuple[RowJoin, int]] = {}
        for place, join in enumerate(self.by_rows):
            for side in (0, 1):
                found.setdefault((join.keys[side], place if join.listed[side] else -1), (join, side))
        return list(found.values())

    @cached_property
    def many_sides(self) -> list[tuple[ManyTable, int]]:
        """The same of joins of several streams, whose sides without constants are one class whatever they join."""
        found: dict[tuple[int, int], tuple[ManyTable, int]] = {}
        for place, table in enumerate(self.many):
            for side, template in enumerate(table.template.sides):
                found.setdefault((table.keys[side], place if template.conditions else -1), (table, side))
        return list(found.values())

    @cached_property
    def classes(self) -> Hashes:
        keys = [key for join in self.by_rows for key in join.keys] + [key for t in self.many for key in t.keys]
        return np.array(keys, dtype=np.uint64)

    def reach(self, dead: Collection[int] = ()) -> float:
        """The longest window in seconds: what is older than that, and no longer counted by rows, meets nothing."""
        return max((part.longest(False, dead) for part in self.parts), default=-1.0)

    @cached_property
    def rows(self) -> float:
        """The longest window in rows; 0 where none counts rows."""
        return max([0.0, *(part.longest(True) for part in self.parts)])

    def needed(self, now: float, reach: float, runs: Sequence[Run]) -> Needed:
        """Which documents may still meet others; of `runs`, all there are, the newest are kept for windows of rows."""
        counted = newest_times(runs, self.rows) if self.rows else {}

        def is_needed(run: Run) -> NDArray[np.bool_]:
            kept: NDArray[np.bool_] = now - run.times <= reach  # subtracted as in the join, to round alike
            for stream, least in counted.items():
                kept |= (run.streams == stream) & (run.times >= least)
            return kept

        return is_needed

    def merged(self, runs: Sequence[Run], needed: Needed | None = None) -> Run:
        """One run of several, without what no query needs any more."""
        compared = {variable.key: compared for variable, compared in self.kept.items()}
        return merge_runs(runs, compared, self.classes, needed or (lambda run: np.ones(len(run), np.bool_)))


def batch_run(
    stage: JoinStage,
    sources: Sequence[Source],
    stream: int,
    numbers: Sequence[int],
    times: Sequence[float],
    since: int | Sequence[int],
    witnesses: Mapping[Path, PathTable],
    arrivals: Sequence[float] | None = None,
    changes: Sequence[tuple[int, float, str]] = (),
    origins: Sequence[int] = (),
) -> Run:
    """The run of a batch of one stream's documents; `since` is the version of the catalog when they arrived, `changes`
    of a changing file are number, arrival and key, `origins` which documents those are that were passed on, or -1."""
    rows = [
        found
        for join, side in stage.row_sides
        if join.sources[side] in sources and (found := join.rows(side, witnesses)) is not None
    ]
    rows += [
        found
        for several, side in stage.many_sides
        if several.sources[side] in sources and (found := many_rows(several, side, witnesses)) is not None
    ]
    return build_run(
        np.full(len(numbers), stream, np.int64),
        np.array(numbers, dtype=np.int64),
        np.array(times, dtype=np.float64),
        since,
        stage.variables(sources),
        witnesses,
        concatenated_rows(rows, [0] * len(rows)),
        np.array(times if arrivals is None else arrivals, dtype=np.float64),
        _versions(stream, changes),
        origins,
    )


def _versions(stream: int, changes: Sequence[tuple[int, float, str]]) -> Versions:
    if not changes:
        return no_versions()
    numbers, arrivals, keys = zip(*changes, strict=True)
    hashes = hash_texts(pa.array(keys, pa.large_string()))
    return Versions(np.full(len(keys), stream, np.int64), np.array(numbers), np.array(arrivals, np.float64), hashes)
