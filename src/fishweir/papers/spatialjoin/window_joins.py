"""SJ-Join and IBS-JS as strategies of the engine: `--strategy window-joins=sj-join`.

A strategy takes the joins of two streams of tuples by comparisons of numbers (`<`, `<=`, `>`, `>=`) with windows in
seconds and ranges of numbers on either side; the default strategies evaluate the rest. All queries over one pair of
streams are one join. A document is kept as a row for each column that some query reads, under a key that depends on
the stream and the column alone, so that queries come and go and rows serve those that stay. The default's rows are
kept beside them, so that a home may be opened with another strategy at any time. A process makes the windows of what is
retained once, and goes on with them batch by batch. Tasks share the queries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.codec import to_json
from fishweir.algebra.nodes import Source
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import Bundle, Placed, Strategy
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.operators import JoinsByRows, RowSide, from_values
from fishweir.evaluate.join.pairing import RunContext, only
from fishweir.evaluate.join.pairs import SetPairs
from fishweir.evaluate.join.rows.probing import Joined, join_rows
from fishweir.evaluate.join.rows.side_rows import as_rows
from fishweir.evaluate.join.state import Run, SideRows
from fishweir.evaluate.join.variables import key_of
from fishweir.evaluate.statistics import Statistics
from fishweir.evaluate.witnesses.path_tables import FirstValues, Path, PathTable
from fishweir.papers.followed import Follower
from fishweir.papers.spatialjoin.window_queries import columns_of, is_published, to_queries
from fishweir.papers.spatialjoin.windows import LEFT, RIGHT, Arrivals, JoinQueries, SlidingJoin, State
from fishweir.papers.spatialjoin.windows import STRATEGIES as ALGORITHMS

Make = Callable[[JoinQueries, float], SlidingJoin]


@dataclass
class Share:
    """The queries of one task with their numbers, and the join that has seen the retained documents."""

    queries: JoinQueries
    numbers: Ints
    join: SlidingJoin
    documents: Follower


class SlidingJoins(JoinsByRows):
    """Joins of one pair of streams, evaluated by one of the paper's algorithms."""

    def __init__(self, tables: Sequence[JoinTable], make: Make) -> None:
        super().__init__(tables)
        self.make, self.columns = make, tuple(columns_of(tables, side) for side in (LEFT, RIGHT))
        self._shares: dict[tuple[int, int], Share] = {}

    @cached_property
    def row_sides(self) -> list[RowSide]:
        """Of both sides, each column by itself, and what the default keeps."""
        return [*self._own_sides.values(), *super().row_sides]

    @cached_property
    def _own_sides(self) -> dict[int, RowSide]:
        sources = self.tables[0].sources
        return {
            _key(source, path): _column_side(source, path)
            for source, columns in zip(sources, self.columns, strict=True)
            for path in columns
        }

    def pairs(
        self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext
    ) -> Iterator[SetPairs | Joined]:
        return chain(self._joined(new, old, part, parts), self._before(new, old, part, parts, known))

    def _before(
        self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext
    ) -> Iterator[SetPairs | Joined]:
        """Pairs with documents retained before the strategy was asked for, which have the default's rows alone."""
        older = {id(run): mask for run in old if (mask := self._without_columns(run)).any()}
        runs = [run for run in old if id(run) in older]
        for found in join_rows(self.by_rows, new, runs, part, parts, known.ranks) if runs else ():
            if found.left is not found.right:
                run, documents = (found.right, found.rights) if found.left is new else (found.left, found.lefts)
                yield only(found, older[id(run)][documents])

    def _without_columns(self, run: Run) -> NDArray[np.bool_]:
        """Of each document, whether it has rows of the default and none of these joins' columns."""
        has = [np.zeros(len(run), np.bool_) for _ in range(2)]
        keys = list(self._own_sides), [key for join in self.by_rows for key in join.keys]
        for mask, own in zip(has, keys, strict=True):
            mask[run.rows.documents[np.isin(run.rows.classes, np.array(own, np.uint64))]] = True
        return has[1] & ~has[0]

    def _joined(self, new: Run, old: Sequence[Run], part: int, parts: int) -> Iterator[Joined]:
        share = self._share(part, parts)
        if not share.queries.count:
            return
        followed = share.documents.follow(old, new)
        if followed.restarted:
            share.join = self.make(share.queries, np.inf)  # what is retained is decided by the stage
            retained = [self._arrivals(side, old, followed.numbers[:-1]) for side in (LEFT, RIGHT)]
            count = sum(map(len, old))
            share.join.restore(State(retained[LEFT], retained[RIGHT], (count, count), -np.inf))
        arrived = [self._arrivals(side, [new], followed.numbers[-1:]) for side in (LEFT, RIGHT)]
        found, *pair = share.join.process_both(arrived[LEFT], arrived[RIGHT]).expanded()
        there = followed.there(pair[LEFT]) & followed.there(pair[RIGHT]) & (pair[LEFT] != pair[RIGHT])
        ends = [followed.locate(numbers[there]) for numbers in pair]
        yield from _by_runs([*old, new], ends[LEFT], ends[RIGHT], share.numbers[found[there]])

    def _arrivals(self, side: int, runs: Sequence[Run], numbers: Sequence[Ints]) -> Arrivals:
        """The tuples of one side in some runs."""
        keys = [_key(self.tables[0].sources[side], path) for path in self.columns[side]]
        parts = [_values(run, keys) for run in runs]
        return Arrivals(
            np.concatenate([np.empty(0), *(run.times[own] for run, (own, _) in zip(runs, parts, strict=True))]),
            np.concatenate([np.empty((0, len(keys))), *(values for _, values in parts)]),
            np.concatenate([np.empty(0, np.int64), *(n[own] for n, (own, _) in zip(numbers, parts, strict=True))]),
        )

    def _share(self, part: int, parts: int) -> Share:
        if (part, parts) not in self._shares:
            queries, numbers = to_queries(self.tables, self.columns, part, parts)
            self._shares[part, parts] = Share(queries, numbers, self.make(queries, np.inf), Follower())
        return self._shares[part, parts]


