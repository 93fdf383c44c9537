"""Plain joins by a hash join per shape: all edges of the shape form one key.

In: plain join tables, runs. Out: pairs of documents with the queries they satisfy, as prefixes of the table's queries
by window. The cost grows with the number of pairs found, not with the number of pairs that share one value. Shared: the
retained cells and their views are those of edge sets (edges.py), so a table can change between the two strategies at
any time. If a document binds a variable several times, edge sets find and verify the pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.join.edges import EARLIER, LATER, TOGETHER, Contained, EdgeSets, by_reach
from fishweir.evaluate.join.hashes import Hashes, combine
from fishweir.evaluate.join.hits import key_ranges
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.operators import EdgeSetJoins
from fishweir.evaluate.join.pairing import RunContext
from fishweir.evaluate.join.pairs import SetPairs, apart, pair_runs, portions
from fishweir.evaluate.join.rows.probing import Joined
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.join.value_views import EQUAL, View


class ShapeJoins(EdgeSetJoins):
    """Plain two-way joins, looked up by all edges of a shape at once."""

    def __init__(self, tables: Sequence[JoinTable]) -> None:
        super().__init__(tables)
        self.shapes = [ShapeJoin(place, table, self.sets) for place, table in enumerate(self.tables)]

    def pairs(
        self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext
    ) -> Iterator[SetPairs | Joined]:
        fresh = self.sets.view(new)
        for run in (new, *old):
            view = fresh if run is new else self.sets.view(run)
            if fresh.has_several or view.has_several:
                yield from self.verified(pair_runs(self.sets, fresh, view, part, parts))
                continue
            for shape in self.shapes:
                yield from shape.pair(view, fresh, True, part, parts)
                if view is not fresh:
                    yield from shape.pair(fresh, view, False, part, parts)


@dataclass(frozen=True)
class ShapeJoin:
    """One table. `place` distinguishes it from others that read the same view."""

    place: int
    table: JoinTable
    sets: EdgeSets
    _queries: dict[int, Contained] = field(default_factory=dict)

    def pair(self, left: View, right: View, right_is_new: bool, part: int, parts: int) -> Iterator[SetPairs]:
        """Yields the pairs of new documents with the others that have the same key."""
        if not self.sets.can_pair(left.run, right.run):
            return
        own, other = (right, left) if right_is_new else (left, right)
        keys, documents = self.keys(own, int(right_is_new))
        if parts > 1:
            mine = keys % np.uint64(parts) == np.uint64(part)
            keys, documents = keys[mine], documents[mine]
        index, holders = self.index(other, 1 - int(right_is_new))
        lo, hi = key_ranges(index, keys)
        for some in portions(hi - lo):
            probe, at = expand(lo[some], hi[some])
            ours, theirs = documents[some][probe], holders[at]
            if left.run is right.run:
                ours, theirs = ours[ours != theirs], theirs[ours != theirs]
            lefts, rights = (theirs, ours) if right_is_new else (ours, theirs)
            yield from self._with_queries(left.run, right.run, lefts, rights, right_is_new)

    def _with_queries(self, left: Run, right: Run, lefts: Ints, rights: Ints, by_right: bool) -> Iterator[SetPairs]:
        far, orders = apart(left, right, lefts, rights)
        for order in (LATER, EARLIER, TOGETHER):
            rows, contained = np.flatnonzero(orders == order), self.queries(order)
            counts = contained.count(np.abs(far[rows]))
            near = rows[counts > 0]
            if len(near):
                yield SetPairs(left, right, lefts[near], rights[near], contained, counts[counts > 0], None, by_right)

    def queries(self, order: int) -> Contained:
        if order not in self._queries:
            self._queries[order] = by_reach([self.table], order)[0]
        return self._queries[order]

    def keys(self, view: View, side: int) -> tuple[Hashes, Ints]:
        """One hash of all values at this side's ends for each document that has all of them, and the document."""
        if (self.place, side) not in view.keys:
            edges = self.sets.edges[self.sets.of_tables[self.place]]
            ends = edges[edges[:, 0] == EQUAL, 1 + side]
            there = view.values[:, ends].all(axis=1) & view.values[:, edges[edges[:, 0] == 1 + side, 1 + side]].all(
                axis=1
            )
            documents = np.flatnonzero(there)
            found = np.zeros(len(documents), np.uint64)
            for end in ends.tolist():
                found = combine(found, view.values[documents, end])
            view.keys[self.place, side] = found, documents
        return view.keys[self.place, side]

    def index(self, view: View, side: int) -> tuple[Hashes, Ints]:
        """The same, sorted."""
        if (self.place, side) not in view.indexes:
            keys, documents = self.keys(view, side)
            order = np.argsort(keys, kind="stable")
            view.indexes[self.place, side] = keys[order], documents[order]
        return view.indexes[self.place, side]
