"""The fast strategy: selections once a tuple, comparisons once a pair, and a pair's queries by one intersection.

In: batches of tuples of two sides. Out: (query, r, s). Shared: queries with the same comparisons are a group; a tuple's
set of queries within a group, by its own selections, is looked up when it arrives (`query_sets`); pairs are enumerated
by the sorted values of the group's anchor, equality or the range that a theta or band comparison leaves, or by time
where the windows leave fewer. The queries of a pair are those in both sets: words and-ed, or a list looked up in a
bitmap. Only what differs between the queries of a group, windows and the ends of bands, is checked on the results.

Paper: none; the result is that of SJ-Join (section 6), which looks at each pair and query in one joint space instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fishweir.sharing.boxes.matches import Numbers
from fishweir.sharing.jit import kernel, population, trailing_zeros
from fishweir.sharing.windows.groups import NO_ANCHOR, grouped
from fishweir.sharing.windows.join import SlidingJoin
from fishweir.sharing.windows.kernels import (
    came_between,
    count_up,
    in_bands,
    meets,
    value_range,
    widened,
    within_reach,
)
from fishweir.sharing.windows.queries import JoinQueries
from fishweir.sharing.windows.query_sets import QuerySets
from fishweir.sharing.windows.side import Ints
from fishweir.sharing.windows.triples import Triples

LOW_BITS, ONE, NOTHING = np.uint64(63), np.uint64(1), np.uint64(0)


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


@kernel
def probe_group(
    side: int,
    new: Ints,
    limit: int,
    own: Any,
    other: Any,
    values: npt.NDArray[np.float64],
    value_slots: Ints,
    comparisons: Any,
    windows: Any,
    same: int,
    own_sets: Any,
    other_sets: Any,
    members: Ints,
    counts: Ints,
) -> tuple[Ints, Ints, Ints, Numbers]:
    own_times, own_numbers, own_slots, _, own_columns = own
    times, tuple_numbers, slots, position, columns = other
    lefts, rights, low, high, own_low, own_high = comparisons
    longest, most, even, seconds, rows = windows
    listed, words, starts, ends, lists = other_sets
    banded = len(own_low) > 0
    checked = banded or not even
    ones, others = np.empty(64, np.int64), np.empty(64, np.int64)
    offsets, numbers = np.zeros(65, np.int64), np.empty(1024, np.int32)
    first: Any
    last: Any
    written: Any = 0
    pairs = 0
    mine = np.zeros((len(members) + 63) >> 6, dtype=np.uint64)
    both, filled = np.empty_like(mine), np.empty(len(mine), np.int64)
    for place in new:
        time, own_slot = own_times[place], own_slots[place]
        start, end, after = within_reach(time, place, own_times, times, side, longest, most, same)
        first, last, by_time = start, end, True
        if len(lefts) > 0:
            value = own_columns[own_slot, lefts[0] if side == 0 else rights[0]]
            if np.isnan(value):
                continue
            least, greatest = value_range(value, side, low[0, 0], high[0, 0])
            begin, finish = np.searchsorted(values, least), np.searchsorted(values, greatest, side="right")
            if finish - begin < end - start:
                first, last, by_time = begin, finish, False
        if first >= last or not load(own_sets, own_slot, mine):
            continue
        for candidate in range(first, last):
            slot = slots[candidate] if by_time else value_slots[candidate]
            at = candidate if by_time else position[slot]
            if at < start or at >= end or tuple_numbers[at] >= limit:
                continue
            if same and tuple_numbers[at] == own_numbers[place]:
                continue
            if not in_bands(own_columns, own_slot, columns, slot, side, lefts, rights, low, high, 0):
                continue
            before = written
            if listed:
                if written + ends[slot] - starts[slot] + 1 > len(numbers):
                    numbers = widened(numbers, written, ends[slot] - starts[slot] + 1)
                for entry in range(starts[slot], ends[slot]):
                    query = np.uint64(lists[entry])
                    numbers[written] = lists[entry]
                    written += np.int64((mine[query >> np.uint64(6)] >> (query & LOW_BITS)) & ONE)
            else:
                if written + len(members) + 2 > len(numbers):
                    numbers = widened(numbers, written, len(members) + 2)
                written = intersect(mine, words, slot, both, filled, numbers, written)
            if checked and written > before:
                apart = time - times[at]
                between = came_between(time, place, own_times, times[at], at, after, same)
                kept = before
                for entry in range(before, written):
                    query = numbers[entry]
                    numbers[kept] = query
                    kept += (even or meets(apart, between, side, seconds, rows, query)) and (
                        not banded
                        or in_bands(own_columns, own_slot, columns, slot, side, lefts, rights, own_low, own_high, query)
                    )
                written = kept
            if written == before:
                continue
            for entry in range(before, written):
                numbers[entry] = members[numbers[entry]]
            if len(counts) > 0:
                count_up(counts, numbers, before, written)
                written = before
                continue
            if pairs == len(ones):
                ones, others = widened(ones, pairs, 1), widened(others, pairs, 1)
                offsets = widened(offsets, pairs + 1, 1)
            ones[pairs], others[pairs] = own_numbers[place], tuple_numbers[at]
            pairs += 1
            offsets[pairs] = written
    return ones[:pairs], others[:pairs], offsets[: pairs + 1], numbers[:written]


@kernel
def load(sets: Any, slot: int, into: npt.NDArray[np.uint64]) -> bool:
    """The queries of one tuple as a bitmap; False if there are none."""
    listed, words, starts, ends, lists = sets
    if not listed:
        into[:] = words[slot]
        some = NOTHING
        for at in range(len(into)):
            some |= into[at]
        return some != NOTHING
    into[:] = 0
    for entry in range(starts[slot], ends[slot]):
        query = np.uint64(lists[entry])
        into[query >> np.uint64(6)] |= ONE << (query & LOW_BITS)
    return starts[slot] < ends[slot]


@kernel
def intersect(one: Any, words: Any, slot: int, both: Any, filled: Any, numbers: Numbers, written: int) -> int:
    """Write the numbers of the bits that both have. Words without any are left out first, without a branch; of the
    others two bits are written at a time, what is too much is written over next."""
    for at in range(len(one)):
        both[at] = one[at] & words[slot, at]
    count = np.uint64(0)
    for at in range(len(one)):
        filled[count] = at
        count += np.uint64(both[at] != NOTHING)
    here = np.uint64(written)
    for entry in range(count):
        word = both[filled[entry]]
        base = np.int32(filled[entry] << 6)
        after = here + np.uint64(population(word))
        while True:
            numbers[here] = base + np.int32(trailing_zeros(word))
            word &= word - ONE
            numbers[here + ONE] = base + np.int32(trailing_zeros(word))
            word &= word - ONE
            here += np.uint64(2)
            if word == NOTHING:
                break
        here = after
    return np.int64(here)  # type: ignore[return-value]
