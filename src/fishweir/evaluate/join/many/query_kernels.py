"""Kernels of multiway joins: compute the queries that remain for each combination of documents.

In: for each combination one or two sorted lists of queries (slices of arrays), and how far the window of each side must
reach. Out: the queries that are in both lists and whose windows all reach, as one array with the end of each list.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.jit import kernel

Floats = NDArray[np.float64]
Lists = tuple[Ints, Ints, Ints]
"""The start and the end of each list, and the array that they are slices of."""


def within(lists: Lists, far: Floats, reaches: Floats) -> Lists:
    """The queries of each list whose windows reach. `far` is by combination and side, `reaches` by side and query."""
    ends = np.zeros(len(lists[0]) + 1, np.int64)
    _within(*lists, far, reaches, ends, np.empty(0, np.int64))
    found = np.empty(ends[-1], np.int64)
    if len(found):
        _within(*lists, far, reaches, ends, found)
    return ends[:-1], ends[1:], found


def in_both(one: Lists, two: Lists, far: Floats, reaches: Floats) -> Lists:
    """The same for the intersection of two lists."""
    ends = np.zeros(len(one[0]) + 1, np.int64)
    _in_both(*one, *two, far, reaches, ends, np.empty(0, np.int64))
    found = np.empty(ends[-1], np.int64)
    if len(found):
        _in_both(*one, *two, far, reaches, ends, found)
    return ends[:-1], ends[1:], found


@kernel
def _within(lo: Ints, hi: Ints, members: Ints, far: Floats, reaches: Floats, ends: Ints, found: Ints) -> None:
    """Counts if `found` is empty, else fills it."""
    count, fill = 0, len(found) > 0
    for row in range(len(lo)):
        for at in range(lo[row], hi[row]):
            reached = True
            for side in range(far.shape[1]):
                if far[row, side] > reaches[side, members[at]]:
                    reached = False
                    break
            if reached:
                if fill:
                    found[count] = members[at]
                count += 1
        ends[row + 1] = count


@kernel
def _look_for(
    short: Ints,
    at: int,
    stop: int,
    long: Ints,
    place: int,
    end: int,
    far: Floats,
    reaches: Floats,
    found: Ints,
    count: int,
) -> int:
    """Looks up each entry of the shorter list in the longer one by galloping search from the previous position."""
    fill = len(found) > 0
    while at < stop and place < end:
        member = short[at]
        at += 1
        stride = 1
        while place + stride < end and long[place + stride] <= member:
            place += stride
            stride *= 2
        low, high = place, min(place + stride, end)
        while low < high:
            middle = (low + high) // 2
            if long[middle] < member:
                low = middle + 1
            else:
                high = middle
        place = low
        if place < end and long[place] == member:
            reached = True
            for side in range(len(far)):
                if far[side] > reaches[side, member]:
                    reached = False
                    break
            if reached:
                if fill:
                    found[count] = member
                count += 1
    return count


@kernel
def _in_both(
    one_lo: Ints,
    one_hi: Ints,
    one: Ints,
    two_lo: Ints,
    two_hi: Ints,
    two: Ints,
    far: Floats,
    reaches: Floats,
    ends: Ints,
    found: Ints,
) -> None:
    """Counts if `found` is empty, else fills it."""
    count = 0
    for row in range(len(one_lo)):
        a, b, c, d = one_lo[row], one_hi[row], two_lo[row], two_hi[row]
        if d - c < b - a:
            count = _look_for(two, c, d, one, a, b, far[row], reaches, found, count)
        else:
            count = _look_for(one, a, b, two, c, d, far[row], reaches, found, count)
        ends[row + 1] = count
