"""Compiled kernels for hashes and words of texts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.jit import inlined, kernel

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Hashes = NDArray[np.uint64]
Letters = NDArray[np.int32]

DIGITS = 20
"""The most digits of an integer."""
MINUS, ZERO = np.uint64(ord("-") + 1), np.uint64(ord("0") + 1)
"""Bytes of integers, plus one."""


@kernel
def polynomials(starts: Ints, ends: Ints, data: Bytes, base: np.uint64) -> Hashes:
    """For each text, the sum of its bytes, each plus one, multiplied by powers of a base."""
    found = np.zeros(len(starts), np.uint64)
    for text in range(len(starts)):
        power, sum = np.uint64(1), np.uint64(0)
        for at in range(starts[text], ends[text]):
            power *= base
            sum += (np.uint64(data[at]) + np.uint64(1)) * power
        found[text] = sum
    return found


@kernel
def polynomials_of_integers(values: Ints, base: np.uint64) -> Hashes:
    """The same for the texts of integers."""
    found, digits = np.zeros(len(values), np.uint64), np.empty(DIGITS, np.uint64)
    for i in range(len(values)):
        power, sum, rest = base, np.uint64(0), np.uint64(values[i])
        if values[i] < 0:
            power, sum, rest = power * base, MINUS * power, np.uint64(0) - rest
        count = 0
        while rest or not count:
            tens = rest // np.uint64(10)
            digits[count] = rest - np.uint64(10) * tens + ZERO
            rest, count = tens, count + 1
        for place in range(count - 1, -1, -1):
            sum += digits[place] * power
            power *= base
        found[i] = sum
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


@inlined
def character(data: Bytes, at: int) -> tuple[Any, int]:
    """The code point that starts at a byte of UTF-8, and its length in bytes."""
    first = np.int64(data[at])
    if first < 0x80:
        return first, 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | data[at + 1] & 0x3F, 2
    if first < 0xF0:
        return (first & 0x0F) << 12 | (data[at + 1] & 0x3F) << 6 | data[at + 2] & 0x3F, 3
    high = (first & 0x07) << 18 | (data[at + 1] & 0x3F) << 12
    return high | (data[at + 2] & 0x3F) << 6 | data[at + 3] & 0x3F, 4


@kernel
def are_known(starts: Ints, ends: Ints, data: Bytes, letters: Letters) -> NDArray[np.bool_]:
    """Whether `letters` covers all characters of each text."""
    found = np.ones(len(starts), np.bool_)
    for text in range(len(starts)):
        at = starts[text]
        while at < ends[text]:
            code, length = character(data, at)
            if code >= len(letters) or letters[code] < 0:
                found[text] = False
                break
            at += length
    return found


@kernel
def distinct_words(
    rows: Ints, starts: Ints, ends: Ints, data: Bytes, letters: Letters, base: np.uint64
) -> tuple[Ints, Ints, Bytes, Hashes]:
    """The distinct words of each text, with the empty word first. Returns the row of each word, the offsets of the
    words, their concatenated bytes, and their polynomials. `letters` maps each character to its form in a word, or to 0
    if it is not part of words. That form takes no more bytes than the character."""
    room, longest = len(rows), 0
    for text in range(len(rows)):
        length = ends[text] - starts[text]
        room, longest = room + (length + 1) // 2, max(longest, length)
    slots = 4
    while slots < longest + 2:  # at least twice the number of words
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
            code, length = character(data, at)
            letter = letters[code]
            if letter == 0:
                at += length
                continue
            first = end
            while letter != 0:
                if letter < 0x80:
                    written[end] = letter
                    end += 1
                elif letter < 0x800:
                    written[end], written[end + 1] = 0xC0 | letter >> 6, 0x80 | letter & 0x3F
                    end += 2
                elif letter < 0x10000:
                    written[end], written[end + 1] = 0xE0 | letter >> 12, 0x80 | letter >> 6 & 0x3F
                    written[end + 2] = 0x80 | letter & 0x3F
                    end += 3
                else:
                    written[end], written[end + 1] = 0xF0 | letter >> 18, 0x80 | letter >> 12 & 0x3F
                    written[end + 2], written[end + 3] = 0x80 | letter >> 6 & 0x3F, 0x80 | letter & 0x3F
                    end += 4
                at += length
                if at >= ends[text]:
                    break
                code, length = character(data, at)
                letter = letters[code]
            power, sum = np.uint64(1), np.uint64(0)
            for place in range(first, end):
                power *= base
                sum += (np.uint64(written[place]) + np.uint64(1)) * power
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
