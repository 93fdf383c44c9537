"""Views of a run for the probe: the rows of one side of a join.

In: a run and the class of a side. Out: values, times and orders of its rows, computed once per run; and for each join
of that class the queries of each row: a list of positions or a bitmap over them, whichever is shorter. Positions are
ordered by the lengths of the windows, so the window is one more axis: queries that reach far enough are a prefix.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.join.hashes import Hashes
from fishweir.evaluate.join.pairs import portions
from fishweir.evaluate.join.rows.column_sides import sort_lists
from fishweir.evaluate.join.rows.row_joins import QueryOrder, RowJoin
from fishweir.evaluate.join.state import Run
from fishweir.jit import kernel

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Sets = tuple[bool, Words, Ints, NDArray[np.int32]]
"""Whether the sets are lists; the bitmaps; the bitmap of each row, or the start of its list (plus the end); the
lists."""

QUERIES_A_LISTED = 64
"""A row that satisfies less than one query in this many gets a list, which is then shorter than a bitmap."""
JOINS_KEPT = 8


class RowView:
    """`rows` are positions in the run's rows; everything else is indexed by position in `rows`."""

    def __init__(self, run: Run, rows: Ints, width: int) -> None:
        self.run, self.rows = run, rows
        self.documents = run.rows.documents[rows]
        self.times: Floats = run.times[self.documents]
        self.values: Hashes = run.rows.values[run.rows.value_starts[rows][:, None] + np.arange(width)]
        self._by_edge: dict[int, tuple[Floats, Ints]] = {}
        self._sets: OrderedDict[tuple[int, int, int], tuple[RowJoin, Sets]] = OrderedDict()

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def keys(self) -> Hashes:
        """Keys by class and anchor value; ascending if the rows are."""
        return self.run.rows.keys[self.rows]

    @cached_property
    def numbers(self) -> Floats:
        """The values read as numbers; meaningless for hashes."""
        return self.values.view(np.float64)

    @cached_property
    def by_time(self) -> tuple[Floats, Ints]:
        order = np.argsort(self.times, kind="stable")
        return self.times[order], order

    @cached_property
    def by_place(self) -> Ints:
        return np.arange(len(self))

    def by_edge(self, edge: int) -> tuple[Floats, Ints]:
        """The numeric values at an edge, sorted, and their rows."""
        if edge not in self._by_edge:
            values = self.numbers[:, edge]
            order = np.argsort(values, kind="stable")
            order = order[: len(order) - int(np.isnan(values).sum())]
            self._by_edge[edge] = values[order], order
        return self._by_edge[edge]

    def sets(self, join: RowJoin, side: int, kind: int) -> Sets:
        """The queries of each row as positions for one order in time."""
        key = (id(join), side, kind)
        known = self._sets.pop(key, None)
        if known is None or known[0] is not join:
            known = join, _sets(self, join.places(kind), join.listed[side])
        self._sets[key] = known
        while len(self._sets) > JOINS_KEPT:
            self._sets.popitem(last=False)
        return known[1]


def view_of(run: Run, key: int, width: int) -> RowView:
    """All rows of a class, computed once per run."""
    if key not in run.views:
        run.views[key] = RowView(run, run.rows.of_class(key), width)
    view: RowView = run.views[key]
    return view


def _sets(view: RowView, places: QueryOrder, listed: bool) -> Sets:
    words = (len(places.numbers) + 63) >> 6
    none = np.empty((0, words), np.uint64)
    if not listed:
        return False, every_bit(len(places.numbers)), np.zeros(len(view), np.int64), none[0:0, 0].view(np.int32)
    rows = view.run.rows
    starts, ends = rows.member_starts[view.rows], rows.member_starts[view.rows + 1]
    if int((ends - starts).sum()) * QUERIES_A_LISTED >= len(places.numbers) * len(view):
        bitmaps = np.zeros((len(view), words), np.uint64)
        for some in portions(ends - starts):
            row, at = expand(starts[some], ends[some])
            set_bits(bitmaps, row + some.start, places.of(rows.members[at]))
        return False, bitmaps, view.by_place, np.empty(0, np.int32)
    lists, lengths = [np.empty(0, np.int32)], np.zeros(len(view), np.int64)
    for some in portions(ends - starts):
        row, at = expand(starts[some], ends[some])
        found = places.of(rows.members[at])
        own = found >= 0
        lists.append(found[own].astype(np.int32))
        lengths[some] = np.bincount(row[own], minlength=some.stop - some.start)
    offsets = np.append(0, np.cumsum(lengths))
    together = np.concatenate(lists)
    sort_lists(offsets, together)
    return True, none, offsets, together


def every_bit(count: int) -> Words:
    """A bitmap with `count` bits set."""
    bits = np.zeros(((count + 63) >> 6) * 64, np.uint8)
    bits[:count] = 1
    return np.packbits(bits, bitorder="little").view(np.uint64)[None]


@kernel
def set_bits(words: Words, rows: Ints, places: Ints) -> None:
    for at in range(len(rows)):
        place = places[at]
        if place >= 0:
            words[rows[at], place >> 6] |= np.uint64(1) << np.uint64(place & 63)
