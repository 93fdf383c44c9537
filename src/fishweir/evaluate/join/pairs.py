"""Joins the run of a batch with the retained runs and with itself.

In: the plain edge sets, the new run and the old ones. Out: pairs of documents with the queries they satisfy, as
prefixes of cached sets. A pair is found when the second of its documents arrives: new right documents join all left
ones, old and new; new left documents join the old right ones. Only the anchors' values are looked up. `part` of `parts`
takes the values whose hash falls to it, so that tasks share nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.join.edges import EARLIER, LATER, TOGETHER, Contained, EdgeSets, Entry
from fishweir.evaluate.join.hashes import Hashes, combine
from fishweir.evaluate.join.hits import by_kind, key_ranges, kinds_of_hits
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.join.value_views import View, least_common, pair_words, words_to_keys

PAIRS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class SetPairs:
    """Pairs of two runs with one set of queries: each satisfies the first `counts` queries of `contained`. Without
    `nodes`, each document binds each node that the queries read exactly once."""

    left: Run
    right: Run
    lefts: Ints
    rights: Ints
    contained: Contained
    counts: Ints
    nodes: Ints | None = None
    by_right: bool = True
    """Whether the pairs of each right document are contiguous; otherwise, those of each left document are."""


@dataclass(frozen=True)
class UnverifiedPairs:
    """Pairs of two runs that can only be decided by matching a table's patterns."""

    left: Run
    right: Run
    lefts: Ints
    rights: Ints
    table: int


@dataclass(frozen=True)
class Probes:
    """Values of documents, each with its range in the other run's index."""

    lo: Ints
    hi: Ints
    documents: Ints
    anchors: Ints
    hashes: Hashes

    def take(self, some: slice | NDArray[np.bool_]) -> Probes:
        return Probes(self.lo[some], self.hi[some], self.documents[some], self.anchors[some], self.hashes[some])


def join_runs(
    sets: EdgeSets, new: Run, old: Sequence[Run], part: int = 0, parts: int = 1
) -> Iterator[SetPairs | UnverifiedPairs]:
    """Yields the join partners of the new documents."""
    if not len(sets.tables):
        return
    fresh = sets.view(new)
    for run in (new, *old):
        yield from pair_runs(sets, fresh, fresh if run is new else sets.view(run), part, parts)


def pair_runs(
    sets: EdgeSets, fresh: View, retained: View, part: int, parts: int
) -> Iterator[SetPairs | UnverifiedPairs]:
    """Yields the join partners of the new documents in one run, which may be their own."""
    yield from _pair(sets, retained, fresh, True, part, parts)
    if retained is not fresh:
        yield from _pair(sets, fresh, retained, False, part, parts)


def _pair(
    sets: EdgeSets, left: View, right: View, right_is_new: bool, part: int, parts: int
) -> Iterator[SetPairs | UnverifiedPairs]:
    """Looks up the values of the new documents, of all anchors at once, among the others."""
    if not sets.can_pair(left.run, right.run):
        return
    probing, probed = (right, left) if right_is_new else (left, right)
    anchors = np.array(list(sets.by_anchor), dtype=np.int64)
    own, other = (sets.edges[anchors, side] for side in ((2, 1) if right_is_new else (1, 2)))
    there = (probing.columns[own] >= 0) & (probed.columns[other] >= 0)
    anchors, own, other = anchors[there], own[there], other[there]
    many, width = len(anchors), len(probing.run.variables)
    cells = (np.arange(len(probing.run))[:, None] * width + probing.columns[own]).ravel()
    source, at = expand(probing.run.cells[cells], probing.run.cells[cells + 1])
    documents, place, hashes = source // max(many, 1), source % max(many, 1), probing.run.values[at]
    if probing.has_several:  # a document may have the same value twice
        _, once = np.unique(combine((place << 32 | documents).astype(np.uint64), hashes), return_index=True)
        once.sort()
        place, documents, hashes = place[once], documents[once], hashes[once]
    lo, hi = key_ranges(probed.run.keys, combine(sets.keys[other][place], hashes))
    there = np.flatnonzero(hi > lo)
    probes = Probes(lo[there], hi[there], documents[there], anchors[place[there]], hashes[there])
    mine = (probes.hashes % np.uint64(parts)) == np.uint64(part)
    if left.has_several or right.has_several:
        probes = probes.take(mine)
        for some in portions(probes.hi - probes.lo):
            yield from _decide_several(sets, left, right, probes.take(some), right_is_new)
        return
    starts = np.flatnonzero(np.diff(probes.documents, prepend=-1))
    ends = np.append(starts, len(probes.documents))
    for some in portions(np.add.reduceat(probes.hi - probes.lo, starts) if len(starts) else starts):
        whole = slice(int(ends[some.start]), int(ends[some.stop]))  # all probes of a document
        if mine[whole].any():
            yield from _decide(sets, left, right, probes.take(whole), mine[whole], anchors, right_is_new)


