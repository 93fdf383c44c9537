"""Row joins: queries with one join signature, whose rows are stored and probed together (NiagaraCQ 3.5).

In: the join tables that equal values alone do not decide. Out: RowJoins. All joins over columns (SQL's) of the same
streams, edges and kind of window form one row join, whatever conditions their queries have on either side: a document
has one row, with the list of all queries whose conditions it satisfies. A join of patterns is a separate row join, and
so is one whose constants are checked above the join (placement.py).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.codec import to_json
from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.nodes import Operator, Source
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.edges import EARLIER, LATER, TOGETHER, Contained, by_reach, reach
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.rows.column_sides import ColumnSide, any_document, column_side
from fishweir.evaluate.join.rows.pair_regions import PairRegions, checks_of
from fishweir.evaluate.join.rows.row_kernels import OPERATORS
from fishweir.evaluate.join.rows.side_rows import as_rows, column_values, side_rows
from fishweir.evaluate.join.state import SideRows
from fishweir.evaluate.join.variables import key_of
from fishweir.evaluate.select.constant_tables import Table
from fishweir.evaluate.select.match import match_table
from fishweir.evaluate.witnesses.path_tables import FirstValues, Path, PathTable

Edge = tuple[Path, Operator, Path]
Floats = NDArray[np.float64]

SCATTERED = 16
"""Average gap between query numbers above which they are found by binary search."""


@dataclass(frozen=True)
class RowJoin:
    """`keys` are the classes of its two sides' rows; `ops` compare the values of two rows, position by position;
    `listed` says which sides' rows list queries."""

    tables: tuple[JoinTable, ...]
    keys: tuple[int, ...]
    ops: tuple[Operator, ...]
    anchor: int
    listed: tuple[bool, bool]
    edges: tuple[Edge, ...] | None
    """The edges of a join over columns."""

    @property
    def above(self) -> bool:
        return self.tables[0].above

    @cached_property
    def operators(self) -> Ints:
        """The numbers of its operators in kernels."""
        return np.array([OPERATORS[op] for op in self.ops], np.int64)

    @cached_property
    def counts_rows(self) -> tuple[bool, bool]:
        """Whether the windows of its two sides count rows."""
        left, right = self.tables[0].template.counts_rows
        return left, right

    @property
    def takes_runs_together(self) -> bool:
        """Whether equal values are looked up in several runs together: windows of rows count all rows of a run."""
        return self.anchor >= 0 and not any(self.counts_rows)

    @property
    def sources(self) -> tuple[Source, ...]:
        return self.tables[0].sources

    @cached_property
    def numbers(self) -> Ints:
        return np.concatenate([table.numbers for table in self.tables])

    @cached_property
    def reaches(self) -> Floats:
        """The greatest distance between two documents, by order in time and query; -1 if the query does not allow this
        order."""
        kinds = (LATER, EARLIER, TOGETHER)
        return np.stack([np.concatenate([reach(table, kind) for table in self.tables]) for kind in kinds])

    @cached_property
    def alike(self) -> Ints:
        """For each order in time, the first one in which the same windows reach. Documents of the same time are at
        distance 0."""
        later, earlier, together = self.reaches
        mirrored, at_once = bool((later == earlier).all()), bool(((later >= 0) & (together >= 0)).all())
        return np.array([LATER, LATER if mirrored else EARLIER, LATER if at_once else TOGETHER])

    @cached_property
    def longest(self) -> Floats:
        return np.asarray(self.reaches.max(axis=1, initial=-1.0))

    @cached_property
    def even(self) -> bool:
        """Whether all windows are the same."""
        return bool((self.reaches == self.reaches[:, :1]).all())

    def all_queries(self, kind: int) -> Contained:
        if kind not in self._all_queries:
            self._all_queries[kind] = by_reach(self.tables, kind)[0]
        return self._all_queries[kind]

    @cached_property
    def _all_queries(self) -> dict[int, Contained]:
        return {}

    def places(self, kind: int) -> QueryOrder:
        if kind not in self._places:
            self._places[kind] = places_of(self, kind)
        return self._places[kind]

    @cached_property
    def _places(self) -> dict[int, QueryOrder]:
        return {}

    def regions(self, kind: int) -> PairRegions:
        """The queries of the only table of a join whose constants are checked above it."""
        if kind not in self._regions:
            (table,) = self.tables
            checks = checks_of(table.template, table.columns)
            self._regions[kind] = PairRegions(checks, self.reaches[kind])
        return self._regions[kind]

    @cached_property
    def _regions(self) -> dict[int, PairRegions]:
        return {}

    def rows(self, side: int, witnesses: Mapping[Path, PathTable]) -> SideRows | None:
        """The rows of one side in a batch of documents."""
        if self.edges is None:
            return side_rows(self.tables[0], side, witnesses)
        columns = FirstValues(witnesses)
        if self.listed[side]:
            documents, starts, members = self.lists(side).satisfied(columns)
        else:
            found = match_table(self._bare[side], columns)
            documents = np.empty(0, np.int64) if found is None else found.documents
            starts, members = np.zeros(len(documents) + 1, np.int64), np.empty(0, np.int64)
        ends = [(right if side else left, op) for left, op, right in self.edges]
        kept, values = column_values(ends, columns, documents)
        if not len(kept):
            return None
        nodes = np.empty((len(documents), 0), np.int64)
        every = np.zeros((len(documents), values.shape[1]), np.uint64)
        every[kept] = values
        anchored = every[:, self.anchor] if self.anchor >= 0 else None
        found_rows = as_rows(self.keys[side], documents, nodes, every, anchored, starts, members)
        return found_rows if len(kept) == len(documents) else found_rows.take(kept)

    @cached_property
    def _bare(self) -> tuple[Table, Table]:
        left, right = self.tables[0].template.sides
        return any_document(left), any_document(right)

    def lists(self, side: int) -> ColumnSide:
        if side not in self._lists:
            self._lists[side] = column_side(self.tables, side)
        return self._lists[side]

    @cached_property
    def _lists(self) -> dict[int, ColumnSide]:
        return {}


