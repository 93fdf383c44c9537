"""Probing by rows: finds the join partners of new documents for joins that equal values alone do not decide.

In: row joins, the run of new documents and the retained runs. Out: pairs of documents with the nodes that a result is
over and the queries they satisfy. Each new row has a range of the other side's rows, in the order that leaves the
fewest: equal anchor, the values of an order edge, or time within the longest window. Rows of several runs with an equal
anchor are taken together (partners.py). One kernel checks everything else on the range, and a second one finds the
queries of the remaining pairs (row_kernels.py). Shared: both run once for all queries of a join signature, whatever
their conditions and windows.
Paper: Spatial Join CQ, section 6 (probe, insert, invalidate; the window as an axis). SJ-Join's joint space of pairs and
queries is decomposed: conditions of one side are looked up when a document arrives, once for all pairs that it will
ever be in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, number_rows
from fishweir.evaluate.join.edges import EARLIER, LATER, TOGETHER
from fishweir.evaluate.join.hashes import Hashes, combine, hash_order
from fishweir.evaluate.join.pairs import PAIRS_AT_ONCE, SetPairs, portions
from fishweir.evaluate.join.ranks import Ranks
from fishweir.evaluate.join.rows.partners import candidates
from fishweir.evaluate.join.rows.row_joins import RowJoin
from fishweir.evaluate.join.rows.row_kernels import join_stretches, list_queries, queries_of_pairs
from fishweir.evaluate.join.rows.row_views import RowView, view_of
from fishweir.evaluate.join.rows.stretches import Probe, Stretches
from fishweir.evaluate.join.state import Run, SideRows

Floats = NDArray[np.float64]

PAIRS_TOGETHER = 1 << 16
"""Minimum number of pairs of a run that are checked separately. Smaller numbers are checked together with other
runs."""
MEMBERS_AT_ONCE = 1 << 22
"""Number of queries of pairs listed at once, which bounds the memory."""


@dataclass(frozen=True)
class Joined:
    """Results of one join: pairs of documents of two runs, the nodes they are over, and the queries that each
    satisfies."""

    left: Run
    right: Run
    lefts: Ints
    rights: Ints
    nodes: Ints
    member_starts: Ints
    members: Ints


@dataclass(frozen=True)
class RowPairs:
    """Pairs of a new row and a row of a view of the other side, by position in both; their distances and order in
    time."""

    probe: Probe
    view: RowView
    ones: Ints
    others: Ints
    far: Floats
    kinds: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.ones)

    @property
    def sides(self) -> tuple[tuple[RowView, Ints], tuple[RowView, Ints]]:
        """The left side and the right side."""
        new, old = (self.probe.own, self.ones), (self.view, self.others)
        return (old, new) if self.probe.new else (new, old)

    def results(self) -> tuple[Ints, Ints, Ints]:
        """Documents of the left and of the right side, and their nodes."""
        lefts, rights = (side.documents[at] for side, at in self.sides)
        return lefts, rights, np.concatenate([_nodes(side.run.rows, side.rows[at]) for side, at in self.sides], axis=1)

    def compared(self) -> list[Hashes]:
        """The values of each side that constants are compared with."""
        edges, (table,) = len(self.probe.join.ops), self.probe.join.tables
        return [
            rows.values[rows.value_starts[view.rows[at]][:, None] + edges + np.arange(len(side.constants))]
            for (view, at), side in zip(self.sides, table.template.sides, strict=True)
            for rows in [view.run.rows]
        ]


def join_rows(
    joins: Sequence[RowJoin], new: Run, old: Sequence[Run], part: int, parts: int, ranks: Ranks
) -> Iterator[Joined | SetPairs]:
    """Yields the join partners of the new documents by the rows of joins that are not plain; `part` of `parts` of
    them."""
    for join in joins:
        found = (
            matched for side in (1, 0) for matched in _all_row_pairs(_probes(join, side, new, old, part, parts, ranks))
        )
        if join.above:
            yield from _checked_above(join, found)
        else:
            for matched in found:
                yield from _with_queries(matched)


def _probes(join: RowJoin, side: int, new: Run, old: Sequence[Run], part: int, parts: int, ranks: Ranks) -> list[Probe]:
    """The lookups of the new rows of one side: those of the right side look up their own run, too."""
    if not len(new.rows.of_class(join.keys[side])):
        return []
    own = view_of(new, join.keys[side], len(join.ops))
    chosen, anchored = _by_key(join, side, own, _dealt(join, own, part, parts))
    return [
        Probe(join, side, own, chosen, anchored, run, ranks)
        for run in ((new, *old) if side else old)
        if len(chosen) and len(run.rows.of_class(join.keys[1 - side])) and _near(join, side, new, run)
    ]


def _dealt(join: RowJoin, own: RowView, part: int, parts: int) -> Ints:
    """The rows of one part of the work."""
    if parts == 1:
        return own.by_place
    dealt = own.documents.astype(np.uint64) if join.anchor < 0 else own.values[:, join.anchor]
    return np.flatnonzero(dealt % np.uint64(parts) == np.uint64(part))


def _by_key(join: RowJoin, side: int, own: RowView, chosen: Ints) -> tuple[Ints, Hashes]:
    """New rows in the order of the keys that they look up, and these keys."""
    if join.anchor < 0:
        return chosen, np.empty(0, np.uint64)
    keys = combine(join.keys[1 - side], own.values[chosen, join.anchor])
    order = hash_order(keys)
    return chosen[order], keys[order]


def _near(join: RowJoin, side: int, new: Run, run: Run) -> bool:
    """Whether the times of two runs are close enough for any window."""
    left, right = (run, new) if side else (new, run)
    for kind, one, two in ((LATER, left, right), (EARLIER, right, left)):
        reach = np.inf if join.counts_rows[kind] else float(join.longest[kind])
        if one.oldest <= two.newest and two.oldest - one.newest <= reach:
            return True
    return False


def _all_row_pairs(probes: Sequence[Probe]) -> Iterator[RowPairs]:
    for probe, found in candidates(probes):
        counted = _counted(probe, found.view)
        for some in _portions(probe.own.documents[probe.chosen], found.ends - found.starts):
            matched = _row_pairs(probe, found, some, counted)
            if len(matched):
                yield matched


def _portions(documents: Ints, lengths: Ints) -> Iterator[Ints]:
    """Portions of rows with about PAIRS_AT_ONCE candidates. The rows of a document stay together, because all pairs
    over the same nodes are one result."""
    order = np.argsort(documents, kind="stable")
    if lengths.sum() <= PAIRS_AT_ONCE:
        yield order
        return
    starts = np.flatnonzero(np.diff(documents[order], prepend=-1))
    ends = np.append(starts, len(order))
    for some in portions(np.add.reduceat(lengths[order], starts) if len(starts) else lengths):
        yield order[ends[some.start] : ends[some.stop]]


def _counted(probe: Probe, view: RowView) -> tuple[Any, Any, Any]:
    """For windows of rows: positions and streams of both sides' rows, and the positions of the newest row of each
    stream at the times of the new rows and of the rows that are later than some new one."""
    own, run, ranks = probe.own, probe.run, probe.ranks
    if not any(probe.join.counts_rows):
        nothing, none = np.empty(0, np.int64), np.empty((0, 0), np.int64)
        return (nothing, nothing), (nothing, nothing), (none, none)
    known, streams = np.unique(
        np.concatenate([own.run.streams[own.documents], run.streams[view.documents]]), return_inverse=True
    )
    sides = [
        (ranks.places(one.run)[one.documents], numbered)
        for one, numbered in ((own, streams[: len(own)]), (view, streams[len(own) :]))
    ]
    when = own.times[probe.chosen]
    later = np.flatnonzero(view.times > when.min(initial=np.inf))
    newest = np.zeros((len(when), len(known)), np.int64), np.zeros((len(view), len(known)), np.int64)
    for i, stream in enumerate(known.tolist()):
        newest[0][:, i] = ranks.behind(stream, when)
        newest[1][later, i] = ranks.behind(stream, view.times[later])
    return sides[0], sides[1], newest


def _row_pairs(probe: Probe, found: Stretches, some: Ints, counted: tuple[Any, Any, Any]) -> RowPairs:
    """The pairs for which all edges hold and some window may reach."""
    join, own, view = probe.join, probe.own, found.view
    room = int(np.maximum(found.ends[some] - found.starts[some], 0).sum()) + 1
    pairs = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room), np.empty(room, np.int8)
    sides = [
        (one.documents, one.times, *numbered, one.values, one.numbers)
        for one, numbered in ((own, counted[0]), (view, counted[1]))
    ]
    newest = counted[2][0][some] if len(counted[2][0]) else counted[2][0], counted[2][1]
    count = join_stretches(
        probe.new,
        probe.chosen[some],
        found.starts[some],
        found.ends[some],
        found.order,
        sides[0],
        sides[1],
        own.run is view.run,
        join.operators,
        np.array([i for i in range(len(join.ops)) if i != found.decided], np.int64),
        join.counts_rows,
        join.longest,
        newest,
        pairs,
    )
    return RowPairs(probe, view, pairs[0][:count], pairs[1][:count], pairs[2][:count], pairs[3][:count])


def _with_queries(matched: RowPairs) -> Iterator[Joined | SetPairs]:
    probe, join = matched.probe, matched.probe.join
    if not any(join.listed):
        yield from all_queries(join, probe.left, probe.right, *matched.results(), matched.far, matched.kinds)
        return
    places, pair = join.places(probe.main), 0
    sets = probe.own.sets(join, probe.new, probe.main), matched.view.sets(join, 1 - probe.new, probe.main)
    pairs = matched.ones, matched.others, matched.far, matched.kinds
    while pair < len(matched):
        kept, starts, members, pair = queries_of_pairs(
            pairs, pair, MEMBERS_AT_ONCE, probe.main, join.even, places.reaches, *sets
        )
        if len(kept):
            lefts, rights, nodes = (column[kept] for column in matched.results())
            yield Joined(probe.left, probe.right, lefts, rights, nodes, starts, places.numbers[members])


def _nodes(rows: SideRows, chosen: Ints) -> Ints:
    width = int(rows.node_starts[chosen[0] + 1] - rows.node_starts[chosen[0]]) if len(chosen) else 0
    return rows.nodes[rows.node_starts[chosen][:, None] + np.arange(width)]


def all_queries(
    join: RowJoin, left: Run, right: Run, lefts: Ints, rights: Ints, nodes: Ints, far: Floats, kinds: Any
) -> Iterator[SetPairs]:
    """The queries of pairs that no constant decides: those whose windows reach far enough, a prefix of all queries."""
    for kind in (LATER, EARLIER, TOGETHER):
        rows = np.flatnonzero(kinds == kind)
        contained = join.all_queries(kind)
        counts = contained.count(far[rows])
        some = rows[counts > 0]
        if len(some):
            yield SetPairs(left, right, lefts[some], rights[some], contained, counts[counts > 0], nodes[some])


def _checked_above(join: RowJoin, found: Iterator[RowPairs]) -> Iterator[Joined]:
    """Checks constants by the values in the rows, separately for orders in time whose windows differ. A query has a
    result once, whichever nodes satisfy its constants. Small numbers of pairs are checked together, whatever their side
    and run."""
    for some in _batched(found):
        which = np.repeat(np.arange(len(some)), [len(matched) for matched in some])
        far, kinds = (np.concatenate([getattr(matched, name) for matched in some]) for name in ("far", "kinds"))
        lefts, rights, nodes = (
            np.concatenate(parts) for parts in zip(*(matched.results() for matched in some), strict=True)
        )
        values = [np.concatenate(parts) for parts in zip(*(matched.compared() for matched in some), strict=True)]
        result = number_rows(which, lefts, rights, *nodes.T)
        by_result = np.argsort(result, kind="stable")
        kinds = join.alike[kinds[by_result]]
        for kind in sorted(set(join.alike.tolist())):
            own = by_result[kinds == kind]
            if not len(own):
                continue
            for at, queries in join.regions(kind).satisfied([side[own] for side in values], far[own], result[own]):
                pair, members, starts = _listed(own[at], queries, join.numbers, result)
                bounds = np.searchsorted(which[pair], np.arange(len(some) + 1)).tolist()
                for matched, first, last in zip(some, bounds, bounds[1:], strict=False):
                    if first < last:
                        mine, ends = pair[first:last], starts[first : last + 1]
                        runs = matched.probe.left, matched.probe.right
                        listed = members[ends[0] : ends[-1]]
                        yield Joined(*runs, lefts[mine], rights[mine], nodes[mine], ends - ends[0], listed)


def _batched(found: Iterator[RowPairs]) -> Iterator[list[RowPairs]]:
    """Combines the pairs of several runs, up to PAIRS_TOGETHER pairs."""
    some: list[RowPairs] = []
    for matched in found:
        some.append(matched)
        if sum(map(len, some)) >= PAIRS_TOGETHER:
            yield some
            some = []
    if some:
        yield some


def _listed(pairs: Ints, queries: Ints, numbers: Ints, result: Ints) -> tuple[Ints, Ints, Ints]:
    """The distinct queries of each result: one pair per result, the queries, and the start of each result's queries."""
    in_order, *listed = list_queries(pairs, queries, numbers, result)
    if in_order:
        return listed[0], listed[1], listed[2]
    keys, first = np.unique(result[pairs] << 32 | numbers[queries], return_index=True)
    starts = np.flatnonzero(np.diff(keys >> 32, prepend=-1))
    return pairs[first[starts]], keys & 0xFFFFFFFF, np.append(starts, len(keys))
