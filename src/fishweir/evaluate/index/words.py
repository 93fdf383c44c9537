"""Words: which values contain all words of a constant (`contains`), for many pairs at once.

Each constant is looked up by one of its words; those of several words are checked after.
The words of a batch of values are numbered; a (value, word) that occurs is one number in a sorted
list. A constant's words are looked up in that numbering once, however many values it is tried on, so
the test of all pairs is one sorted look-up, and exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fishweir.algebra.texts import words
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.index.constants import Equal, Slices
from fishweir.evaluate.index.registry import Floats, IndexFactory, add_index
from fishweir.evaluate.statistics import PathStatistics
from fishweir.evaluate.witnesses.path_tables import PathTable


@dataclass(frozen=True)
class Words:
    """`contains words`: each constant under its longest word, as the rarest.

    Where all constants are single words (`exact`) that is all; otherwise the rest is checked after.
    """

    words: Equal
    exact: NDArray[np.bool_]

    @property
    def is_exact(self) -> bool:
        return bool(self.exact[0])

    @classmethod
    def build(cls, column: pa.LargeStringArray) -> Words:
        """`column` in the table's order."""
        exact = all(len(words(text)) <= 1 for text in set(column.to_pylist()))
        return cls(Equal.build(cls.keys(column)), np.array([exact]))

    @classmethod
    def order(cls, column: pa.LargeStringArray) -> Ints:
        return Equal.order(cls.keys(column))

    @staticmethod
    def keys(column: pa.LargeStringArray) -> pa.LargeStringArray:
        """The word each constant is looked up by."""
        longest = {text: max(words(text), key=lambda w: (len(w), w), default=" ") for text in set(column.to_pylist())}
        return pa.array([longest[text] for text in column.to_pylist()], pa.large_string())

    def look_up(self, values: PathTable) -> Slices:
        rows, texts, hashes = values.words
        found = self.words.look_up(PathTable(rows, np.empty((0, 0), np.int64), texts, hashes=hashes))
        return Slices(rows[found.row], found.lo, found.hi)


def contain(values: PathTable, rows: Ints, constants: pa.LargeStringArray) -> NDArray[np.bool_]:
    """For each pair of a row and a constant: whether the row's value has all the constant's words."""
    dictionary, present = values.word_numbers
    coded = constants.dictionary_encode()
    wanted = [_sorted_words(text) for text in coded.dictionary.to_pylist()]
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


@lru_cache(maxsize=1 << 17)
def _sorted_words(constant: str) -> list[str]:
    """Constants come again with every batch."""
    return sorted(words(constant))


def several(column: pa.LargeStringArray) -> NDArray[np.bool_]:
    """The constants of more than one word: the index looks up one of them."""
    return np.array([len(words(text)) > 1 for text in column.to_pylist()], dtype=np.bool_)


def word_shares(column: pa.LargeStringArray, known: PathStatistics) -> Floats:
    """Words are counted, and the rarest word of a constant decides; before any are, longer ones are taken as rarer."""
    counted = dict(known.words)
    total = max(known.worded, 1)
    unseen = min(counted.values(), default=1) / 2 if counted else 0.0

    def share(word: str) -> float:
        if counted:
            return counted.get(word, unseen) / total
        return 0.1 / max(len(word), 1)

    distinct = column.dictionary_encode()
    by_text = [min(map(share, words(text)), default=1.0) for text in distinct.dictionary.to_pylist()]
    return np.array(by_text, dtype=np.float64)[distinct.indices.to_numpy()]


add_index("contains", IndexFactory(Words.order, Words.build, several, contain, word_shares))
