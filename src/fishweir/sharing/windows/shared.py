"""The fast strategy: selections once a tuple, comparisons once a pair, and a pair's queries by one intersection.

In: batches of tuples of two sides. Out: (query, r, s). Shared: queries with the same comparisons are a group; a tuple's
set of queries within a group, by its own selections, is looked up when it arrives (`query_sets`); pairs are enumerated
by the sorted values of the group's anchor, equality or the range that a theta or band comparison leaves, or by time
where the windows leave fewer. The queries of a pair are those in both sets: words and-ed, or a list looked up in a
bitmap. Only what differs between the queries of a group, windows and the ends of bands, is checked on the results.

Paper: none; the result is that of SJ-Join (section 6), which looks at each pair and query in one joint space instead.
"""

from __future__ import annotations

import numpy as np

from fishweir.sharing.windows.groups import NO_ANCHOR, grouped
from fishweir.sharing.windows.join import SlidingJoin
from fishweir.sharing.windows.queries import JoinQueries
from fishweir.sharing.windows.query_sets import QuerySets
from fishweir.sharing.windows.shared_kernels import probe_group
from fishweir.sharing.windows.side import Ints
from fishweir.sharing.windows.triples import Triples


class SharedJoin(SlidingJoin):
    """`listed`: sets of queries as lists or as bitmaps; by what the tuples satisfy if not given."""

    def __init__(
        self, queries: JoinQueries, lateness: float = 0.0, same: bool = False, listed: bool | None = None
    ) -> None:
        super().__init__(queries, lateness, same)
        self.groups = grouped(queries, together=True)
        self.sets = [tuple(QuerySets(boxes, listed) for boxes in group.selections) for group in self.groups]

    def _remember(self, side: int, slots: Ints) -> None:
        tuples = self.sides[side]
        for sets in self.sets:
            sets[side].put(slots, tuples.columns[slots], tuples.capacity)

    def _forget(self, side: int, slots: Ints) -> None:
        for sets in self.sets:
            sets[side].free(slots)

    def _probe(self, side: int, new: Ints, limit: int, counts: Ints) -> list[Triples]:
        own, other = self.sides[side], self.sides[1 - side]
        nothing = np.empty(0), np.empty(0, np.int64)
        parts = []
        for group, sets in zip(self.groups, self.sets, strict=True):
            anchored = group.anchor != NO_ANCHOR
            attribute = int((group.rights, group.lefts)[side][0]) if anchored else 0
            by_value = other.by_value(attribute) if anchored else nothing
            comparisons = group.lefts, group.rights, group.low[None], group.high[None], group.own_low, group.own_high
            windows = group.reach.seconds, group.reach.rows, group.reach.even, group.seconds, group.rows
            found = probe_group(
                side, new, limit, own.arrays(), other.arrays(), *by_value, comparisons, windows, int(self.same),
                sets[side].arrays(), sets[1 - side].arrays(), group.members, counts,
            )  # fmt: skip
            parts.append(Triples(*(found[:2] if side == 0 else found[1::-1]), *found[2:]))
        return parts
