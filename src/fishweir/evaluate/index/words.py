"""Words: test which values contain all words of a constant (`contains`), for many pairs at once.

Each constant is looked up by one of its words. Constants of several words are checked afterwards. Words are compared by
hash and then byte by byte, so the test is exact. If many constants remain to be checked, a hash of each rejects most of
them before the pairs are materialized.
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
    """`contains words`: each constant is listed under its longest word, presumably its rarest.

    If all constants are single words (`exact`), that suffices; otherwise the remaining words are checked afterwards.
    """

    words: Equal
    exact: NDArray[np.bool_]

    @property
    def is_exact(self) -> bool:
        return bool(self.exact[0])

    @classmethod
    def build(cls, column: pa.LargeStringArray) -> Words:
        """Builds the index; `column` is in the table's order."""
        exact = all(len(words(text)) <= 1 for text in set(column.to_pylist()))
        return cls(Equal.build(cls.keys(column)), np.array([exact]))

    @classmethod
    def order(cls, column: pa.LargeStringArray) -> Ints:
        return Equal.order(cls.keys(column))

    @staticmethod
    def keys(column: pa.LargeStringArray) -> pa.LargeStringArray:
        """The word that each constant is looked up by."""
        longest = {text: max(words(text), key=lambda w: (len(w), w), default=" ") for text in set(column.to_pylist())}
        return pa.array([longest[text] for text in column.to_pylist()], pa.large_string())

    def look_up(self, values: PathTable) -> Slices:
        rows, texts, hashes = values.words
        found = self.words.look_up(PathTable(rows, np.empty((0, 0), np.int64), texts, hashes=hashes))
        return Slices(rows[found.row], found.lo, found.hi)


def contain(values: PathTable, rows: Ints, constants: pa.LargeStringArray) -> NDArray[np.bool_]:
    """For each pair of a row and a constant, whether the row's value has all words of the constant."""
    from fishweir.evaluate.index.word_kernels import have_words  # imported late because it loads the kernels

    return have_words(rows, *values.once(_listed), *_listed(_table(constants)))


def _table(texts: pa.LargeStringArray) -> PathTable:
    rows = np.arange(len(texts))
    return PathTable(rows, rows[:, None], texts)


def _listed(values: PathTable) -> tuple[Ints, NDArray[np.uint64], Ints, NDArray[np.uint8]]:
    """The offset of each value's words, and the hashes, offsets and bytes of the words."""
    rows, texts, hashes = values.words
    return np.searchsorted(rows, np.arange(len(values) + 1)), hashes, offsets_of(texts), bytes_of(texts)


def word_keys(constants: pa.LargeStringArray) -> NDArray[np.uint64]:
    """For each constant, the hash of one of its words. A value that satisfies the constant must have this hash among
    those of its words."""
    firsts, hashes, _, _ = _listed(_table(constants))
    return hashes[np.minimum(firsts[:-1] + 1, firsts[1:] - 1)]


def sift_words(values: PathTable, rows: Ints, lo: Ints, hi: Ints, keys: NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """The positions in slices whose key is among the word hashes of the slice's row."""
    from fishweir.evaluate.index.word_kernels import sift

    firsts, hashes, _, _ = values.once(_listed)
    return sift(rows, lo, hi, keys, firsts, hashes)


def several(column: pa.LargeStringArray) -> NDArray[np.bool_]:
    """The constants of more than one word, of which the index looks up only one."""
    return np.array([len(words(text)) > 1 for text in column.to_pylist()], dtype=np.bool_)


def word_shares(column: pa.LargeStringArray, known: PathStatistics) -> Floats:
    """The selectivity of each constant: the share of its rarest word by the word counts. Before words are counted,
    longer words are assumed to be rarer."""
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
