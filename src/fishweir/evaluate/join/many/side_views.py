"""The sides of multiway joins: the rows that documents leave in a run, and views of a run for one side.

In: a MultiwayJoin and the path tables of documents, or a run with such rows. Out: rows (state.SideRows), and views. A
view has the candidate rows of one side in a run, with their values and the queries of the join that they satisfy. It is
built once per run and join; an order for each value and for the time is built on the first lookup. A document has a row
for each choice of the nodes that a result is over. Columns have one value, so over columns it has one row without
nodes. If queries are in several segments, rows with the same nodes are merged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand, number_rows
from fishweir.evaluate.join.hashes import Hashes, combine
from fishweir.evaluate.join.many.multiway import MultiwayJoin
from fishweir.evaluate.join.rows.side_rows import as_rows, members_of, values_at
from fishweir.evaluate.join.state import Run, SideRows
from fishweir.evaluate.select.match import match_table
from fishweir.evaluate.witnesses.path_tables import FirstValues, Path, PathTable

VIEWS = 64
"""Number of runs that each side of a table caches a view of."""

TIME = -1
"""Denotes the order by time, among the orders by value."""


def many_rows(join: MultiwayJoin, side: int, witnesses: Mapping[Path, PathTable]) -> SideRows | None:
    """The rows of one side in a batch of documents. Rows of one class are contiguous."""
    table, template, own = join.table, join.template.sides[side], join.table.sides[side]
    found = match_table(own, FirstValues(witnesses) if template.columns else witnesses)
    if found is None:
        return None
    columns = [
        values_at(witnesses[template.path(node)], found.documents, found.nodes[:, template.outputs.index(node)], hashed)
        for node, hashed in table.values[side]
    ]
    values = np.stack(columns, axis=1) if columns else np.empty((len(found), 0), np.uint64)
    none = np.zeros(len(found) + 1, np.int64)
    starts, members = members_of(own, found) if template.conditions else (none, none[:0])
    nodes = found.nodes[:, : join.widths[side]]
    return as_rows(table.keys[side], found.documents, nodes, values, None, starts, members)


@dataclass(frozen=True)
class SideView:
    """The distinct rows of a run. `members` are sorted positions of queries in the table, `queries` is the table's
    size."""

    run: Run
    documents: Ints
    nodes: Ints
    values: Hashes
    member_starts: Ints
    members: Ints
    queries: int
    _orders: dict[int, tuple[Ints, NDArray[np.generic]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.documents)

    @cached_property
    def times(self) -> NDArray[np.float64]:
        return self.run.times[self.documents]

    @cached_property
    def by_member(self) -> tuple[Ints, Ints]:
        """The starts of the rows of each query, and the rows."""
        owner = np.repeat(np.arange(len(self)), np.diff(self.member_starts))
        order = np.argsort(self.members, kind="stable")
        return np.searchsorted(self.members[order], np.arange(self.queries + 1)), owner[order]

    def order(self, value: int, hashed: bool = False) -> tuple[Ints, NDArray[np.generic]]:
        """The rows sorted by one of their values, or by TIME, and their sort keys, without rows that have no key."""
        if value not in self._orders:
            if value == TIME:
                by: NDArray[np.generic] = self.times
            else:
                column = np.ascontiguousarray(self.values[:, value])
                by = column if hashed else column.view(np.float64)
            rows = np.argsort(by, kind="stable")
            if not hashed:
                rows = rows[: len(rows) - int(np.isnan(by).sum())]
            self._orders[value] = rows, by[rows]
        return self._orders[value]


def side_view(join: MultiwayJoin, side: int, run: Run) -> SideView:
    """The cached view of a run for a side. A retained run is read in every micro-batch."""
    known = join.views.pop((side, id(run)), None)
    view = known if known is not None and known.run is run else _view(join, side, run)
    join.views[side, id(run)] = view
    while len(join.views) > VIEWS * len(join.template.sides):
        join.views.popitem(last=False)
    return view


def _view(join: MultiwayJoin, side: int, run: Run) -> SideView:
    rows, key = run.rows, np.array([join.table.keys[side]], np.uint64)
    place = combine(key, np.zeros(1, np.uint64))[0]
    lo, hi = (int(np.searchsorted(rows.keys, place, end)) for end in ("left", "right"))
    chosen = lo + np.flatnonzero(rows.classes[lo:hi] == key[0])
    group = _grouped(rows, chosen, join.widths[side])
    if not join.template.sides[side].conditions:
        return _taken(join, side, run, chosen[np.unique(group, return_index=True)[1]])
    order = np.argsort(group, kind="stable")
    chosen, group = chosen[order], group[order]
    source, at = expand(rows.member_starts[chosen], rows.member_starts[chosen + 1])
    positions = join.table.positions(rows.members[at])
    mine = positions >= 0
    if not mine.all():
        source, positions = source[mine], positions[mine]
    source = group[source]
    if len(chosen) > group.max(initial=-1) + 1:
        keys = np.sort(source << 32 | positions)
        keys = keys[np.diff(keys, prepend=-1) > 0]
        source, positions = keys >> 32, keys & 0xFFFFFFFF
    counts = np.bincount(source, minlength=int(group.max(initial=-1)) + 1)
    some = np.flatnonzero(counts)
    ends = np.append(0, np.cumsum(counts[some])).astype(np.int64)
    return _taken(join, side, run, chosen[np.searchsorted(group, some)], ends, positions)


def _grouped(rows: SideRows, chosen: Ints, width: int) -> Ints:
    """Numbers the distinct (document, nodes) of rows, by document."""
    documents = rows.documents[chosen]
    if (np.diff(documents) > 0).all():
        return np.arange(len(documents))
    nodes = rows.nodes[rows.node_starts[chosen][:, None] + np.arange(width)]
    return number_rows(documents, *nodes.T)


def _taken(
    join: MultiwayJoin, side: int, run: Run, kept: Ints, member_starts: Ints | None = None, members: Ints | None = None
) -> SideView:
    """A view of some rows of a run. Without lists of queries, the rows satisfy all queries."""
    rows = run.rows
    nodes = rows.nodes[rows.node_starts[kept][:, None] + np.arange(join.widths[side])]
    values = rows.values[rows.value_starts[kept][:, None] + np.arange(len(join.table.values[side]))]
    if member_starts is None or members is None:
        return SideView(run, rows.documents[kept], nodes, values, np.zeros(1, np.int64), np.empty(0, np.int64), 0)
    return SideView(run, rows.documents[kept], nodes, values, member_starts, members, join.table.size)