@dataclass(frozen=True)
class QueryOrder:
    """The queries of a join, longest window for one order in time first. The queries that reach are a prefix."""

    numbers: Ints
    reaches: Floats
    """Reaches by order in time and position."""

    @cached_property
    def _ordered(self) -> tuple[Ints, Ints]:
        """The sorted numbers, and the position of each."""
        place = np.argsort(self.numbers, kind="stable")
        return self.numbers[place], place

    @cached_property
    def _directly(self) -> Ints | None:
        """The position of each number, starting from the least, if the numbers are dense enough."""
        ordered, place = self._ordered
        if ordered[-1] - ordered[0] >= SCATTERED * len(ordered):
            return None
        found = np.full(ordered[-1] - ordered[0] + 1, -1)
        found[ordered - ordered[0]] = place
        return found

    def of(self, members: Ints) -> Ints:
        """The position of each query, -1 if it belongs to another join."""
        ordered, place = self._ordered
        if self._directly is not None:
            at = members - ordered[0]
            there = (at >= 0) & (at < len(self._directly))
            return self._directly[at] if there.all() else np.where(there, self._directly[np.where(there, at, 0)], -1)
        at = np.minimum(np.searchsorted(ordered, members), len(ordered) - 1)
        return np.where(ordered[at] == members, place[at], -1)


def places_of(join: RowJoin, kind: int) -> QueryOrder:
    order = np.lexsort((join.numbers, -join.reaches[kind]))
    return QueryOrder(join.numbers[order], np.ascontiguousarray(join.reaches[:, order]))


def row_joins(tables: Sequence[JoinTable]) -> list[RowJoin]:
    grouped: dict[Hashable, list[JoinTable]] = defaultdict(list)
    for table in tables:
        grouped[join_signature(table)].append(table)
    return [_row_join(signature, some) for signature, some in grouped.items()]


def join_signature(table: JoinTable) -> Hashable:
    """The properties that queries must share. A side without conditions must be the same, as its rows serve all
    queries."""
    template = table.template
    if table.above or not all(side.columns for side in template.sides):
        return table.keys
    edges = column_edges(template)
    anchor = edges.index(_by_path(template)[table.anchor]) if table.anchor >= 0 else -1
    window = template.strict, *template.counts_rows
    sides = tuple(None if side.conditions else side for side in template.sides)
    return template.sources, edges, anchor, sides, window, template.turn


def _row_join(signature: Hashable, tables: Sequence[JoinTable]) -> RowJoin:
    first = tables[0]
    listed = tuple(bool(side.conditions) and not first.above for side in first.template.sides)
    if signature == first.keys:
        ops = tuple(edge.comparison for edge in first.template.edges)
        return RowJoin(tuple(tables), first.keys, ops, first.anchor, (listed[0], listed[1]), None)
    edges = column_edges(first.template)
    anchor = edges.index(_by_path(first.template)[first.anchor]) if first.anchor >= 0 else -1
    key = key_of(json.dumps(to_json(signature)))
    ops = tuple(op for _, op, _ in edges)
    return RowJoin(tuple(tables), (key & ~1, key | 1), ops, anchor, (listed[0], listed[1]), edges)


def _by_path(template: JoinTemplate) -> list[Edge]:
    return [
        (template.left.path(edge.left), edge.comparison, template.right.path(edge.right)) for edge in template.edges
    ]


def column_edges(template: JoinTemplate) -> tuple[Edge, ...]:
    """The edges by their paths, in an order that does not depend on other conditions."""
    return tuple(sorted(_by_path(template), key=str))
