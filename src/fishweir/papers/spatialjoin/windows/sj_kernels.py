"""The inner loop of SJ-Join: joins data clusters of joinable pairs with the query index.

In: positions of new tuples, the other side in proximity order, the query index. Out: results, and the number of region
comparisons. The regions near a new tuple are stored axis by axis, and so are those near a cluster, so that one
instruction compares a pair with many regions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fishweir.evaluate.select.boxes.matches import Numbers
from fishweir.evaluate.select.boxes.regions import HIGHEST, LOWEST, Floats, Keys
from fishweir.jit import kernel
from fishweir.papers.spatialjoin.regions.query_index import retrieve_positions
from fishweir.papers.spatialjoin.windows.kernels import came_between, count_up, difference, widened, within_reach
from fishweir.papers.spatialjoin.windows.side import Ints

MOST = int(HIGHEST)
LEAST = int(LOWEST)
SIGN = np.int64(np.iinfo(np.int64).max)


@kernel
def time_key(seconds: float, cell: Floats) -> int:
    """Like float_keys, for one number; `cell` is used to read its bits."""
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
    index: Any,
    used: Ints,
    of_region: Ints,
    comparisons: Any,
    counts: Ints,
) -> tuple[Ints, Ints, Ints, Numbers, int]:
    """Finds for each new tuple the regions near it, then the clusters it can join, then the pairs of each cluster."""
    own_times, own_numbers, own_slots, _, own_columns = own
    times, tuple_numbers, _, position, columns = other
    run_low, run_high, page_low, page_high, low, high = index
    of_left = own_columns.shape[1] if side == 0 else columns.shape[1]
    attributes = own_columns.shape[1] + columns.shape[1]
    known = (used < attributes) & ((used < of_left) == (side == 0))
    rest = np.flatnonzero(~known)
    free = used[rest]
    axes, regions = len(rest), len(low)
    left, right = np.empty(len(used), np.int64), np.empty(len(used), np.int64)
    near, close, held = np.empty(regions, np.int64), np.empty(regions, np.int64), np.empty(regions, np.int64)
    near_low, near_high = np.empty((axes, regions), np.int64), np.empty((axes, regions), np.int64)
    close_low, close_high = np.empty((axes, regions), np.int64), np.empty((axes, regions), np.int64)
    inside = np.empty(regions, np.uint8)
    block, block_slots = np.empty((size, axes), np.int64), np.empty(size, np.int64)
    cell = np.empty(1)
    ones, others = np.empty(64, np.int64), np.empty(64, np.int64)
    offsets, numbers = np.zeros(65, np.int64), np.empty(1024, np.int32)
    pairs, written, tested = 0, 0, 0
    for place in new:
        row = own_columns[own_slots[place]]
        reach = within_reach(own_times[place], place, own_times, times, side, longest, most)
        if reach[0] >= reach[1]:
            continue
        for axis in range(len(used)):
            left[axis], right[axis] = LEAST, MOST
            if known[axis]:
                key = own_keys[own_slots[place], used[axis] if side == 0 else used[axis] - of_left]
                left[axis], right[axis] = key, key
        found, _ = retrieve_positions(left, right, run_low, run_high, page_low, page_high, low, high, near)
        for axis in range(axes):
            pick(low[:, rest[axis]], high[:, rest[axis]], near, found, near_low[axis], near_high[axis])
        taken = 0
        while taken < len(order):
            taken, members = next_cluster(
                side,
                place,
                limit,
                own,
                other,
                other_keys,
                order,
                taken,
                reach,
                free,
                of_left,
                attributes,
                cell,
                block,
                block_slots,
            )
            if members == 0:
                break
            count = close_to(block, members, near_low, near_high, found, inside, close)
            for axis in range(axes):
                pick(near_low[axis], near_high[axis], close, count, close_low[axis], close_high[axis])
            tested += found + members * count
            for member in range(members):
                inside[:count] = 1
                for axis in range(axes):
                    mark(close_low[axis], close_high[axis], block[member, axis], block[member, axis], inside, count)
                hits = marked(inside, count, held)
                before = written
                if written + hits + 1 > len(numbers):
                    numbers = widened(numbers, written, hits + 1)
                slot = block_slots[member]
                left_row, right_row = (row, columns[slot]) if side == 0 else (columns[slot], row)
                for hit in range(hits):
                    held[hit] = of_region[near[close[held[hit]]]]
                written = write_compared(held, hits, left_row, right_row, comparisons, numbers, written)
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
def next_cluster(
    side: int,
    place: int,
    limit: int,
    own: Any,
    other: Any,
    other_keys: Keys,
    order: Ints,
    taken: int,
    reach: tuple[int, int, int],
    axes: Ints,
    of_left: int,
    attributes: int,
    cell: Floats,
    block: Any,
    slots: Ints,
) -> tuple[int, int]:
    """Collects the next tuples in proximity order that are in reach, with their keys on the axes. Returns how far it
    went and the number of tuples."""
    own_times = own[0]
    times, tuple_numbers, position = other[0], other[1], other[3]
    start, end, after = reach
    time, members = own_times[place], 0
    while taken < len(order) and members < len(slots):
        slot = order[taken]
        taken += 1
        at = position[slot]
        if at < start or at >= end or tuple_numbers[at] >= limit:
            continue
        slots[members] = slot
        for axis in range(len(axes)):
            which = axes[axis]
            if which < attributes:
                key = other_keys[slot, which - of_left if side == 0 else which]
            elif which == attributes:
                key = time_key(times[at] - time if side == 0 else time - times[at], cell)
            else:
                older = times[at] < time if which - attributes == 2 - side else time < times[at]
                key = came_between(time, place, own_times, times[at], at, after) if older else 0
            block[members, axis] = key
        members += 1
    return taken, members


@kernel
def close_to(block: Any, members: int, low: Any, high: Any, found: int, inside: Any, close: Ints) -> int:
    """Writes the regions that overlap the box around a cluster. Returns their number."""
    inside[:found] = 1
    for axis in range(block.shape[1]):
        least, greatest = block[0, axis], block[0, axis]
        for member in range(1, members):
            least, greatest = min(least, block[member, axis]), max(greatest, block[member, axis])
        mark(low[axis], high[axis], least, greatest, inside, found)
    return marked(inside, found, close)


@kernel
def write_compared(
    queries: Ints, count: int, left_row: Any, right_row: Any, comparisons: Any, numbers: Numbers, written: int
) -> int:
    """Appends the queries whose comparisons of columns the pair satisfies. Returns the number written in total."""
    starts, lefts, rights, band_low, band_high = comparisons
    for at in range(count):
        query = queries[at]
        numbers[written] = query
        passed = True
        for c in range(starts[query], starts[query + 1]):
            apart = difference(left_row[lefts[c]], right_row[rights[c]])
            passed &= (band_low[c] <= apart) & (apart <= band_high[c])
        written += passed
    return written


@kernel
def pick(low: Any, high: Any, chosen: Ints, count: int, to_low: Any, to_high: Any) -> None:
    for at in range(count):
        to_low[at], to_high[at] = low[chosen[at]], high[chosen[at]]


@kernel
def marked(inside: Any, count: int, places: Ints) -> int:
    """Writes the marked positions. Returns their number."""
    found = 0
    for at in range(count):
        places[found] = at
        found += inside[at]
    return found


@kernel
def mark(low: Any, high: Any, left: int, right: int, inside: Any, count: int) -> None:
    """Keeps only marks of ranges that overlap [left, right]."""
    for at in range(count):
        inside[at] &= np.uint8((low[at] <= right) & (high[at] >= left))
