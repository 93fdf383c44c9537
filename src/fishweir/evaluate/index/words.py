"""Words: which values contain all words of a constant (`contains`), for many pairs at once.

Each constant is looked up by one of its words; those of several words are checked after.
Words are compared by hash first and byte by byte then, so the test is exact. Where many constants
are left to check, a hash of each sifts out most of them before anything is made of the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.texts import words
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.index.constants import Equal, Slices
from fishweir.evaluate.index.registry import Floats, IndexFactory, Sieve, add_index
from fishweir.evaluate.statistics import PathStatistics
from fishweir.evaluate.witnesses.path_tables import PathTable, bytes_of, offsets_of


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
    from fishweir.evaluate.index.word_kernels import have_words  # late: it loads the kernels

    return have_words(rows, *values.once(_listed), *_listed(_table(constants)))


def _table(texts: pa.LargeStringArray) -> PathTable:
    rows = np.arange(len(texts))
    return PathTable(rows, rows[:, None], texts)


def _listed(values: PathTable) -> tuple[Ints, NDArray[np.uint64], Ints, NDArray[np.uint8]]:
    """Where the words of each value begin, their hashes, offsets and bytes."""
    rows, texts, hashes = values.words
    return np.searchsorted(rows, np.arange(len(values) + 1)), hashes, offsets_of(texts), bytes_of(texts)


def word_keys(constants: pa.LargeStringArray) -> NDArray[np.uint64]:
    """A hash for each constant that a value must have among those of its words: that of one of the constant's."""
    firsts, hashes, _, _ = _listed(_table(constants))
    return hashes[np.minimum(firsts[:-1] + 1, firsts[1:] - 1)]


def sift_words(values: PathTable, rows: Ints, lo: Ints, hi: Ints, keys: NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """Of the positions of slices, those whose key the slice's row has among the hashes of its words."""
    from fishweir.evaluate.index.word_kernels import sift

    firsts, hashes, _, _ = values.once(_listed)
    return sift(rows, lo, hi, keys, firsts, hashes)


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


add_index(
    "contains", IndexFactory(Words.order, Words.build, several, contain, word_shares, Sieve(word_keys, sift_words))
)
