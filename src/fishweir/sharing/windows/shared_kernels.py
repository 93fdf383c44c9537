"""The inner loops of the shared strategy, for numba.

In: places of new tuples, the other side by value or by time, the sets of queries of both sides. Out: results.
New tuples are taken some at a time, and what they meet in blocks, so that the tuples of a block and their sets of
queries are read once for all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fishweir.sharing.boxes.matches import Numbers
from fishweir.sharing.jit import kernel, population, trailing_zeros
from fishweir.sharing.windows.kernels import (
    came_between,
    count_up,
    difference,
    in_bands,
    meets,
    value_range,
    widened,
    within_reach,
)
from fishweir.sharing.windows.side import Ints

LOW_BITS, ONE, NOTHING = np.uint64(63), np.uint64(1), np.uint64(0)
AT_ONCE = 64
BLOCK = 64
FULL_ENOUGH = 4
"""Candidates a block and new tuple from which blocks pay."""


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
    written: Any = 0
    pairs = 0
    mine = np.zeros((AT_ONCE, (len(members) + 63) >> 6), dtype=np.uint64)
    both, filled = np.empty(mine.shape[1], np.uint64), np.empty(mine.shape[1], np.int64)
    reach, by_value = np.empty((AT_ONCE, 3), np.int64), np.empty((AT_ONCE, 2), np.int64)
    chosen = np.empty(len(times), np.int64)
    for chunk in range(0, len(new), AT_ONCE):
        count = min(AT_ONCE, len(new) - chunk)
        look_around(
            side, new, chunk, count, own, times, values, lefts, rights, low, high, longest, most, same, own_sets, mine,
            reach, by_value,
        )  # fmt: skip
        timely, near = 0, 0
        for i in range(count):
            timely += max(0, reach[i, 1] - reach[i, 0])
            near += max(0, by_value[i, 1] - by_value[i, 0])
        valued = len(lefts) > 0 and near < timely
        ranges = by_value if valued else reach
        first, last = len(times), 0
        for i in range(count):
            if ranges[i, 0] < ranges[i, 1]:
                first, last = min(first, ranges[i, 0]), max(last, ranges[i, 1])
        block = BLOCK if min(near, timely) > FULL_ENOUGH * count * ((last - first) // BLOCK) else max(1, last - first)
        for begin in range(first, last, block):
            for i in range(count):
                place = new[chunk + i]
                own_slot = own_slots[place]
                candidates = 0
                for candidate in range(max(begin, ranges[i, 0]), min(begin + block, ranges[i, 1])):
                    slot = value_slots[candidate] if valued else slots[candidate]
                    at = position[slot] if valued else candidate
                    passed = (reach[i, 0] <= at) & (at < reach[i, 1]) & (tuple_numbers[at] < limit)
                    if same:
                        passed &= tuple_numbers[at] != own_numbers[place]
                    for c in range(len(lefts)):
                        if side == 0:
                            apart = difference(own_columns[own_slot, lefts[c]], columns[slot, rights[c]])
                        else:
                            apart = difference(columns[slot, lefts[c]], own_columns[own_slot, rights[c]])
                        passed &= (low[0, c] <= apart) & (apart <= high[0, c])
                    chosen[candidates] = slot
                    candidates += passed
                for entry in range(candidates):
                    slot = chosen[entry]
                    at = position[slot]
                    before = written
                    if listed:
                        if written + ends[slot] - starts[slot] + 1 > len(numbers):
                            numbers = widened(numbers, written, ends[slot] - starts[slot] + 1)
                        written = look_up(mine, i, lists, starts[slot], ends[slot], numbers, written)
                    else:
                        if written + len(members) + 2 > len(numbers):
                            numbers = widened(numbers, written, len(members) + 2)
                        written = intersect(mine, i, words, slot, both, filled, numbers, written)
                    if checked and written > before:
                        apart = own_times[place] - times[at]
                        between = came_between(
                            own_times[place], place, own_times, times[at], at, reach[i, 2], same
                        )  # fmt: skip
                        kept = before
                        for found in range(before, written):
                            query = numbers[found]
                            numbers[kept] = query
                            kept += (even or meets(apart, between, side, seconds, rows, query)) and (
                                not banded
                                or in_bands(
                                    own_columns, own_slot, columns, slot, side, lefts, rights, own_low, own_high, query
                                )
                            )
                        written = kept
                    if written == before:
                        continue
                    for found in range(before, written):
                        numbers[found] = members[numbers[found]]
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
def look_around(
    side: int,
    new: Ints,
    chunk: int,
    count: int,
    own: Any,
    times: npt.NDArray[np.float64],
    values: npt.NDArray[np.float64],
    lefts: Ints,
    rights: Ints,
    low: Any,
    high: Any,
    longest: Any,
    most: Any,
    same: int,
    own_sets: Any,
    mine: Any,
    reach: Ints,
    by_value: Ints,
) -> None:
    """Of some new tuples: the queries they satisfy, and where the other side is within reach, by time and by value."""
    own_times, _, own_slots, _, own_columns = own
    for i in range(count):
        place = new[chunk + i]
        slot = own_slots[place]
        start, end, after = within_reach(own_times[place], place, own_times, times, side, longest, most, same)
        reach[i, 0], reach[i, 1], reach[i, 2] = start, end, after
        by_value[i, 0], by_value[i, 1] = start, end
        some = load(own_sets, slot, mine, i)
        if len(lefts) > 0:
            value = own_columns[slot, lefts[0] if side == 0 else rights[0]]
            some &= not np.isnan(value)
            least, greatest = value_range(value, side, low[0, 0], high[0, 0])
            by_value[i, 0] = np.searchsorted(values, least)
            by_value[i, 1] = np.searchsorted(values, greatest, side="right")
        if not some or start >= end:
            reach[i, 1], by_value[i, 1] = reach[i, 0], by_value[i, 0]


@kernel
def load(sets: Any, slot: int, mine: Any, row: int) -> bool:
    """The queries of one tuple as a bitmap; False if there are none."""
    listed, words, starts, ends, lists = sets
    some = NOTHING
    for at in range(mine.shape[1]):
        mine[row, at] = NOTHING if listed else words[slot, at]
        some |= mine[row, at]
    if not listed:
        return some != NOTHING
    for entry in range(starts[slot], ends[slot]):
        query = np.uint64(lists[entry])
        mine[row, query >> np.uint64(6)] |= ONE << (query & LOW_BITS)
    return starts[slot] < ends[slot]


@kernel
def look_up(mine: Any, row: int, lists: Numbers, start: int, end: int, numbers: Numbers, written: int) -> int:
    """Write those of a list that the bitmap has."""
    here = np.uint64(written)
    for entry in range(start, end):
        query = np.uint64(lists[entry])
        numbers[here] = lists[entry]
        here += (mine[row, query >> np.uint64(6)] >> (query & LOW_BITS)) & ONE
    return np.int64(here)  # type: ignore[return-value]


@kernel
def intersect(
    mine: Any, row: int, words: Any, slot: int, both: Any, filled: Any, numbers: Numbers, written: int
) -> int:
    """Write the numbers of the bits that both have. Words without any are left out first, without a branch; of the
    others two bits are written at a time, what is too much is written over next."""
    for at in range(len(both)):
        both[at] = mine[row, at] & words[slot, at]
    count = np.uint64(0)
    for at in range(len(both)):
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
