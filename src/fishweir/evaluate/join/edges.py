"""Edge sets: decide which plain joins hold for a pair of documents by the set S of edges that hold.

In: the plain join tables. Out: one bit per distinct edge, and for each anchor the queries contained in a given S, by
window. Few distinct S occur in a stream, so the contained queries are computed once per S and cached. If a document
binds a variable several times, S is only a necessary condition: the joins that read the variable are verified (rows).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.hashes import Hashes
from fishweir.evaluate.join.join_tables import JoinTable, variables_of
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.join.value_views import EQUAL, LEFT_EXISTS, RIGHT_EXISTS, View, view_of
from fishweir.evaluate.join.variables import Variable

VIEWS = 64
"""Number of runs that a segment's edge sets cache a view of."""

LATER, EARLIER, TOGETHER = range(3)
"""The order of a pair in time: the right document is later than, earlier than, or simultaneous with the left one."""


@dataclass(frozen=True)
class Contained:
    """The queries of one anchor whose edges are all in S, for one order in time, longest reach first."""

    members: Ints
    reaches: NDArray[np.float64]

    @cached_property
    def name(self) -> str:
        """A hash of the content."""
        return blake2b(np.ascontiguousarray(self.members).tobytes(), digest_size=12).hexdigest()

    def count(self, apart: NDArray[np.float64]) -> Ints:
        """The number of queries that reach over each distance. These queries are a prefix."""
        return np.searchsorted(-self.reaches, -apart, "right")


class Entry:
    """The cached answers for one S: the anchor's tables that S contains, their queries by order in time (on demand),
    and the tables that must be verified."""

    def __init__(self, sets: EdgeSets, anchor: int, decided: NDArray[np.bool_], undecided: tuple[int, ...]) -> None:
        self.sets, self.anchor, self.decided, self.undecided = sets, anchor, decided, undecided
        self._orders: dict[int, Contained] = {}

    def contained(self, order: int) -> Contained:
        if order not in self._orders:
            every, table = self.sets.listed(self.anchor, order)
            chosen = np.flatnonzero(self.decided[table])
            self._orders[order] = Contained(every.members[chosen], every.reaches[chosen])
        return self._orders[order]


