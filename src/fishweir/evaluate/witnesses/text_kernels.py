"""Hashes and words of texts, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.jit import kernel

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Hashes = NDArray[np.uint64]


@kernel
def polynomials(starts: Ints, ends: Ints, data: Bytes, base: np.uint64) -> Hashes:
    """Of each text the sum of its bytes, each plus one, times the powers of a base."""
    found = np.zeros(len(starts), np.uint64)
    for text in range(len(starts)):
        power, sum = np.uint64(1), np.uint64(0)
        for at in range(starts[text], ends[text]):
            power *= base
            sum += (np.uint64(data[at]) + np.uint64(1)) * power
        found[text] = sum
    return found


@kernel
def are_ascii(starts: Ints, ends: Ints, data: Bytes) -> NDArray[np.bool_]:
    found = np.ones(len(starts), np.bool_)
    for text in range(len(starts)):
        for at in range(starts[text], ends[text]):
            if data[at] >= 128:
                found[text] = False
                break
    return found


@kernel
def ascii_words(
    rows: Ints, starts: Ints, ends: Ints, data: Bytes, letters: Bytes, base: np.uint64
) -> tuple[Ints, Ints, Bytes, Hashes]:
    """The distinct words of texts, the empty one first: of each its row and its polynomial; all of them one after the
    other, and where each begins. `letters` has for each byte what it is in a word, 0 for none."""
    room, longest = len(rows), 0
    for text in range(len(rows)):
        length = ends[text] - starts[text]
        room, longest = room + (length + 1) // 2, max(longest, length)
    slots = 4
    while slots < longest + 2:  # at least twice as many as there are words
        slots *= 2
    table, owner = np.zeros(slots, np.int64), np.full(slots, -1)
    found_rows, offsets = np.empty(room, np.int64), np.zeros(room + 1, np.int64)
    sums, written = np.empty(room, np.uint64), np.empty((ends - starts).sum(), np.uint8)
    word = end = 0
    for text in range(len(rows)):
        found_rows[word], sums[word], offsets[word + 1] = rows[text], np.uint64(0), end
        word += 1
        at = starts[text]
        while at < ends[text]:
            if letters[data[at]] == 0:
                at += 1
                continue
            first, power, sum = end, np.uint64(1), np.uint64(0)
            while at < ends[text] and letters[data[at]] != 0:
                letter = letters[data[at]]
                written[end] = letter
                power *= base
                sum += (np.uint64(letter) + np.uint64(1)) * power
                end += 1
                at += 1
            slot = np.int64((sum >> np.uint64(20)) & np.uint64(slots - 1))
            is_new = True
            while owner[slot] == text and is_new:
                other = table[slot]
                if sums[other] == sum and offsets[other + 1] - offsets[other] == end - first:
                    is_new = False
                    for i in range(end - first):
                        if written[offsets[other] + i] != written[first + i]:
                            is_new = True
                            break
                if is_new:
                    slot = (slot + 1) & (slots - 1)
            if is_new:
                owner[slot], table[slot] = text, word
                found_rows[word], sums[word], offsets[word + 1] = rows[text], sum, end
                word += 1
            else:
                end = first
    return found_rows[:word], offsets[: word + 1], written[:end], sums[:word]
