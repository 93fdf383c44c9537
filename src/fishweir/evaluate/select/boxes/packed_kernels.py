"""The inner loop of the packed tree, compiled by numba.

In: codes and keys of the tuples, and the blocks of all levels (top level first) as 16-bit lower and upper ends. Out:
concatenated query numbers. The comparisons of one block are loops over 64 neighbours without branches, which LLVM turns
into vector instructions. Their outcome is one word, whose bits are visited in turn: a branch per member would often be
mispredicted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.matches import Numbers, Offsets
from fishweir.evaluate.select.boxes.packed_order import FAN_OUT, Codes
from fishweir.evaluate.select.boxes.regions import Keys
from fishweir.jit import kernel, prefetch, trailing_zeros

GATHER = np.uint64(0x0102040810204080)
LINE = 32
"""The number of codes in a line of the processor's cache."""
TOGETHER = 64
"""The number of binary searches that are interleaved."""


@kernel
def encode(keys: Any, cuts: Keys, codes: Any) -> None:
    """For one attribute, the number of cuts at or below each key. The binary searches of some keys take their steps in
    turn: one waits for memory while the others go on."""
    for start in range(0, len(keys), TOGETHER):
        stop = min(start + TOGETHER, len(keys))
        codes[start:stop] = 0
        width = len(cuts)
        while width > 0:
            half = (width + 1) >> 1
            for row in range(start, stop):
                below = np.int64(codes[row])
                codes[row] = below + half if cuts[below + half - 1] <= keys[row] else below
            width -= half


@kernel
def compare(code: Any, low: Any, high: Any, inside: Any) -> None:
    """Marks the members of one block that contain the tuple. The first and the last attribute are compared together,
    which takes hardly longer than one of them."""
    last = len(code) - 1
    one, other = code[0], code[last]
    for member in range(FAN_OUT):
        inside[member] = np.uint8(
            (low[0, member] <= one)
            & (one <= high[0, member])
            & (low[last, member] <= other)
            & (other <= high[last, member])
        )
    for attribute in range(1, last):
        value = code[attribute]
        for member in range(FAN_OUT):
            inside[member] &= np.uint8((low[attribute, member] <= value) & (value <= high[attribute, member]))


@kernel
def compare_strictly(code: Any, low: Any, high: Any, inside: Any) -> None:
    """Marks the members that contain the tuple by the codes alone: none of its codes is that of an end."""
    last = len(code) - 1
    one, other = code[0], code[last]
    for member in range(FAN_OUT):
        inside[member] = np.uint8(
            (low[0, member] < one)
            & (one < high[0, member])
            & (low[last, member] < other)
            & (other < high[last, member])
        )
    for attribute in range(1, last):
        value = code[attribute]
        for member in range(FAN_OUT):
            inside[member] &= np.uint8((low[attribute, member] < value) & (value < high[attribute, member]))


@kernel
def bits_of(eights: Any) -> Any:
    """The marks of a block as the bits of one word. `eights` are the marks, bytes of 0 or 1, eight in a word: a
    multiplication moves their bits next to each other."""
    bits = np.uint64(0)
    for word in range(FAN_OUT // 8):
        bits |= ((eights[word] * GATHER) >> np.uint64(56)) << np.uint64(8 * word)
    return bits


@kernel
def holds(key: Any, low: Any, high: Any) -> bool:
    for attribute in range(len(key)):
        if key[attribute] < low[attribute] or key[attribute] > high[attribute]:
            return False
    return True


@kernel
def list_matches(
    order: Offsets,
    codes: Codes,
    keys: Keys,
    lows: Codes,
    highs: Codes,
    bases: npt.NDArray[np.int64],
    low: Keys,
    high: Keys,
    queries: Numbers,
    row: int,
    position: int,
    numbers: Numbers,
    offsets: Offsets,
) -> tuple[int, int]:
    """Writes the numbers of one tuple after another, in the given order, while there is room."""
    levels, size = len(bases) - 1, len(keys[0]) * FAN_OUT
    stack = np.empty(levels * FAN_OUT + 1, dtype=np.int64)
    depth_of = np.empty(levels * FAN_OUT + 1, dtype=np.int64)
    inside = np.zeros(FAN_OUT, dtype=np.uint8)
    eights, one = inside.view(np.uint64), np.uint64(1)
    while row < len(order):
        code, key = codes[order[row]], keys[order[row]]
        stack[0], depth_of[0], top = 0, 0, 1
        before = position
        while top > 0:
            top -= 1
            block, depth = stack[top], depth_of[top]
            at = bases[depth] + block
            compare(code, lows[at], highs[at], inside)
            left, first = bits_of(eights), block * FAN_OUT
            if depth + 1 < levels:
                while left != np.uint64(0):
                    child = first + trailing_zeros(left)
                    stack[top], depth_of[top] = child, depth + 1
                    top += 1
                    left &= left - one
                    for line in range((bases[depth + 1] + child) * size, (bases[depth + 1] + child + 1) * size, LINE):
                        prefetch(lows, line)
                        prefetch(highs, line)
                continue
            if position + FAN_OUT > len(numbers):
                return row, before
            sure = left
            if len(low) > 0 and left != np.uint64(0):
                compare_strictly(code, lows[at], highs[at], inside)
                sure = bits_of(eights)
            while left != np.uint64(0):
                child, lowest = first + trailing_zeros(left), left & (~left + one)
                left ^= lowest
                if (sure & lowest) != np.uint64(0) or holds(key, low[child], high[child]):
                    numbers[position] = queries[child]
                    position += 1
        row += 1
        offsets[row] = position
    return row, position