class EdgeSets:
    """The bits of the edges, and a cache of the queries contained in each set of bits."""

    def __init__(self, tables: Sequence[JoinTable]) -> None:
        self.tables = tables
        self.variables: dict[Variable, bool] = {}
        for variable, compared in variables_of(tables):
            self.variables[variable] = self.variables.get(variable, False) or compared
        self._place = {variable: i for i, variable in enumerate(self.variables)}
        self.bits: dict[tuple[int, int, int], int] = {}
        sets = [self._bits(table) for table in tables]
        self.anchors = np.array([bits[t.anchor] for bits, t in zip(sets, tables, strict=True)], dtype=np.int64)
        self.of_tables = sets
        self.masks = _masks(sets, len(self.bits))
        self.reads = tuple(
            _masks([self._read(table, side) for table in tables], len(self.variables)) for side in (0, 1)
        )
        self._memory: dict[tuple[int, bytes], Entry] = {}
        self._listed: dict[tuple[int, int], tuple[Contained, Ints]] = {}
        self._views: OrderedDict[int, View] = OrderedDict()

    def _bits(self, table: JoinTable) -> list[int]:
        """The bit of each edge, then the bits of variables that only need to be present."""
        found = [(EQUAL, *self._ends(table, e.left, e.right)) for e in table.template.edges]
        for side, kind in ((0, LEFT_EXISTS), (1, RIGHT_EXISTS)):
            for node in sorted({*table.kept(side)} - {*table.joined(side)}):
                place = self._place[table.variable(side, node)]
                found.append((kind, place, place))
        return [self.bits.setdefault(bit, len(self.bits)) for bit in found]

    def _ends(self, table: JoinTable, left: int, right: int) -> tuple[int, int]:
        return self._place[table.variable(0, left)], self._place[table.variable(1, right)]

    def _read(self, table: JoinTable, side: int) -> list[int]:
        return [self._place[table.variable(side, n)] for n in {*table.kept(side), *table.joined(side)}]

    @cached_property
    def keys(self) -> Hashes:
        return np.array([variable.key for variable in self.variables], dtype=np.uint64)

    @cached_property
    def edges(self) -> Ints:
        """Kind, left variable and right variable of each bit."""
        return np.array(list(self.bits), dtype=np.int64).reshape(-1, 3)

    @cached_property
    def by_anchor(self) -> dict[int, Ints]:
        return {int(anchor): np.flatnonzero(self.anchors == anchor) for anchor in np.unique(self.anchors)}

    @cached_property
    def longest(self) -> NDArray[np.float64]:
        """The greatest distance in time between documents for any query with an anchor, by edge and order in time; -1
        if no query allows this order."""
        found = np.full((len(self.edges), 3), -1.0)
        for anchor, table in zip(self.anchors.tolist(), self.tables, strict=True):
            for order in (LATER, EARLIER, TOGETHER):
                found[anchor, order] = max(found[anchor, order], reach(table, order).max(initial=-1.0))
        return found

    def can_pair(self, left: Run, right: Run) -> bool:
        """Whether any window reaches from one run to the other, by the times of their documents."""
        if not len(left) or not len(right):
            return False
        later, earlier, together = self.longest.max(axis=0)
        return bool(
            (right.newest > left.oldest and right.oldest - left.newest <= later)
            or (left.newest > right.oldest and left.oldest - right.newest <= earlier)
            or (together >= 0 and left.oldest <= right.newest and right.oldest <= left.newest)
        )

    def view(self, run: Run) -> View:
        """The cached view of a run. A retained run is read in every micro-batch."""
        known = self._views.pop(id(run), None)
        self._views[id(run)] = view = known if known is not None and known.run is run else view_of(run, self.compared)
        while len(self._views) > VIEWS:
            self._views.popitem(last=False)
        return view

    @cached_property
    def compared(self) -> dict[int, bool]:
        return {variable.key: compared for variable, compared in self.variables.items()}

    def entry(self, anchor: int, words: Hashes) -> Entry:
        """The queries of an anchor for a row of `pair_words`."""
        key = (anchor, words.tobytes())
        if key not in self._memory:
            self._memory[key] = self._contained(anchor, words)
        return self._memory[key]

    def _contained(self, anchor: int, words: Hashes) -> Entry:
        size, many = self.masks.shape[1], self.reads[0].shape[1]
        holding, left, right = words[:size], words[size : size + many], words[size + many :]
        group = self.by_anchor[anchor]
        inside = ((self.masks[group] & ~holding) == 0).all(axis=1)
        several = [(reads[group] & own) != 0 for reads, own in zip(self.reads, (left, right), strict=True)]
        undecided = several[0].any(axis=1) | several[1].any(axis=1)
        return Entry(self, anchor, inside & ~undecided, tuple(group[inside & undecided].tolist()))

    def listed(self, anchor: int, order: int) -> tuple[Contained, Ints]:
        """All queries of an anchor for one order in time, and the position of each query's table in its group."""
        if (anchor, order) not in self._listed:
            self._listed[anchor, order] = by_reach([self.tables[i] for i in self.by_anchor[anchor]], order)
        return self._listed[anchor, order]


def by_reach(tables: Sequence[JoinTable], order: int) -> tuple[Contained, Ints]:
    """The queries of some tables for one order in time, longest reach first, and the position of each query's table."""
    members = np.concatenate([np.empty(0, np.int64), *(table.numbers for table in tables)])
    reaches = np.concatenate([np.empty(0), *(reach(table, order) for table in tables)])
    owner = np.repeat(np.arange(len(tables)), [table.size for table in tables])
    chosen = np.flatnonzero(reaches >= 0)
    chosen = chosen[np.lexsort((members[chosen], -reaches[chosen]))]
    return Contained(members[chosen], reaches[chosen]), owner[chosen]


def reach(table: JoinTable, order: int) -> NDArray[np.float64]:
    """The greatest distance in time between two documents in this order for each query of a table; -1 if the query does
    not allow this order."""
    if order == TOGETHER:
        return np.full(table.size, -1.0 if table.template.strict else np.inf)
    return table.reaches[order]


def _masks(sets: Sequence[Sequence[int]], width: int) -> Hashes:
    masks = np.zeros((len(sets), max(1, -(-width // 64))), np.uint64)
    for row, bits in enumerate(sets):
        for bit in bits:
            masks[row, bit // 64] |= np.uint64(1 << (bit % 64))
    return masks
