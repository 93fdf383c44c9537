"""A plain compiled scan: compares all queries with every tuple, many at a time.

In: the bounds of all queries per attribute, the most selective attribute first. Out: query numbers, written
consecutively. A block of queries is compared with a few tuples while it is in the cache, by vector instructions, and
abandoned as soon as none of its queries can match.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

BLOCK = 256
TILE = 4


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def compare_block(values: Any, lows: Any, highs: Any, start: int, end: int, inside: Any) -> None:
    for member in range(end - start):
        inside[member] = (lows[0, start + member] <= values[0]) & (values[0] <= highs[0, start + member])
    for attribute in range(1, len(lows)):
        some = np.uint8(0)
        for member in range(end - start):
            some |= inside[member]
        if some == 0:
            return
        x, low, high = values[attribute], lows[attribute, start:end], highs[attribute, start:end]
        for member in range(end - start):
            inside[member] &= np.uint8((low[member] <= x) & (x <= high[member]))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def list_scanned(
    values: Any, lows: Any, highs: Any, row: int, position: int, numbers: Any, offsets: Any
) -> tuple[int, int]:
    """Writes the query numbers of each tuple while there is room."""
    queries = lows.shape[1]
    inside = np.zeros((TILE, -(-queries // 8) * 8), dtype=np.uint8)
    eights = inside.view(np.uint64)
    while row < len(values):
        if position + TILE * queries > len(numbers):
            return row, position
        tile = min(TILE, len(values) - row)
        for start in range(0, queries, BLOCK):
            end = min(start + BLOCK, queries)
            for at in range(tile):
                compare_block(values[row + at], lows, highs, start, end, inside[at, start:end])
        for at in range(tile):
            for word in range(eights.shape[1]):
                if eights[at, word] == np.uint64(0):
                    continue
                for member in range(word * 8, min(word * 8 + 8, queries)):
                    numbers[position] = member
                    position += inside[at, member]
            offsets[row + at + 1] = position
        row += tile
    return row, position
