"""Words of texts, for all texts of a batch: those in ASCII by a kernel, others as `algebra.texts` says."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.texts import words
from fishweir.evaluate.witnesses.path_tables import BASE, Ints, hash_texts, mix, offsets_of
from fishweir.evaluate.witnesses.text_kernels import are_ascii, ascii_words

Words = tuple[Ints, pa.LargeStringArray, NDArray[np.uint64]]

LETTERS = np.array([ord(chr(i).lower()) if chr(i).isalnum() or chr(i) == "_" else 0 for i in range(128)], np.uint8)


def words_of(texts: pa.LargeStringArray) -> Words:
    """The distinct words of each text: row, word, the word's hash, by row; `` is in every text, so none is without."""
    data = texts.buffers()[2] if len(texts) else None
    if data is None:
        return _one_by_one(texts, np.arange(len(texts)))
    offsets, bytes_ = offsets_of(texts), np.frombuffer(data, np.uint8)
    starts, ends = offsets[:-1], offsets[1:]
    plain = are_ascii(starts, ends, bytes_)
    own = np.flatnonzero(plain)
    rows, places, written, sums = ascii_words(own, starts[own], ends[own], bytes_, LETTERS, BASE)
    found = pa.Array.from_buffers(pa.large_string(), len(rows), [None, pa.py_buffer(places), pa.py_buffer(written)])
    if len(own) == len(texts):
        return rows, found, mix(sums)
    return _together((rows, found, mix(sums)), _one_by_one(texts, np.flatnonzero(~plain)))


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
