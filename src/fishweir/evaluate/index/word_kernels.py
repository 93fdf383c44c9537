"""Compiled kernels that look up texts by hash and test texts for words.

Texts are offsets and bytes, as in Arrow, and each has a hash. Equal hashes only indicate equality; the bytes decide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.jit import inlined, kernel

Bytes = NDArray[np.uint8]
Hashes = NDArray[np.uint64]

MARKS = 1024


@inlined
def same_bytes(one: Bytes, first: int, other: Bytes, second: int, length: int) -> bool:
    """Whether two texts of equal length are equal."""
    at = 0
    while at < length and one[first + at] == other[second + at]:
        at += 1
    return at == length


@kernel
def find_equal(
    hashes: Hashes, directory: Ints, bits: int, places: Ints, texts: Bytes, sought: Hashes, starts: Ints, data: Bytes
) -> tuple[Ints, Ints]:
    """For each sought text that is known: its row, and its position among the known texts, which are sorted by hash.
    `directory` maps the first `bits` of a hash to the offset of the hashes that begin with them."""
    rows, found = np.empty(len(sought), np.int64), np.empty(len(sought), np.int64)
    shift, count = np.uint64(64 - bits), 0
    for row in range(len(sought)):
        bucket = np.int64(sought[row] >> shift) if bits else 0
        length = starts[row + 1] - starts[row]
        for at in range(directory[bucket], directory[bucket + 1]):
            if (
                hashes[at] == sought[row]
                and places[at + 1] - places[at] == length
                and same_bytes(texts, places[at], data, starts[row], length)
            ):
                rows[count], found[count] = row, at
                count += 1
                break
    return rows[:count], found[:count]


@kernel
def sift(rows: Ints, lo: Ints, hi: Ints, keys: Hashes, firsts: Ints, hashes: Hashes) -> tuple[Ints, Ints]:
    """The positions in some slices whose key is among the hashes of the slice's row, as pairs of slice and position.
    The hashes of a row are those between two `firsts`. Consecutive slices of one row share a small table of marks,
    which rejects most keys that the row does not have."""
    room, count, marked = 1024, 0, np.int64(-1)
    source, positions = np.empty(room, np.int64), np.empty(room, np.int64)
    marks, low = np.full(MARKS, -1), np.uint64(MARKS - 1)
    for part in range(len(lo)):
        row = rows[part]
        first, last = firsts[row], firsts[row + 1]
        if row != marked:
            marked = row
            for at in range(first, last):
                marks[np.int64(hashes[at] & low)] = row
        for position in range(lo[part], hi[part]):
            key = keys[position]
            if marks[np.int64(key & low)] != row:
                continue
            at = first
            while at < last and hashes[at] != key:
                at += 1
            if at < last:
                if count == room:
                    source, positions = np.append(source, source), np.append(positions, positions)
                    room *= 2
                source[count], positions[count] = part, position
                count += 1
    return source[:count], positions[:count]


@kernel
def have_words(
    rows: Ints,
    firsts: Ints,
    hashes: Hashes,
    places: Ints,
    texts: Bytes,
    wanted_firsts: Ints,
    wanted: Hashes,
    wanted_places: Ints,
    wanted_texts: Bytes,
) -> NDArray[np.bool_]:
    """For each pair, whether the row's value has all wanted words and at least one word is wanted. The first word of
    each list is the empty one, which is ignored."""
    found = np.zeros(len(rows), np.bool_)
    for pair in range(len(rows)):
        row, holds = rows[pair], wanted_firsts[pair] + 1 < wanted_firsts[pair + 1]
        for word in range(wanted_firsts[pair] + 1, wanted_firsts[pair + 1]):
            length, is_there = wanted_places[word + 1] - wanted_places[word], False
            for at in range(firsts[row], firsts[row + 1]):
                if (
                    hashes[at] == wanted[word]
                    and places[at + 1] - places[at] == length
                    and same_bytes(texts, places[at], wanted_texts, wanted_places[word], length)
                ):
                    is_there = True
                    break
            if not is_there:
                holds = False
                break
        found[pair] = holds
    return found
