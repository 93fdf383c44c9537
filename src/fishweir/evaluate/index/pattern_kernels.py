"""Compiled kernels for patterns: keys of a pattern, a hash table of keys, and matching a pattern against a value.

In and out: texts as character classes (patterns.py), in one array with the offset of each text.
"""

from __future__ import annotations

import numpy as np

from fishweir.evaluate.arrays import Ints
from fishweir.jit import kernel

ANY_TEXT, ANY_ONE = -1, -2
START, END = 0x1F0000, 0x1F0001
"""Classes of the two ends of a text. Classes of characters are smaller."""


@kernel
def whole_key(codes: Ints, start: int, end: int) -> int:
    """A negative number that identifies a whole text."""
    key = 0
    for at in range(start, end):
        key = (key * 1000003 + codes[at]) & 0x3FFFFFFFFFFF
    return -1 - key


@kernel
def literal_keys(codes: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """All candidate keys of the patterns, and the pattern of each."""
    keys, owner, count = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64), 0
    for text in range(len(starts) - 1):
        start, end = starts[text], starts[text + 1]
        if codes[start:end].min() >= 0:
            keys[count], owner[count] = whole_key(codes, start, end), text
            count += 1
            continue
        for at in range(start, end - 2):
            if codes[at] >= 0 and codes[at + 1] >= 0 and codes[at + 2] >= 0:
                keys[count] = codes[at] << 42 | codes[at + 1] << 21 | codes[at + 2]
                owner[count] = text
                count += 1
    return keys[:count], owner[:count]


@kernel
def slot_of(key: int, mask: int) -> int:
    mixed = (key ^ (key >> 29)) & 0x3FFFFFFF
    mixed = (mixed * 0x2545F491 ^ (key >> 15)) & 0x3FFFFFFFFFFF
    return (mixed ^ (mixed >> 17)) & mask


@kernel
def hash_slots(keys: Ints) -> Ints:
    """An open-addressing hash table of key positions, at most half full."""
    size = 2
    while size < 2 * len(keys):
        size *= 2
    slots = np.full(size, -1, np.int64)
    for i in range(len(keys)):
        at = slot_of(keys[i], size - 1)
        while slots[at] >= 0:
            at = (at + 1) & (size - 1)
        slots[at] = i
    return slots


@kernel
def matches(pattern: Ints, text: Ints) -> bool:
    """Matches wildcards greedily, backtracking to the last `%` if the rest does not match."""
    p, t, back, resume = 0, 0, -1, 0
    while t < len(text):
        if p < len(pattern) and pattern[p] == ANY_TEXT:
            back, resume = p, t
            p += 1
        elif p < len(pattern) and (pattern[p] == text[t] or (pattern[p] == ANY_ONE and text[t] < START)):
            p, t = p + 1, t + 1
        elif back >= 0:
            resume += 1
            p, t = back + 1, resume
        else:
            return False
    while p < len(pattern) and pattern[p] == ANY_TEXT:
        p += 1
    return p == len(pattern)


@kernel
def like_pairs(
    codes: Ints,
    starts: Ints,
    patterns: Ints,
    places: Ints,
    keys: Ints,
    slots: Ints,
    lists: Ints,
    listed: Ints,
    without: Ints,
) -> tuple[Ints, Ints]:
    """The matching (value, pattern) pairs. For each value, the patterns listed under its keys are tried once each."""
    found, which, count = np.empty(64, np.int64), np.empty(64, np.int64), 0
    tried = np.full(len(places) - 1, -1, np.int64)
    for value in range(len(starts) - 1):
        start, end = starts[value], starts[value + 1]
        for at in range(start - 1, end - 1):
            if at == end - 2:
                lo, hi = 0, len(without)
            else:
                key = (
                    whole_key(codes, start, end)
                    if at < start
                    else (codes[at] << 42 | codes[at + 1] << 21 | codes[at + 2])
                )
                slot = slot_of(key, len(slots) - 1)
                while slots[slot] >= 0 and keys[slots[slot]] != key:
                    slot = (slot + 1) & (len(slots) - 1)
                if slots[slot] < 0:
                    continue
                lo, hi = lists[slots[slot]], lists[slots[slot] + 1]
            for place in range(lo, hi):
                pattern = without[place] if at == end - 2 else listed[place]
                if tried[pattern] == value:
                    continue
                tried[pattern] = value
                if matches(patterns[places[pattern] : places[pattern + 1]], codes[start:end]):
                    if count == len(found):
                        found, which = np.append(found, found), np.append(which, which)
                    found[count], which[count] = value, pattern
                    count += 1
    return found[:count], which[:count]
