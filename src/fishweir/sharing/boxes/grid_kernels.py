"""The inner loops of the grid of bitmaps, for numba.

In: per tuple and axis (bitmap row, slice of starts, slice of ends) as `GridIndex` looks them up. Out: query
numbers written one after the other. The working bitmap stays in the first-level cache: 12.5 KB for 100,000
queries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fishweir.sharing.boxes.matches import Numbers, Offsets, Words
from fishweir.sharing.jit import kernel, population, trailing_zeros

Found = npt.NDArray[np.int64]
UNROLLED = 8


@kernel
def fill_bitmaps(first_rank: Found, started: Found, ended: Found, starts: Numbers, ends: Numbers, out: Words) -> None:
    """The queries that overlap each cell: those of the cell before, without what ended, with what begins.

    A query that is empty ends before it begins, at rank 0, and is in no bitmap.
    """
    one = np.uint64(1)
    for cell in range(len(out)):
        if cell > 0:
            out[cell] = out[cell - 1]
        least, after = first_rank[cell], first_rank[cell + 1]
        for position in range(started[least], started[after]):
            query = starts[position]
            out[cell, query >> 6] |= one << np.uint64(query & 63)
        gone = 0 if cell == 0 else ended[first_rank[cell - 1] + 1]
        for position in range(gone, ended[least + 1]):
            query = ends[position]
            out[cell, query >> 6] &= ~(one << np.uint64(query & 63))


@kernel
def and_one(found: Any, bitmaps: Words, starts: Numbers, ends: Numbers, words: Any) -> None:
    """The bitmap of one tuple: and the rows, clear what begins after the tuple or ends before it."""
    words[:] = bitmaps[found[0, 0]]
    for axis in range(1, len(found)):
        row = bitmaps[found[axis, 0]]
        for position in range(len(words)):
            words[position] &= row[position]
    one = np.uint64(1)
    for axis in range(len(found)):
        for position in range(found[axis, 1], found[axis, 2]):
            query = starts[position]
            words[query >> 6] &= ~(one << np.uint64(query & 63))
        for position in range(found[axis, 3], found[axis, 4]):
            query = ends[position]
            words[query >> 6] &= ~(one << np.uint64(query & 63))


@kernel
def list_bits(words: Words, position: int, numbers: Numbers) -> int:
    """Write the numbers of the set bits, always eight at a time: what is too much is written over next.

    A loop that ends with each word's last bit is mispredicted once a word and takes nearly twice as long.
    """
    one = np.uint64(1)
    for at in range(len(words)):
        word = words[at]
        base = np.int32(at << 6)
        after = position + population(word)
        here = np.uint64(position)
        while word != np.uint64(0):
            for ahead in range(UNROLLED):
                numbers[here + np.uint64(ahead)] = base + np.int32(trailing_zeros(word))
                word &= word - one
            here += np.uint64(UNROLLED)
        position = after
    return position


@kernel
def list_matches(
    found: Found,
    bitmaps: Words,
    starts: Numbers,
    ends: Numbers,
    row: int,
    position: int,
    numbers: Numbers,
    offsets: Offsets,
) -> tuple[int, int]:
    """Write the numbers of tuple after tuple while there is room."""
    words = np.empty(bitmaps.shape[1], dtype=np.uint64)
    while row < len(found):
        if position + len(words) * 64 + UNROLLED > len(numbers):
            return row, position
        and_one(found[row], bitmaps, starts, ends, words)
        position = list_bits(words, position, numbers)
        row += 1
        offsets[row] = position
    return row, position
