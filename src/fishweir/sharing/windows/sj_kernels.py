"""The inner loop of SJ-Join: data clusters of joinable pairs against the query index.

In: places of new tuples, the other side in proximity order, the query index. Out: results, and how many comparisons of
regions it took. The regions near a new tuple are kept one axis after the other, and those near a cluster likewise, so
that a pair is compared with many regions by one instruction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fishweir.sharing.boxes.matches import Numbers
from fishweir.sharing.boxes.query_index import retrieve_positions
from fishweir.sharing.boxes.regions import HIGHEST, LOWEST, Floats, Keys
from fishweir.sharing.jit import kernel
from fishweir.sharing.windows.kernels import came_between, count_up, difference, widened, within_reach
from fishweir.sharing.windows.side import Ints

MOST = int(HIGHEST)
LEAST = int(LOWEST)
SIGN = np.int64(np.iinfo(np.int64).max)


@kernel
def time_key(seconds: float, cell: Floats) -> int:
    """As float_keys, of one number; the cell lets its bits be read."""
    cell[0] = seconds + 0.0
    bits = cell.view(np.int64)[0]
    return bits ^ SIGN if bits < 0 else bits


@kernel
def join_clusters(
    side: int,
    new: Ints,
    limit: int,
    size: int,
    own: Any,
    other: Any,
    own_keys: Keys,
    other_keys: Keys,
    order: Ints,
    longest: Floats,
    most: Ints,
    same: int,
    index: Any,
    used: Ints,
    of_region: Ints,
    comparisons: Any,
    counts: Ints,
) -> tuple[Ints, Ints, Ints, Numbers, int]:
    own_times, own_numbers, own_slots, _, own_columns = own
    times, tuple_numbers, _, position, columns = other
    run_low, run_high, page_low, page_high, low, high = index
    starts, lefts, rights, band_low, band_high = comparisons
    of_left = own_columns.shape[1] if side == 0 else columns.shape[1]
    attributes = own_columns.shape[1] + columns.shape[1]
    rest = np.empty(len(used), np.int64)
    axes = 0
    for axis in range(len(used)):
        if used[axis] >= attributes or (used[axis] < of_left) != (side == 0):
            rest[axes] = axis
            axes += 1
    left, right = np.empty(len(used), np.int64), np.empty(len(used), np.int64)
    near, close, held = np.empty(len(low), np.int64), np.empty(len(low), np.int64), np.empty(len(low), np.int64)
    near_low, near_high = np.empty((axes, len(low)), np.int64), np.empty((axes, len(low)), np.int64)
    close_low, close_high = np.empty((axes, len(low)), np.int64), np.empty((axes, len(low)), np.int64)
    inside = np.empty(len(low), np.uint8)
    block, block_slots = np.empty((size, axes), np.int64), np.empty(size, np.int64)
    cluster_low, cluster_high = np.empty(axes, np.int64), np.empty(axes, np.int64)
    cell = np.empty(1)
    ones, others = np.empty(64, np.int64), np.empty(64, np.int64)
    offsets, numbers = np.zeros(65, np.int64), np.empty(1024, np.int32)
    pairs, written, tested = 0, 0, 0
    for place in new:
        time, own_slot = own_times[place], own_slots[place]
        row = own_columns[own_slot]
        start, end, after = within_reach(time, place, own_times, times, side, longest, most, same)
        if start >= end:
            continue
        for axis in range(len(used)):
            left[axis], right[axis] = LEAST, MOST
            if used[axis] < attributes and (used[axis] < of_left) == (side == 0):
                key = own_keys[own_slot, used[axis] if side == 0 else used[axis] - of_left]
                left[axis], right[axis] = key, key
        found, _ = retrieve_positions(left, right, run_low, run_high, page_low, page_high, low, high, near)
        for axis in range(axes):
            for at in range(found):
                near_low[axis, at], near_high[axis, at] = low[near[at], rest[axis]], high[near[at], rest[axis]]
        taken = 0
        while taken < len(order):
            members = 0
            while taken < len(order) and members < size:
                slot = order[taken]
                taken += 1
                at = position[slot]
                if at < start or at >= end or tuple_numbers[at] >= limit:
                    continue
                if same and tuple_numbers[at] == own_numbers[place]:
                    continue
                block_slots[members] = slot
                for axis in range(axes):
                    which = used[rest[axis]]
                    if which < attributes:
                        key = other_keys[slot, which - of_left if side == 0 else which]
                    elif which == attributes:
                        key = time_key(times[at] - time if side == 0 else time - times[at], cell)
                    else:
                        older = times[at] < time if which - attributes == 2 - side else time < times[at]
                        key = came_between(time, place, own_times, times[at], at, after, same) if older else 0
                    block[members, axis] = key
                members += 1
            if members == 0:
                break
            for axis in range(axes):
                cluster_low[axis], cluster_high[axis] = block[0, axis], block[0, axis]
                for member in range(1, members):
                    cluster_low[axis] = min(cluster_low[axis], block[member, axis])
                    cluster_high[axis] = max(cluster_high[axis], block[member, axis])
            inside[:found] = 1
            for axis in range(axes):
                mark(near_low[axis], near_high[axis], cluster_low[axis], cluster_high[axis], inside, found)
            count = 0
            for at in range(found):
                close[count] = at
                count += inside[at]
            for axis in range(axes):
                for at in range(count):
                    close_low[axis, at], close_high[axis, at] = near_low[axis, close[at]], near_high[axis, close[at]]
            tested += found + members * count
            for member in range(members):
                slot = block_slots[member]
                left_row, right_row = (row, columns[slot]) if side == 0 else (columns[slot], row)
                inside[:count] = 1
                for axis in range(axes):
                    key = block[member, axis]
                    mark(close_low[axis], close_high[axis], key, key, inside, count)
                before = written
                if written + count + 1 > len(numbers):
                    numbers = widened(numbers, written, count + 1)
                hits = 0
                for at in range(count):
                    held[hits] = at
                    hits += inside[at]
                for hit in range(hits):
                    query = of_region[near[close[held[hit]]]]
                    numbers[written] = query
                    passed = True
                    for c in range(starts[query], starts[query + 1]):
                        apart = difference(left_row[lefts[c]], right_row[rights[c]])
                        passed &= (band_low[c] <= apart) & (apart <= band_high[c])
                    written += passed
                if len(counts) > 0:
                    count_up(counts, numbers, before, written)
                    written = before
                elif written > before:
                    if pairs == len(ones):
                        ones, others = widened(ones, pairs, 1), widened(others, pairs, 1)
                        offsets = widened(offsets, pairs + 1, 1)
                    ones[pairs], others[pairs] = own_numbers[place], tuple_numbers[position[slot]]
                    pairs += 1
                    offsets[pairs] = written
    return ones[:pairs], others[:pairs], offsets[: pairs + 1], numbers[:written], tested


@kernel
def mark(low: Any, high: Any, left: int, right: int, inside: Any, count: int) -> None:
    """Leave those marked whose range overlaps [left, right]."""
    for at in range(count):
        inside[at] &= np.uint8((low[at] <= right) & (high[at] >= left))
