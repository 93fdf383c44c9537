"""Joins of three or more streams: finds all combinations that a batch's documents complete (an MJoin).

In: such joins, the new run and the old ones. Out: combinations of documents with the queries they satisfy. Each side in
turn takes its documents from the new run. Sides before it take only old documents, sides after it old and new ones, so
each combination is found once, when the last of its documents arrives. From there, combinations grow side by side along
the join graph: by equal values first, then by other comparisons, else by time or by the remaining queries, whichever
lookup leaves the fewest.

A combination that no window can admit is dropped at each step, since windows only get tighter as it grows. A
combination that no query can match is dropped too. No code loops over combinations: they grow in portions, depth first,
which bounds the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.nodes import MIRRORED, Operator
from fishweir.algebra.values import COMPARE
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.join.join_tables import is_hashed
from fishweir.evaluate.join.many.candidates import ByQuery, ByValue, Candidates, Documents, Lookup, by_time
from fishweir.evaluate.join.many.multiway import MultiwayJoin
from fishweir.evaluate.join.many.partial import Combinations, Partial, together
from fishweir.evaluate.join.many.query_kernels import Floats, Lists, in_both, within
from fishweir.evaluate.join.many.side_views import SideView, side_view
from fishweir.evaluate.join.pairing import RunContext
from fishweir.evaluate.join.pairs import portions
from fishweir.evaluate.join.ranks import Ranks
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.join.superseded import SupersededRows

MEMBERS_A_STEP = 4
"""Number of queries of a combination that weigh as much as one more combination when portions are cut."""


class ManyJoins(Protocol):
    """Joins of three or more streams."""

    @property
    def many(self) -> Sequence[MultiwayJoin]: ...


def find_many(
    joins: Sequence[ManyJoins],
    new: Run,
    old: Sequence[Run],
    part: int = 0,
    parts: int = 1,
    known: RunContext | None = None,
) -> Iterator[Combinations]:
    """Yields the combinations that the new documents complete, among themselves and with the old ones, restricted to
    `part` of `parts`."""
    every = [join for some in joins for join in some.many]
    if not every or not len(new.rows):
        return
    known = known or RunContext([*old, new])
    documents = Documents([*old, new])
    present = set(np.unique(new.rows.classes).tolist())
    for join in every:
        for side, key in enumerate(join.table.keys):
            if key in present:
                yield from _from_side(join, side, documents, part, parts, known)


def _from_side(
    join: MultiwayJoin, side: int, documents: Documents, part: int, parts: int, known: RunContext
) -> Iterator[Combinations]:
    """The combinations whose document of this side is new and whose documents of the sides before it are old."""
    *old, new = documents.runs
    fresh = side_view(join, side, new)
    mine = np.flatnonzero(fresh.documents % parts == part)
    if not len(mine):
        return
    candidates: list[Candidates] = []
    for other in range(len(join.template.sides)):
        runs = [run for run in old if _near(join, side, other, new, run)] + ([new] if other > side else [])
        views = [fresh] if other == side else [view for run in runs if len(view := side_view(join, other, run))]
        if not views:
            return
        candidates.append(Candidates(views))
    growth = _Growth(join, tuple(candidates), documents, known.ranks, known.superseded, known.passed_on)
    yield from growth.grown(growth.start(side, fresh, mine))


def _near(join: MultiwayJoin, side: int, other: int, new: Run, run: Run) -> bool:
    """Whether any window of the two sides can reach from the new documents to those of a run, or back."""
    before, after = (np.inf if join.template.counts_rows[i] else float(join.longest[i]) for i in (other, side))
    return len(run) > 0 and new.oldest - run.newest <= before and run.oldest - new.newest <= after


@dataclass(frozen=True)
class _Edge:
    """A comparison with a side not joined yet: the side's value, and how each combination's value compares with it."""

    value: int
    hashed: bool
    op: Operator
    own: Any


@dataclass(frozen=True)
class _Growth:
    """The candidate rows of a join's sides, given which side is new."""

    join: MultiwayJoin
    candidates: tuple[Candidates, ...]
    documents: Documents
    ranks: Ranks
    superseded: SupersededRows
    passed_on: bool

    @cached_property
    def counted(self) -> tuple[bool, ...]:
        return self.join.template.counts_rows

    @cached_property
    def differ(self) -> bool:
        """Whether the windows of the table's queries differ. If not, checking the longest windows suffices."""
        return any(reach.min() != reach.max() for reach in self.join.reaches)

    def start(self, side: int, view: SideView, rows: Ints) -> Partial:
        documents, times = self.documents.start(view.run) + view.documents[rows], view.times[rows]
        return Partial({side: rows}, {side: documents}, {side: times}, times, self._lists(side, view, rows))

    def _lists(self, side: int, view: SideView, rows: Ints) -> Lists | None:
        if not self.join.template.sides[side].conditions:
            return None
        return view.member_starts[rows], view.member_starts[rows + 1], view.members

    def grown(self, partial: Partial) -> Iterator[Combinations]:
        if len(partial.rows) == len(self.candidates):
            yield from self._results(partial)
            return
        edges = {side: self._edges(partial, side) for side in range(len(self.candidates)) if side not in partial.rows}
        probe, hits = self._chosen(partial, edges)
        if partial.remaining is not None:
            hits = hits * (1 + (partial.remaining[1] - partial.remaining[0]) // MEMBERS_A_STEP)
        for some in portions(hits):
            more = self._joined(partial, some, probe, edges[probe.side])
            if more is not None:
                yield from self.grown(more)

    # Choosing the next side and its lookup.

    def _chosen(self, partial: Partial, edges: Mapping[int, Sequence[_Edge]]) -> tuple[Lookup, Ints]:
        """The lookup that leaves the fewest rows, among the sides with the best kind of comparison, or by queries."""
        kinds = {side: min((_kind(edge.op) for edge in own), default=2) for side, own in edges.items()}
        best: tuple[int, Lookup, Ints] | None = None
        for side in (side for side in edges if kinds[side] == min(kinds.values())):
            for probe in self._probes(partial, side, edges[side]):
                best = self._fewer(best, probe)
            if best is None or best[0] > len(partial):
                best = self._fewer(best, self._by_time(partial, side))
            if not best[0]:
                break
        assert best is not None, "a side is left"
        if partial.remaining is not None and int((partial.remaining[1] - partial.remaining[0]).sum()) < best[0]:
            for side in (side for side in edges if self.join.template.sides[side].conditions):
                best = self._fewer(best, ByQuery(side, partial.remaining))
        return best[1], best[2]

    def _fewer(self, best: tuple[int, Lookup, Ints] | None, probe: Lookup) -> tuple[int, Lookup, Ints]:
        hits = probe.hits(self.candidates[probe.side])
        total = int(hits.sum())
        return (total, probe, hits) if best is None or total < best[0] else best

    def _edges(self, partial: Partial, side: int) -> list[_Edge]:
        """The edges between a side and the joined sides."""
        found = []
        for edge in self.join.template.edges:
            one, two = (edge.left_side, edge.left), (edge.right_side, edge.right)
            op = edge.comparison
            if one[0] == side:
                one, two, op = two, one, MIRRORED[op]
            if two[0] != side or one[0] not in partial.rows:
                continue
            hashed = is_hashed(edge)
            values = self.candidates[one[0]].value(partial.rows[one[0]], self.join.value(*one, hashed))
            own = values if hashed else np.ascontiguousarray(values).view(np.float64)
            found.append(_Edge(self.join.value(*two, hashed), hashed, op, own))
        return found

    def _probes(self, partial: Partial, side: int, edges: Sequence[_Edge]) -> Iterator[Lookup]:
        for value, hashed in dict.fromkeys((edge.value, edge.hashed) for edge in edges):
            against = tuple((edge.op, edge.own) for edge in edges if edge.value == value and edge.op != "!=")
            if against:
                yield ByValue(side, value, hashed, against)

    def _by_time(self, partial: Partial, side: int) -> Lookup:
        until = np.full(len(partial), np.inf)
        for other, times in partial.times.items():
            if not self.counted[other]:
                until = np.minimum(until, times + self.join.longest[other])
        return by_time(side, partial.newest, self._range(side), until)

    # Joining one more side.

    def _joined(self, partial: Partial, some: slice, probe: Lookup, edges: Sequence[_Edge]) -> Partial | None:
        checked = [edge for edge in edges if edge.value != probe.value or edge.op == "!="]
        candidates = self.candidates[probe.side]
        parts = []
        for view, start in zip(candidates.views, candidates.starts.tolist(), strict=True):
            source, rows = probe.found(view, some)
            for edge in checked:
                theirs = view.values[rows, edge.value]
                keep = COMPARE[edge.op](edge.own[source], theirs if edge.hashed else theirs.view(np.float64))
                source, rows = source[keep], rows[keep]
            more = self._taken(partial, source, probe.side, view, rows, start)
            if len(more):
                parts.append(more)
        return together(parts) if parts else None

    def _taken(self, partial: Partial, source: Ints, side: int, view: SideView, rows: Ints, start: int) -> Partial:
        """The combinations whose documents are all different and that the windows of some query admit."""
        document, time = self.documents.start(view.run) + view.documents[rows], view.times[rows]
        newest = np.maximum(partial.newest[source], time)
        keep = newest - time <= self._range(side)
        for other, documents in partial.documents.items():
            times = partial.times[other][source]
            keep &= (documents[source] != document) & (newest - times <= self._range(other))
            if self.join.template.strict:
                keep &= times != time
        kept = np.flatnonzero(keep)
        found, rows = partial.take(source[kept]), rows[kept]
        return self._with_queries(
            Partial(
                found.rows | {side: rows + start},
                found.documents | {side: document[kept]},
                found.times | {side: time[kept]},
                newest[kept],
                found.remaining,
            ),
            self._lists(side, view, rows),
        )

    def _range(self, side: int) -> float:
        return np.inf if self.counted[side] else float(self.join.longest[side])

    def _with_queries(self, found: Partial, more: Lists | None) -> Partial:
        """The combinations that some query admits by its constants and windows."""
        far = self._far(found) if self.differ or any(self.counted[side] for side in found.rows) else None
        keep = np.ones(len(found), np.bool_)
        if far is not None:
            keep &= (far <= self.join.longest).all(axis=1)
        last, remaining = len(found.rows) == len(self.candidates), found.remaining
        if last and remaining is None and more is None:
            every = np.arange(self.join.table.size)
            remaining = np.zeros(len(found), np.int64), np.full(len(found), len(every)), every
        checked, reaches = (far, self.join.reaches) if far is not None and self.differ else _no_windows(len(found))
        if remaining is not None and more is not None:
            remaining = in_both(remaining, more, checked, reaches)
        elif more is not None or (remaining is not None and checked.shape[1]):
            own = more or remaining
            assert own is not None
            remaining = within(own, checked, reaches) if checked.shape[1] else own
        if remaining is not None:
            keep &= remaining[1] > remaining[0]
        return replace(found, remaining=remaining).take(keep)

    def _far(self, found: Partial) -> Floats:
        """How far the window of each side must reach, in seconds or rows; 0 for the newest side and for sides not
        joined."""
        far = np.zeros((len(found), len(self.candidates)))
        for side, times in found.times.items():
            far[:, side] = found.newest - times
        if not any(self.counted[side] for side in found.rows):
            return far
        streams, places = (
            {i: self.documents.get(own, part) for i, own in found.documents.items()}
            for part in (lambda run: run.streams, self.ranks.places)
        )
        for side in (side for side in found.rows if self.counted[side]):
            behind = np.where(far[:, side] > 0, self.ranks.newest(streams[side], found.newest), 0)
            last = np.zeros(len(found), np.int64)
            for other in (other for other in found.rows if other != side):
                of_same = streams[other] == streams[side]
                seen = np.where(of_same, places[other] + 1, behind)
                last = np.maximum(last, np.where(found.times[other] == found.newest, seen, 0))
            far[:, side] = np.maximum(last - places[side], 0)
        return far

    # Complete combinations.

    def _results(self, found: Partial) -> Iterator[Combinations]:
        if not self.superseded.is_empty:
            found = found.take(self._in_force(found))
        if self.passed_on:
            found = found.take(self._different(found))
        assert found.remaining is not None
        lo, hi, members = found.remaining
        for some in portions(hi - lo):
            documents = [found.documents[side][some] for side in range(len(self.candidates))]
            streams, numbers, since = (
                np.stack([self.documents.get(own, part) for own in documents], axis=1)
                for part in (lambda run: run.streams, lambda run: run.numbers, lambda run: run.since)
            )
            times = np.stack([found.times[side][some] for side in range(len(self.candidates))], axis=1)
            nodes = [own for side, one in enumerate(self.candidates) for own in one.nodes(found.rows[side][some])]
            over = np.stack(nodes, axis=1) if nodes else np.empty((len(times), 0), np.int64)
            _, at = expand(lo[some], hi[some])
            starts = np.append(0, np.cumsum(hi[some] - lo[some])).astype(np.int64)
            order = np.argsort(times, axis=1, kind="stable")
            own = self.join.table.numbers[members[at]]
            yield Combinations(streams, numbers, over, order, found.newest[some], since.min(axis=1), starts, own)

    def _different(self, found: Partial) -> NDArray[np.bool_]:
        """Whether no document occurs twice, in whichever streams."""
        origins = np.stack([self.documents.get(own, lambda run: run.origins) for own in found.documents.values()])
        return (np.diff(np.sort(origins, axis=0), axis=0) != 0).all(axis=0)

    def _in_force(self, found: Partial) -> NDArray[np.bool_]:
        """Whether no document was superseded before another one arrived."""
        keep = np.ones(len(found), np.bool_)
        arrivals = [self.documents.get(own, lambda run: run.arrivals, float) for own in found.documents.values()]
        for i, own in enumerate(found.documents.values()):
            until = self.documents.get(own, self.superseded.until, float)
            for arrival in (arrival for j, arrival in enumerate(arrivals) if j != i):
                keep &= arrival < until
        return keep


def _kind(op: Operator) -> int:
    """Rank of an operator: equalities first, then comparisons that an order decides."""
    return 0 if op == "=" else 2 if op == "!=" else 1


def _no_windows(size: int) -> tuple[Floats, Floats]:
    return np.empty((size, 0)), np.empty((0, 0))