def portions(lengths: Ints) -> Iterator[slice]:
    """Ranges of probes with about PAIRS_AT_ONCE hits each."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + PAIRS_AT_ONCE, "right")))
        if int(ends[stop - 1]) > before:
            yield slice(start, stop)
        start = stop


def _decide(
    sets: EdgeSets, left: View, right: View, probes: Probes, mine: NDArray[np.bool_], anchors: Ints, right_is_new: bool
) -> Iterator[SetPairs | UnverifiedPairs]:
    """Decides the pairs if each document binds each variable at most once."""
    own, other = (right, left) if right_is_new else (left, right)
    kinds, first = kinds_of_hits(
        probes.lo,
        probes.hi,
        other.run.documents,
        probes.documents,
        probes.anchors,
        mine,
        own.values,
        other.values,
        sets.edges,
        np.isin(np.arange(len(sets.edges)), anchors),
        own.run.times,
        other.run.times,
        sets.longest,
        right_is_new,
        own.run is other.run,
    )
    probes = probes.take(mine)
    upto = np.cumsum(probes.hi - probes.lo)
    probe = np.searchsorted(upto, first, "right")
    at = probes.hi[probe] - (upto[probe] - first)
    found, ours = other.run.documents[at], probes.documents[probe]
    lefts, rights = (found, ours) if right_is_new else (ours, found)
    words = pair_words(left, right, lefts, rights, sets.edges)
    entries = [sets.entry(int(anchor), word) for anchor, word in zip(probes.anchors[probe], words, strict=True)]
    starts, ours, theirs = by_kind(kinds, len(first), probes.lo, probes.hi, other.run.documents, probes.documents)
    lefts, rights = (theirs, ours) if right_is_new else (ours, theirs)
    yield from _with_queries(entries, starts, left.run, right.run, lefts, rights, right_is_new)


def _decide_several(
    sets: EdgeSets, left: View, right: View, probes: Probes, right_is_new: bool
) -> Iterator[SetPairs | UnverifiedPairs]:
    probed = left if right_is_new else right
    probe, found = expand(probes.lo, probes.hi)
    ours, theirs, anchors = probes.documents[probe], probed.run.documents[found], probes.anchors[probe]
    lefts, rights = (theirs, ours) if right_is_new else (ours, theirs)
    once = _once(sets.edges[anchors], left, right, lefts, rights, probes.hashes[probe])
    if left.run is right.run:
        once = once[lefts[once] != rights[once]]
    anchors, lefts, rights = anchors[once], lefts[once], rights[once]
    words = pair_words(left, right, lefts, rights, sets.edges)
    _, first, group = np.unique(words_to_keys(anchors, words), return_index=True, return_inverse=True)
    entries = [sets.entry(int(anchors[row]), words[row]) for row in first]
    kinds = group * 3 + apart(left.run, right.run, lefts, rights)[1]
    order = np.lexsort((lefts, rights, kinds) if right_is_new else (rights, lefts, kinds))
    starts = np.searchsorted(kinds[order], np.arange(3 * len(first) + 1))
    yield from _with_queries(entries, starts, left.run, right.run, lefts[order], rights[order], right_is_new)


def _once(edges: Ints, left: View, right: View, lefts: Ints, rights: Ints, hashes: Hashes) -> Ints:
    """The distinct pairs of an anchor, each at the least of its common values: several values, in several tasks, may
    find it."""
    least = least_common(
        lefts * len(left.run.variables) + left.columns[edges[:, 1]],
        rights * len(right.run.variables) + right.columns[edges[:, 2]],
        left.run.cells,
        left.run.values,
        right.run.cells,
        right.run.values,
    )
    chosen = np.flatnonzero(least == hashes)
    order = chosen[np.lexsort((rights[chosen], lefts[chosen], edges[chosen, 2], edges[chosen, 1]))]
    columns = (edges[order, 1], edges[order, 2], lefts[order], rights[order])
    return order[np.append(True, np.any([np.diff(column) != 0 for column in columns], axis=0))[: len(order)]]


def _with_queries(
    entries: Sequence[Entry], starts: Ints, left: Run, right: Run, lefts: Ints, rights: Ints, by_right: bool
) -> Iterator[SetPairs | UnverifiedPairs]:
    """Yields the queries of the pairs of each kind, which are contiguous."""
    for kind in np.flatnonzero(np.diff(starts)).tolist():
        entry, some = entries[kind // 3], slice(int(starts[kind]), int(starts[kind + 1]))
        for table in entry.undecided:
            yield UnverifiedPairs(left, right, lefts[some], rights[some], table)
        contained = entry.contained(kind % 3)
        if not len(contained.members):
            continue
        if np.isinf(contained.reaches[-1]):
            counts = np.full(some.stop - some.start, len(contained.members))
            yield SetPairs(left, right, lefts[some], rights[some], contained, counts, None, by_right)
            continue
        counts = contained.count(np.abs(right.times[rights[some]] - left.times[lefts[some]]))
        near = np.flatnonzero(counts)
        if len(near):
            yield SetPairs(left, right, lefts[some][near], rights[some][near], contained, counts[near], None, by_right)


def apart(left: Run, right: Run, lefts: Ints, rights: Ints) -> tuple[NDArray[np.float64], Ints]:
    """How much later the right documents are, and their order in time."""
    times = right.times[rights] - left.times[lefts]
    return times, np.where(times > 0, LATER, np.where(times < 0, EARLIER, TOGETHER))
