"""The join of a batch: its run against the runs retained, and against itself.

In: the plain edge sets, the new run and the old ones. Out: pairs of documents with the queries that want them, as
prefixes of remembered sets. A pair is met when the later arrived of its documents arrives: the new documents as right
ones meet all left ones, the new ones too; as left ones they meet the old right ones. Only the anchors' values are
looked up; `part` of `parts` takes those values whose hash falls to it, so that tasks share nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fishweir.sharing.arrays import Ints, expand
from fishweir.sharing.joins.edges import EARLIER, LATER, TOGETHER, Contained, EdgeSets
from fishweir.sharing.joins.state import Hashes, Run, combine
from fishweir.sharing.joins.views import View, least_common, pair_words, words_to_keys

PAIRS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Met:
    """Pairs of two runs that want one set: the first `counts` queries of `wanted` each. Without `nodes` the pair of
    documents says it all: each binds what the queries read just once."""

    left: Run
    right: Run
    lefts: Ints
    rights: Ints
    wanted: Contained
    counts: Ints
    nodes: Ints | None = None


@dataclass(frozen=True)
class Doubt:
    """Pairs of two runs that a table's patterns must be laid over to know."""

    left: Run
    right: Run
    lefts: Ints
    rights: Ints
    table: int


def join_runs(
    sets: EdgeSets, new: Run, old: Sequence[Run], part: int = 0, parts: int = 1
) -> Iterator[Met | Doubt]:
    """What the new documents meet."""
    if not len(sets.tables):
        return
    fresh = sets.view(new)
    for run in (new, *old):
        retained = fresh if run is new else sets.view(run)
        yield from _meet(sets, retained, fresh, True, part, parts)
        if run is not new:
            yield from _meet(sets, fresh, retained, False, part, parts)


def _meet(
    sets: EdgeSets, left: View, right: View, right_is_new: bool, part: int, parts: int
) -> Iterator[Met | Doubt]:
    """The values of the new documents, of all anchors at once, looked up among the others."""
    probing, probed = (right, left) if right_is_new else (left, right)
    anchors = np.array(list(sets.by_anchor), dtype=np.int64)
    own, other = (sets.edges[anchors, side] for side in ((2, 1) if right_is_new else (1, 2)))
    there = (probing.columns[own] >= 0) & (probed.columns[other] >= 0)
    anchors, own, other = anchors[there], own[there], other[there]
    size, width = len(probing.run), len(probing.run.variables)
    cells = (np.arange(size) * width + probing.columns[own][:, None]).ravel()
    source, at = expand(probing.run.cells[cells], probing.run.cells[cells + 1])
    place, documents, hashes = source // max(size, 1), source % max(size, 1), probing.run.values[at]
    if parts > 1:
        mine = (hashes % np.uint64(parts)) == np.uint64(part)
        place, documents, hashes = place[mine], documents[mine], hashes[mine]
    if probing.has_several:  # a document may have the same value twice
        _, once = np.unique(combine((place << 32 | documents).astype(np.uint64), hashes), return_index=True)
        once.sort()
        place, documents, hashes = place[once], documents[once], hashes[once]
    keys = combine(sets.keys[other][place], hashes)
    lo, hi = (np.searchsorted(probed.run.keys, keys, side) for side in ("left", "right"))
    for some in portions(hi - lo):
        probe, found = expand(lo[some], hi[some])
        ours, theirs = documents[some][probe], probed.run.documents[found]
        lefts, rights = (theirs, ours) if right_is_new else (ours, theirs)
        chosen = anchors[place[some][probe]]
        if left.has_several or right.has_several:
            once = _once(sets.edges[chosen], left, right, lefts, rights, hashes[some][probe])
            chosen, lefts, rights = chosen[once], lefts[once], rights[once]
        yield from _decide(sets, chosen, left, right, lefts, rights)


def portions(lengths: Ints) -> Iterator[slice]:
    """Stretches of probes with about PAIRS_AT_ONCE hits each."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + PAIRS_AT_ONCE, "right")))
        if int(ends[stop - 1]) > before:
            yield slice(start, stop)
        start = stop


def _once(edges: Ints, left: View, right: View, lefts: Ints, rights: Ints, hashes: Hashes) -> Ints:
    """Each pair of an anchor by the least of the values that it has in common: several, in several tasks, find it."""
    least = least_common(
        lefts * len(left.run.variables) + left.columns[edges[:, 1]],
        rights * len(right.run.variables) + right.columns[edges[:, 2]],
        left.run.cells, left.run.values, right.run.cells, right.run.values,
    )  # fmt: skip
    chosen = np.flatnonzero(least == hashes)
    order = chosen[np.lexsort((rights[chosen], lefts[chosen], edges[chosen, 2], edges[chosen, 1]))]
    columns = (edges[order, 1], edges[order, 2], lefts[order], rights[order])
    return order[np.append(True, np.any([np.diff(column) != 0 for column in columns], axis=0))[: len(order)]]


def _decide(
    sets: EdgeSets, anchors: Ints, left: View, right: View, lefts: Ints, rights: Ints
) -> Iterator[Met | Doubt]:
    if left.run is right.run:
        two = lefts != rights
        anchors, lefts, rights = anchors[two], lefts[two], rights[two]
    if not len(lefts):
        return
    words = pair_words(left, right, lefts, rights, sets.edges)
    _, first, group = np.unique(words_to_keys(anchors, words), return_index=True, return_inverse=True)
    entries = [sets.entry(int(anchors[row]), words[row]) for row in first]
    times, order = apart(left.run, right.run, lefts, rights)
    by_group = np.argsort(group * 3 + order, kind="stable")
    kinds = (group * 3 + order)[by_group]
    starts = np.flatnonzero(np.append(True, kinds[1:] != kinds[:-1]))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(kinds)], strict=True):
        rows = by_group[start:stop]
        entry = entries[int(kinds[start]) // 3]
        for table in entry.doubtful:
            yield Doubt(left.run, right.run, lefts[rows], rights[rows], table)
        wanted = entry.wanted(int(kinds[start]) % 3)
        if len(wanted.members):
            counts = wanted.count(np.abs(times[rows]))
            some = rows[counts > 0]
            if len(some):
                yield Met(left.run, right.run, lefts[some], rights[some], wanted, counts[counts > 0])


def apart(left: Run, right: Run, lefts: Ints, rights: Ints) -> tuple[NDArray[np.float64], Ints]:
    """How much later the right documents are, and their order in time."""
    times = right.times[rights] - left.times[lefts]
    return times, np.where(times > 0, LATER, np.where(times < 0, EARLIER, TOGETHER))
