"""Hashes of values: combined with a class or variable, and sorted.

Hashes are spread evenly, so one pass puts each of them almost in its place. Those that are not, such as many different
ones with the same leading bits, are sorted by comparison.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.jit import kernel

Hashes = NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FEW = 64
"""Number of hashes up to which comparing them takes less time."""
MOVES, BITS = 16, 20
"""Number of moves per hash after which they are considered uneven, and the greatest number of leading bits."""


def combine(key: int | Hashes, hashes: Hashes) -> Hashes:
    """One number for (variable, value)."""
    mixed = (hashes ^ np.asarray(key, np.uint64)) * GOLDEN
    return mixed ^ (mixed >> np.uint64(29))


def hash_order(hashes: Hashes) -> Ints:
    """The permutation that sorts hashes stably."""
    order = np.empty(len(hashes), np.int64)
    if len(hashes) > FEW and spread(hashes, order):
        return order
    return np.argsort(hashes, kind="stable")


@kernel
def spread(hashes: Any, order: Ints) -> bool:
    """Orders hashes by their leading bits, and neighbours by comparison. Returns whether this took few moves."""
    size, bits = len(hashes), 1
    while (1 << bits) < size and bits < BITS:
        bits += 1
    shift, starts = np.uint64(64 - bits), np.zeros((1 << bits) + 1, np.int64)
    for i in range(size):
        starts[np.int64(hashes[i] >> shift) + 1] += 1
    for i in range(1 << bits):
        starts[i + 1] += starts[i]
    for i in range(size):
        cell = np.int64(hashes[i] >> shift)
        order[starts[cell]] = i
        starts[cell] += 1
    moves = 0
    for i in range(1, size):
        row, place = order[i], i
        while place > 0 and hashes[order[place - 1]] > hashes[row]:
            order[place] = order[place - 1]
            place -= 1
            moves += 1
        order[place] = row
        if moves > MOVES * size:
            return False
    return True
