"""Words: test which values contain all words of a constant (`contains`), for many pairs at once.

Each constant is looked up by one of its words. Constants of several words are checked afterwards. Words are compared by
hash and then byte by byte, so the test is exact. If many constants remain to be checked, a hash of each rejects most of
them before the pairs are materialized.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
        return cls(Equal.build(cls.keys(column)), np.array([not several(column).any()]))

    @classmethod
    def order(cls, column: pa.LargeStringArray) -> Ints:
        return Equal.order(cls.keys(column))

    @staticmethod
    def keys(column: pa.LargeStringArray) -> pa.LargeStringArray:
        """The word that each constant is looked up by."""
        return _by_words(
            column, pc.ascii_lower(column), lambda some: max(some, key=lambda word: (len(word), word), default=" ")
        )

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
    one = pa.array(np.zeros(len(column), np.bool_))
    return _by_words(column, one, lambda some: len(some) > 1).to_numpy(zero_copy_only=False)


def word_shares(column: pa.LargeStringArray, known: PathStatistics) -> Floats:
    """The selectivity of each constant: the share of its rarest word by the word counts. Before words are counted,
    longer words are assumed to be rarer."""
    counted = dict(known.words)
    if not counted:
        one = pc.divide(0.1, pc.cast(pc.binary_length(column), pa.float64()))
        found = _by_words(column, one, lambda some: 0.1 / max(map(len, some)) if some else 1.0)
        return np.array(found.to_numpy(zero_copy_only=False))
    total, unseen = max(known.worded, 1), min(counted.values()) / 2
    distinct = column.dictionary_encode()
    rarest = [
        min((counted.get(w, unseen) for w in words(text)), default=total) for text in distinct.dictionary.to_pylist()
    ]
    return (np.array(rarest, dtype=np.float64) / total)[distinct.indices.to_numpy()]


def _by_words(column: pa.LargeStringArray, one: pa.Array, of: Callable[[frozenset[str]], object]) -> pa.Array:
    """A value for each constant, computed from its words. Most constants are one word of ASCII letters and digits;
    their values are given as `one`."""
    others = pc.invert(pc.ascii_is_alnum(column))
    texts = column.filter(others).to_pylist()
    if not texts:
        return one
    found = {text: of(words(text)) for text in set(texts)}
    return pc.replace_with_mask(one, others, pa.array([found[text] for text in texts], one.type))


add_index(
    "contains", IndexFactory(Words.order, Words.build, several, contain, word_shares, Sieve(word_keys, sift_words))
)
