"""The words of all texts of a batch. A kernel finds them; texts with unusual characters are left to `algebra.texts`."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.texts import words
from fishweir.evaluate.witnesses.path_tables import BASE, Ints, bytes_of, hash_texts, mix, offsets_of
from fishweir.evaluate.witnesses.text_kernels import are_ascii, are_known, distinct_words

Words = tuple[Ints, pa.LargeStringArray, NDArray[np.uint64]]

ODD = -1
"""Marks a character that is left to Python: its lower case consists of several characters, is longer in UTF-8, or
differs at the end of a word."""
PLANES = 0x20000
"""Characters from this code point on are left to Python."""


def words_of(texts: pa.LargeStringArray) -> Words:
    """The distinct words of each text, by row: row, word, and the word's hash. Every text includes the empty word, so
    each row occurs."""
    offsets, data = offsets_of(texts), bytes_of(texts)
    if not len(data):
        return _one_by_one(texts, np.arange(len(texts)))
    starts, ends = offsets[:-1], offsets[1:]
    plain, letters = are_ascii(starts, ends, data), letters_below(128)
    if not plain.all():
        letters = letters_below(PLANES)
        plain = are_known(starts, ends, data, letters)
    own = np.flatnonzero(plain)
    rows, places, written, sums = distinct_words(own, starts[own], ends[own], data, letters, BASE)
    found = pa.Array.from_buffers(pa.large_string(), len(rows), [None, pa.py_buffer(places), pa.py_buffer(written)])
    if len(own) == len(texts):
        return rows, found, mix(sums)
    return _together((rows, found, mix(sums)), _one_by_one(texts, np.flatnonzero(~plain)))


@lru_cache(maxsize=2)
def letters_below(end: int) -> NDArray[np.int32]:
    """The form of each character in a word: its lower case, 0 if it is not part of words, or ODD."""
    return np.array([_letter(chr(code)) for code in range(end)], np.int32)


def _letter(character: str) -> int:
    lower = character.lower()
    if len(lower) > 1 or _is_longer(lower, character) or character == "\N{GREEK CAPITAL LETTER SIGMA}":
        return ODD
    return ord(lower) if lower.isalnum() or lower == "_" else 0


def _is_longer(one: str, other: str) -> bool:
    return one != other and len(one.encode()) > len(other.encode())


def _one_by_one(texts: pa.LargeStringArray, chosen: Ints) -> Words:
    found = [sorted({"", *words(text)}) for text in texts.take(pa.array(chosen)).to_pylist()]
    rows = np.repeat(chosen, np.array([len(some) for some in found], dtype=np.int64))
    flat = pa.array([word for some in found for word in some], pa.large_string())
    return rows.astype(np.int64), flat, hash_texts(flat)


def _together(one: Words, other: Words) -> Words:
    rows = np.concatenate([one[0], other[0]])
    order = np.argsort(rows, kind="stable")
    texts = pa.concat_arrays([one[1], other[1]]).take(pa.array(order))
    return rows[order], texts, np.concatenate([one[2], other[2]])[order]
