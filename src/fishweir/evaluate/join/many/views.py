"""The sides of joins of several streams: the rows that documents leave in a run, and a run as one side sees it.

In: a ManyTable and the path tables of documents, or a run that holds such rows. Out: rows (state.SideRows), and views:
the documents of a run that one side of a table may take, with their values and the table's queries that want them, and
an order for each value and for the time, made when first looked up. A view is made once per run and table. Columns have
one value, so a document is one row; where queries came by several segments its rows are put together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.join.many.tables import ManyTable
from fishweir.evaluate.join.rows.side_rows import members_of, values_at
from fishweir.evaluate.join.state import Hashes, Run, SideRows, combine
from fishweir.evaluate.select.match import match_table
from fishweir.evaluate.witnesses.path_tables import FirstValues, Path, PathTable

VIEWS = 64
"""Runs that a table's sides keep a view of, each."""

TIME = -1
"""The order by time, among those by value."""


def many_rows(table: ManyTable, side: int, witnesses: Mapping[Path, PathTable]) -> SideRows | None:
    """The rows of one side in a batch of documents. All of a class stand together."""
    template, own = table.template.sides[side], table.sides[side]
    found = match_table(own, FirstValues(witnesses))
    if found is None:
        return None
    columns = [
        values_at(witnesses[template.path(node)], found.documents, found.nodes[:, template.outputs.index(node)], hashed)
        for node, hashed in table.values[side]
    ]
    values = np.stack(columns, axis=1) if columns else np.empty((len(found), 0), np.uint64)
    none, size = np.zeros(len(found) + 1, np.int64), len(found)
    starts, members = members_of(own, found) if template.conditions else (none, none[:0])
    key = np.full(size, table.keys[side], np.uint64)
    return SideRows(
        combine(key, np.zeros(size, np.uint64)),
        found.documents,
        key,
        none,
        none[:0],
        np.arange(size + 1) * len(columns),
        values.ravel(),
        starts,
        members,
    )


@dataclass(frozen=True)
class SideView:
    """The documents of a run, each once; `members` are places of queries in the table, sorted, `queries` its size."""

    run: Run
    documents: Ints
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
        """Where the rows of each query begin, and the rows."""
        owner = np.repeat(np.arange(len(self)), np.diff(self.member_starts))
        order = np.argsort(self.members, kind="stable")
        return np.searchsorted(self.members[order], np.arange(self.queries + 1)), owner[order]

    def order(self, value: int, hashed: bool = False) -> tuple[Ints, NDArray[np.generic]]:
        """The rows by one of their values, or by TIME, and what they are ordered by; without those that are in none."""
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


def side_view(table: ManyTable, side: int, run: Run) -> SideView:
    """The run as a side sees it, made once: a retained run is looked at in every micro-batch."""
    known = table.views.pop((side, id(run)), None)
    view = known if known is not None and known.run is run else _view(table, side, run)
    table.views[side, id(run)] = view
    while len(table.views) > VIEWS * len(table.sources):
        table.views.popitem(last=False)
    return view


def _view(table: ManyTable, side: int, run: Run) -> SideView:
    rows, key = run.rows, np.array([table.keys[side]], np.uint64)
    place = combine(key, np.zeros(1, np.uint64))[0]
    lo, hi = (int(np.searchsorted(rows.keys, place, end)) for end in ("left", "right"))
    chosen = lo + np.flatnonzero(rows.classes[lo:hi] == key[0])
    width = len(table.values[side])
    if not table.template.sides[side].conditions:
        documents, first = np.unique(rows.documents[chosen], return_index=True)
        values = rows.values[rows.value_starts[chosen[first]][:, None] + np.arange(width)]
        return SideView(run, documents, values, np.zeros(1, np.int64), np.empty(0, np.int64), 0)
    chosen = chosen[np.argsort(rows.documents[chosen], kind="stable")]
    source, at = expand(rows.member_starts[chosen], rows.member_starts[chosen + 1])
    positions = table.positions(rows.members[at])
    mine = positions >= 0
    if not mine.all():
        source, positions = source[mine], positions[mine]
    group = np.cumsum(np.diff(rows.documents[chosen], prepend=-1) > 0) - 1
    source = group[source]
    if len(chosen) > group.max(initial=-1) + 1:
        keys = np.sort(source << 32 | positions)
        keys = keys[np.diff(keys, prepend=-1) > 0]
        source, positions = keys >> 32, keys & 0xFFFFFFFF
    counts = np.bincount(source, minlength=int(group.max(initial=-1)) + 1)
    some = np.flatnonzero(counts)
    kept = chosen[np.searchsorted(group, some)]
    values = rows.values[rows.value_starts[kept][:, None] + np.arange(width)]
    ends = np.append(0, np.cumsum(counts[some])).astype(np.int64)
    return SideView(run, rows.documents[kept], values, ends, positions, table.size)
