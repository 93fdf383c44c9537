"""Words: which values contain all words of a constant, for many pairs at once.

The words of a batch of values are numbered; a (value, word) that occurs is one number in a sorted
list. A constant's words are looked up in that numbering once, however many values it is tried on, so
the test of all pairs is one sorted look-up, and exact.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fishweir.algebra.texts import words
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.witnesses.path_tables import PathTable


def contain(values: PathTable, rows: Ints, constants: pa.LargeStringArray) -> NDArray[np.bool_]:
    """For each pair of a row and a constant: whether the row's value has all the constant's words."""
    dictionary, present = values.word_numbers
    coded = constants.dictionary_encode()
    wanted = [sorted(words(text)) for text in coded.dictionary.to_pylist()]
    ends = np.cumsum(np.array([len(some) for some in wanted], dtype=np.int64))
    flat = pa.array([word for some in wanted for word in some], pa.large_string())
    numbers = pc.fill_null(pc.index_in(flat, value_set=dictionary), -1).to_numpy().astype(np.int64)
    constant = coded.indices.to_numpy().astype(np.int64)
    starts = np.append(0, ends[:-1])
    pair, at = expand(starts[constant], ends[constant])
    keys = rows[pair] * len(dictionary) + numbers[at]
    found = np.searchsorted(present, keys)
    missing = (numbers[at] < 0) | (present[np.minimum(found, len(present) - 1)] != keys)
    return (np.bincount(pair[missing], minlength=len(rows)) == 0) & (starts[constant] < ends[constant])
