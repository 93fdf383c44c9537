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
from fishweir.sharing.joins.edges import (
    EARLIER,
    EQUAL,
    LATER,
    TOGETHER,
    Contained,
    EdgeSets,
    View,
    least_common,
    pair_words,
    view_of,
    words_to_keys,
)
from fishweir.sharing.joins.state import Hashes, Run, combine

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
    fresh = view_of(new, sets)
    for run in (new, *old):
        retained = fresh if run is new else view_of(run, sets)
        yield from _meet(sets, retained, fresh, True, part, parts)
        if run is not new:
            yield from _meet(sets, fresh, retained, False, part, parts)


def _meet(
    sets: EdgeSets, left: View, right: View, right_is_new: bool, part: int, parts: int
) -> Iterator[Met | Doubt]:
    for anchor in sets.by_anchor:
        kind, a, b = sets.edges[anchor]
        assert kind == EQUAL
        probing, probed = (right, left) if right_is_new else (left, right)
        own, other = (b, a) if right_is_new else (a, b)
        column = probing.columns[own]
        if column < 0 or probed.columns[other] < 0:
            continue
        width = len(probing.run.variables)
        cells = np.arange(len(probing.run)) * width + column
        documents, at = expand(probing.run.cells[cells], probing.run.cells[cells + 1])
        hashes = probing.run.values[at]
        if parts > 1:
            mine = (hashes % np.uint64(parts)) == np.uint64(part)
            documents, hashes = documents[mine], hashes[mine]
        if probing.has_several:
            _, once = np.unique(combine(documents.astype(np.uint64), hashes), return_index=True)
            documents, hashes = documents[np.sort(once)], hashes[np.sort(once)]
        keys = combine(int(sets.keys[other]), hashes)
        lo = np.searchsorted(probed.run.keys, keys, "left")
        hi = np.searchsorted(probed.run.keys, keys, "right")
        for some in _portions(hi - lo):
            source, found = expand(lo[some], hi[some])
            mine_, theirs = documents[some][source], probed.run.documents[found]
            lefts, rights = (theirs, mine_) if right_is_new else (mine_, theirs)
            if left.has_several or right.has_several:
                lefts, rights = _once(sets.edges[anchor], left, right, lefts, rights, hashes[some][source])
            yield from _decide(sets, int(anchor), left, right, lefts, rights)


def _portions(lengths: Ints) -> Iterator[slice]:
    """Stretches of probes with about PAIRS_AT_ONCE hits each."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + PAIRS_AT_ONCE, "right")))
        if int(ends[stop - 1]) > before:
            yield slice(start, stop)
        start = stop


def _once(edge: Ints, left: View, right: View, lefts: Ints, rights: Ints, hashes: Hashes) -> tuple[Ints, Ints]:
    """Each pair by the least of the values that it has in common: several may find it, in several tasks."""
    _, a, b = edge
    least = least_common(
        lefts * len(left.run.variables) + left.columns[a], rights * len(right.run.variables) + right.columns[b],
        left.run.cells, left.run.values, right.run.cells, right.run.values,
    )  # fmt: skip
    chosen = least == hashes
    pairs = np.unique(lefts[chosen] << 32 | rights[chosen])
    return pairs >> 32, pairs & 0xFFFFFFFF


def _decide(
    sets: EdgeSets, anchor: int, left: View, right: View, lefts: Ints, rights: Ints
) -> Iterator[Met | Doubt]:
    if left.run is right.run:
        two = lefts != rights
        lefts, rights = lefts[two], rights[two]
    if not len(lefts):
        return
    words = pair_words(left, right, lefts, rights, sets.edges)
    _, first, group = np.unique(words_to_keys(words), return_index=True, return_inverse=True)
    entries = [sets.entry(anchor, words[row]) for row in first]
    times, order = apart(left.run, right.run, lefts, rights)
    by_group = np.argsort(group * 3 + order, kind="stable")
    kinds = (group * 3 + order)[by_group]
    starts = np.flatnonzero(np.append(True, kinds[1:] != kinds[:-1]))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(kinds)], strict=True):
        rows = by_group[start:stop]
        entry = entries[int(kinds[start]) // 3]
        for table in entry.doubtful:
            yield Doubt(left.run, right.run, lefts[rows], rights[rows], table)
        wanted = entry.orders[int(kinds[start]) % 3]
        if len(wanted.members):
            counts = wanted.count(np.abs(times[rows]))
            some = rows[counts > 0]
            if len(some):
                yield Met(left.run, right.run, lefts[some], rights[some], wanted, counts[counts > 0])


def apart(left: Run, right: Run, lefts: Ints, rights: Ints) -> tuple[NDArray[np.float64], Ints]:
    """How much later the right documents are, and their order in time."""
    times = right.times[rights] - left.times[lefts]
    return times, np.where(times > 0, LATER, np.where(times < 0, EARLIER, TOGETHER))
