"""The inner loop of the packed tree, compiled by numba.

In: codes and keys of the tuples, and the blocks of all levels (top level first) as 16-bit lower and upper ends. Out:
concatenated query numbers. The comparisons of one block on one attribute are a loop over 64 neighbours without
branches, which LLVM turns into vector instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.jit import kernel
from fishweir.evaluate.select.boxes.matches import Numbers, Offsets
from fishweir.evaluate.select.boxes.packed_order import FAN_OUT, Codes
from fishweir.evaluate.select.boxes.regions import Keys


@kernel
def encode(keys: Any, cuts: Keys, codes: Any) -> None:
    """For one attribute, the number of cuts at or below each key. Unsigned, with no branches except the loop's."""
    for row in range(len(keys)):
        below, width = np.uint64(0), np.uint64(len(cuts))
        while width > np.uint64(0):
            half = (width + np.uint64(1)) >> np.uint64(1)
            below += half if cuts[below + half - np.uint64(1)] <= keys[row] else np.uint64(0)
            width -= half
        codes[row] = below


@kernel
def compare(code: Any, low: Any, high: Any, inside: Any, eights: Any) -> bool:
    """Marks the members of one block that contain the tuple. Returns False if no member is left before the last
    attribute. `eights` is a view of `inside` as words."""
    for member in range(FAN_OUT):
        inside[member] = (low[0, member] <= code[0]) & (code[0] <= high[0, member])
    for attribute in range(1, len(code)):
        some = np.uint64(0)
        for word in range(FAN_OUT // 8):
            some |= eights[word]
        if some == np.uint64(0):
            return False
        value = code[attribute]
        for member in range(FAN_OUT):
            inside[member] &= np.uint8((low[attribute, member] <= value) & (value <= high[attribute, member]))
    return True


@kernel
def holds(key: Any, low: Any, high: Any) -> bool:
    for attribute in range(len(key)):
        if key[attribute] < low[attribute] or key[attribute] > high[attribute]:
            return False
    return True


@kernel
def surely(code: Any, low: Any, high: Any, member: int) -> bool:
    """Whether the codes alone show that a member contains the tuple: none of them is that of an end."""
    for attribute in range(len(code)):
        if code[attribute] == low[attribute, member] or code[attribute] == high[attribute, member]:
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
    levels = len(bases) - 1
    stack = np.empty(levels * FAN_OUT + 1, dtype=np.int64)
    depth_of = np.empty(levels * FAN_OUT + 1, dtype=np.int64)
    inside = np.zeros(FAN_OUT, dtype=np.uint8)
    eights = inside.view(np.uint64)
    while row < len(order):
        code, key = codes[order[row]], keys[order[row]]
        stack[0], depth_of[0], top = 0, 0, 1
        before = position
        while top > 0:
            top -= 1
            block, depth = stack[top], depth_of[top]
            at = bases[depth] + block
            if not compare(code, lows[at], highs[at], inside, eights):
                continue
            if position + FAN_OUT > len(numbers):
                return row, before
            for word in range(FAN_OUT // 8):
                if eights[word] == np.uint64(0):
                    continue
                for member in range(word * 8, word * 8 + 8):
                    if inside[member] == 0:
                        continue
                    child = block * FAN_OUT + member
                    if depth + 1 < levels:
                        stack[top], depth_of[top] = child, depth + 1
                        top += 1
                    elif (
                        len(low) == 0
                        or surely(code, lows[at], highs[at], member)
                        or holds(key, low[child], high[child])
                    ):
                        numbers[position] = queries[child]
                        position += 1
        row += 1
        offsets[row] = position
    return row, position