def _by_runs(
    runs: Sequence[Run], lefts: tuple[Ints, Ints], rights: tuple[Ints, Ints], members: Ints
) -> Iterator[Joined]:
    """The pairs of each two runs; either side is the run and the document of each pair."""
    kinds = lefts[0] * len(runs) + rights[0]
    for kind in np.unique(kinds).tolist():
        left, right = divmod(kind, len(runs))
        own = np.flatnonzero(kinds == kind)
        none, starts = np.empty((len(own), 0), np.int64), np.arange(len(own) + 1)
        yield Joined(runs[left], runs[right], lefts[1][own], rights[1][own], none, starts, members[own])


# A column of a stream as rows of the join state.


def _key(source: Source, path: Path) -> int:
    return key_of(json.dumps(["column", to_json(source), *map(to_json, path)]))


def _column_side(source: Source, path: Path) -> RowSide:
    return RowSide(_key(source, path), False, (source,), from_values(partial(_column_rows, source, path)))


def _column_rows(source: Source, path: Path, witnesses: Mapping[Path, PathTable]) -> SideRows | None:
    table = FirstValues(witnesses).get(path)
    if table is None or not len(table):
        return None
    values = table.numbers.view(np.uint64)[:, None]
    none = np.empty((len(table), 0), np.int64)
    starts, members = np.zeros(len(table) + 1, np.int64), np.empty(0, np.int64)
    return as_rows(_key(source, path), table.documents, none, values, None, starts, members)


def _values(run: Run, keys: Sequence[int]) -> tuple[Ints, Any]:
    """The documents of a run that have one of the columns, and their values there; NaN where there is none."""
    values = np.full((len(run), len(keys)), np.nan)
    there = np.zeros(len(run), np.bool_)
    for axis, key in enumerate(keys):
        rows = run.rows.of_class(key)
        documents = run.rows.documents[rows]
        values[documents, axis] = run.rows.values[run.rows.value_starts[rows]].view(np.float64)
        there[documents] = True
    documents = np.flatnonzero(there)
    return documents, values[documents]


class BySlidingJoin(Strategy):
    kind, module = "joins", __name__

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]

    def take(self, groups: Mapping[int, Any], statistics: Statistics) -> list[Bundle]:
        by_streams: dict[tuple[Source, ...], list[int]] = {}
        for place, table in groups.items():
            if is_published(table):
                by_streams.setdefault(table.sources, []).append(place)
        return [self.bundle(places) for places in by_streams.values()]

    def operator(self, placed: Placed) -> SlidingJoins:
        return SlidingJoins(placed.groups, ALGORITHMS[self.name])  # type: ignore[arg-type]


STRATEGIES: dict[str, Strategy] = {name: BySlidingJoin(name) for name in ALGORITHMS}
