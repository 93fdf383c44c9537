"""Kernels over the hits of a lookup. A hit is a candidate pair of documents, found by one anchor.

In: for each probe a range of the other run's index, and the values of both runs side by side (views). Out: the kind of
each hit, the hits by kind, and the starts of result rows. The kind of a hit is its set S of edges with its anchor and
the order in time, numbered by first occurrence. Each hit is visited twice, and only its kind is stored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.hashes import Hashes
from fishweir.jit import inlined, kernel

Times = NDArray[np.float64]
Kinds = NDArray[np.int32]


@kernel
def key_ranges(keys: Hashes, wanted: Hashes) -> tuple[Ints, Ints]:
    """The start and end of each of the `wanted` keys among sorted keys."""
    lo, hi = np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.int64)
    for i in range(len(wanted)):
        key = wanted[i]
        start, stop = 0, len(keys)
        while start < stop:
            middle = (start + stop) // 2
            if keys[middle] < key:
                start = middle + 1
            else:
                stop = middle
        if start == len(keys) or keys[start] != key:
            continue
        step, end = 1, start + 1
        while end < len(keys) and keys[end] == key:
            end, step = end + step, 2 * step
        stop, end = min(end, len(keys)), end - step // 2
        while end < stop:
            middle = (end + stop) // 2
            if keys[middle] == key:
                end = middle + 1
            else:
                stop = middle
        lo[i], hi[i] = start, end
    return lo, hi


@inlined
def _slot(slots: Kinds, known: Hashes, key: np.uint64) -> int:
    """The slot of a key, or the slot where it would be inserted."""
    slot: int = np.int64(key & np.uint64(len(slots) - 1))  # type: ignore[assignment]
    while slots[slot] >= 0 and known[slots[slot]] != key:
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@kernel
def kinds_of_hits(
    lo: Ints,
    hi: Ints,
    found: Ints,
    ours: Ints,
    anchors: Ints,
    mine: NDArray[np.bool_],
    own: Hashes,
    other: Hashes,
    edges: Ints,
    looked_up: NDArray[np.bool_],
    own_times: Times,
    other_times: Times,
    reaches: Times,
    right_is_own: bool,
    is_same: bool,
) -> tuple[Kinds, Ints]:
    """Returns the kind of each hit of the probes that are `mine`, 3 * set + order in time, and the first hit of each
    set.

    `ours` and `anchors` describe the probes, those of one document being contiguous. An anchor and the edges that hold
    form a set. An edge that was `looked_up` holds for the partners in its own range, which are marked. Other edges are
    compared for each hit. A hit that no window of the anchor spans (`reaches`, by anchor and order) has no kind, -1.
    Documents must bind each variable at most once."""
    size = max(1, (len(edges) + 63) // 64)
    marks, fixed, ends = np.zeros(len(other) * size, np.uint64), np.zeros(size, np.uint64), np.zeros(size, np.int64)
    first, known, slots = np.zeros(16, np.int64), np.zeros(16, np.uint64), np.full(64, -1, np.int32)
    kinds = np.empty(np.sum((hi - lo)[mine]), np.int32)
    own_side = 2 if right_is_own else 1
    given, at = np.zeros(len(edges), np.uint64), np.zeros(len(edges), np.uint64)
    bit = np.zeros(len(edges), np.uint64)
    values, width = other.ravel(), other.shape[1]
    sets = hit = start = 0
    while start < len(lo):
        document, stop, some = ours[start], start, False
        while stop < len(lo) and ours[stop] == document:
            some |= mine[stop]
            stop += 1
        if not some:
            start = stop
            continue
        mark_partners(lo[start:stop], hi[start:stop], found, anchors[start:stop], size, marks)
        edges_of(own[document], edges, looked_up, own_side, fixed, given, at, bit, ends)
        for probe in range(start, stop):
            if not mine[probe]:
                continue
            anchor = np.uint64(anchors[probe] + 1) * np.uint64(0xBF58476D1CE4E5B9)
            anchor ^= anchor >> np.uint64(27)
            for place in range(lo[probe], hi[probe]):
                partner = found[place]
                time, order = own_times[document] - other_times[partner], 2
                if time != 0:
                    order = 0 if (time > 0) == right_is_own else 1
                if (is_same and partner == document) or abs(time) > reaches[anchors[probe], order]:
                    kinds[hit] = -1
                    hit += 1
                    continue
                key, row, j = anchor, np.uint64(partner * width), 0
                for number in range(size):
                    word = fixed[number] | marks[partner * size + number]
                    while j < ends[number]:
                        word |= np.uint64((values[row + at[j]] == given[j]) != (given[j] == 0)) << bit[j]
                        j += 1
                    key = (key ^ word) * np.uint64(0x9E3779B97F4A7C15)
                    key ^= key >> np.uint64(31)
                slot = _slot(slots, known, key)
                if slots[slot] < 0:
                    if sets == len(first):
                        first = np.append(first, np.zeros(sets, np.int64))
                        known = np.append(known, np.zeros(sets, np.uint64))
                        slots = np.full(8 * sets, -1, np.int32)
                        for old in range(sets):
                            slots[_slot(slots, known, known[old])] = old
                        slot = _slot(slots, known, key)
                    slots[slot], known[sets], first[sets] = sets, key, hit
                    sets += 1
                kinds[hit] = 3 * slots[slot] + order
                hit += 1
        clear_partners(lo[start:stop], hi[start:stop], found, size, marks)
        start = stop
    return kinds, first[:sets]


@kernel
def mark_partners(lo: Ints, hi: Ints, found: Ints, anchors: Ints, size: int, marks: Hashes) -> None:
    """Marks at each partner of a document the anchors that found it."""
    for probe in range(len(lo)):
        word, mark = anchors[probe] // 64, np.uint64(1) << np.uint64(anchors[probe] % 64)
        for place in range(lo[probe], hi[probe]):
            marks[found[place] * size + word] |= mark


@kernel
def clear_partners(lo: Ints, hi: Ints, found: Ints, size: int, marks: Hashes) -> None:
    for probe in range(len(lo)):
        for place in range(lo[probe], hi[probe]):
            for number in range(size):
                marks[found[place] * size + number] = 0


@kernel
def edges_of(
    values: Hashes,
    edges: Ints,
    looked_up: NDArray[np.bool_],
    own_side: int,
    fixed: Hashes,
    given: Hashes,
    at: Hashes,
    bit: Hashes,
    ends: Ints,
) -> None:
    """Computes a document's part of the edges: those that it satisfies by itself (`fixed`), and those to compare with a
    partner, word by word up to `ends`: the `given` value (0 if any value will do), the column (`at`) and the `bit`."""
    other_side, compared = 3 - own_side, 0
    fixed[:] = 0
    for edge in range(len(edges)):
        value = values[edges[edge, own_side]]
        if edges[edge, 0] == own_side:
            if value != 0:
                fixed[edge // 64] |= np.uint64(1) << np.uint64(edge % 64)
        elif edges[edge, 0] == other_side or (value != 0 and not looked_up[edge]):
            given[compared] = value if edges[edge, 0] != other_side else np.uint64(0)
            at[compared], bit[compared] = edges[edge, other_side], edge % 64
            compared += 1
        ends[edge // 64] = compared


@kernel
def by_kind(kinds: Kinds, sets: int, lo: Ints, hi: Ints, found: Ints, ours: Ints) -> tuple[Ints, Ints, Ints]:
    """Groups the hits by kind, in order. Returns the start of each kind and the two documents of each hit."""
    starts = np.zeros(3 * sets + 1, np.int64)
    for kind in kinds:
        if kind >= 0:
            starts[kind + 1] += 1
    for kind in range(3 * sets):
        starts[kind + 1] += starts[kind]
    ends = starts.copy()
    mine, theirs = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64)
    hit = 0
    for probe in range(len(lo)):
        for place in range(lo[probe], hi[probe]):
            kind = kinds[hit]
            hit += 1
            if kind >= 0:
                mine[ends[kind]], theirs[ends[kind]] = ours[probe], found[place]
                ends[kind] += 1
    return starts, mine, theirs


@kernel
def row_starts(
    ours: Ints, theirs: Ints, counts: Ints, own_times: Times, times: Times, own_since: Ints, since: Ints, streams: Ints
) -> Ints:
    """The starts of result rows. A row is one document with consecutive partners that satisfy the same queries."""
    starts, rows = np.empty(len(ours) + 1, np.int64), 0
    document = count = version = stream = np.int64(-1)
    time, order = 0.0, np.int64(0)
    for i in range(len(ours)):
        mine, partner = ours[i], theirs[i]
        here = max(own_times[mine], times[partner])
        came = min(own_since[mine], since[partner])
        turn = np.int64(own_times[mine] > times[partner]) - np.int64(own_times[mine] < times[partner])
        if (
            i == 0
            or mine != document
            or counts[i] != count
            or came != version
            or streams[partner] != stream
            or here != time
            or turn != order
        ):
            document, count, version, stream, time, order = mine, counts[i], came, streams[partner], here, turn
            starts[rows] = i
            rows += 1
    starts[rows] = len(ours)
    return starts[: rows + 1]
