"""SJ-Join and IBS-JS as strategies of the engine: `--strategy window-joins=sj-join`.

A strategy takes the joins of two streams of tuples by comparisons of numbers (`<`, `<=`, `>`, `>=`) with windows in
seconds and ranges of numbers on either side; the default strategies evaluate the rest. All queries over one pair of
streams are one join. A document is kept as a row for each column that some query reads, under a key that depends on
the stream and the column alone, so that queries come and go and rows serve those that stay. The default's rows are
kept beside them, so that a home may be opened with another strategy at any time. Tasks share the queries.
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
from fishweir.papers.spatialjoin.window_queries import columns_of, is_published, to_queries
from fishweir.papers.spatialjoin.windows import LEFT, RIGHT, Arrivals, JoinQueries, SlidingJoin, State
from fishweir.papers.spatialjoin.windows import STRATEGIES as ALGORITHMS

Make = Callable[[JoinQueries, float], SlidingJoin]


@dataclass(frozen=True)
class Tuples:
    """The tuples of one side in some runs, in the order of the runs: the run of each, its document, its values."""

    runs: Ints
    documents: Ints
    times: Any
    values: Any


class SlidingJoins(JoinsByRows):
    """Joins of one pair of streams, evaluated by one of the paper's algorithms."""

    def __init__(self, tables: Sequence[JoinTable], make: Make) -> None:
        super().__init__(tables)
        self.make, self.columns = make, tuple(columns_of(tables, side) for side in (LEFT, RIGHT))
        self._queries: dict[tuple[int, int], tuple[JoinQueries, Ints]] = {}

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
        queries, numbers = self._share(part, parts)
        runs = [*old, new]
        if not queries.count:
            return
        sides = [self._tuples(side, runs) for side in (LEFT, RIGHT)]
        retained, arrived = zip(*(_split(tuples, len(old)) for tuples in sides), strict=True)
        if not any(len(some.times) for some in arrived):
            return
        join = self.make(queries, np.inf)  # what is retained is decided by the stage
        counts = len(retained[LEFT].times), len(retained[RIGHT].times)
        join.restore(State(retained[LEFT], retained[RIGHT], counts, -np.inf))
        found, lefts, rights = join.process_both(*arrived).expanded()
        yield from _by_runs(runs, sides, lefts, rights, numbers[found])

    def _tuples(self, side: int, runs: Sequence[Run]) -> Tuples:
        source, columns = self.tables[0].sources[side], self.columns[side]
        parts = [_values(run, [_key(source, path) for path in columns]) for run in runs]
        return Tuples(
            np.repeat(np.arange(len(runs)), [len(documents) for documents, _ in parts]),
            np.concatenate([documents for documents, _ in parts]),
            np.concatenate([run.times[documents] for run, (documents, _) in zip(runs, parts, strict=True)]),
            np.concatenate([values for _, values in parts]),
        )

    def _share(self, part: int, parts: int) -> tuple[JoinQueries, Ints]:
        if (part, parts) not in self._queries:
            self._queries[part, parts] = to_queries(self.tables, self.columns, part, parts)
        return self._queries[part, parts]


def _by_runs(
    runs: Sequence[Run], sides: Sequence[Tuples], lefts: Ints, rights: Ints, members: Ints
) -> Iterator[Joined]:
    """The pairs of each two runs; a document of both streams does not join itself."""
    kinds = sides[LEFT].runs[lefts] * len(runs) + sides[RIGHT].runs[rights]
    for kind in np.unique(kinds).tolist():
        left, right = divmod(kind, len(runs))
        own = np.flatnonzero(kinds == kind)
        one, two = sides[LEFT].documents[lefts[own]], sides[RIGHT].documents[rights[own]]
        apart = np.flatnonzero((one != two) | (left != right))
        if len(apart):
            none, starts = np.empty((len(apart), 0), np.int64), np.arange(len(apart) + 1)
            yield Joined(runs[left], runs[right], one[apart], two[apart], none, starts, members[own[apart]])


def _split(tuples: Tuples, new: int) -> tuple[Arrivals, Arrivals]:
    """Those retained, and those of the new run; numbered one after the other."""
    is_new = tuples.runs == new
    numbers = np.arange(len(tuples.times))
    old, fresh = (Arrivals(tuples.times[m], tuples.values[m], numbers[m]) for m in (~is_new, is_new))
    return old, fresh


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
