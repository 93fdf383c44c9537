"""Similarity: find the texts that share enough words with a value, each by its own threshold.

In: constants `share<tab>text`. Out: slices of the table, exact. The index uses prefix filtering, as set similarity
joins do. A constant of n words that requires a Jaccard similarity t must share at least k = ceil(t n) words with the
value. One of its n - k + 1 rarest words is therefore among the shared ones, and it is listed under these words only.
For each value, the constants listed under its words are candidates. Each is checked once, by marking the value's words
and counting the marked words of the constant. Constants with t <= 0 are stored together at the end of the table, where
they form one slice for every value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fishweir.algebra.texts import words
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.index.constants import Equal, Slices, slices
from fishweir.evaluate.index.registry import IndexFactory, add_index
from fishweir.evaluate.index.scan import distinct_constants
from fishweir.evaluate.witnesses.path_tables import PathTable, hash_texts
from fishweir.jit import kernel

ASKS, ANY_WORDS, ANYTHING = 0, 1, 2
"""What a constant requires: words in common, a value with at least one word, or nothing."""


class InvertedIndex(NamedTuple):
    """Constant i has the words `words[starts[i]:starts[i+1]]`, rarest first. Word w lists
    `listed[lists[w]:lists[w+1]]`. `vocabulary` finds the position of a text, and `numbers` the number of its word."""

    vocabulary: Equal
    numbers: Ints
    starts: Ints
    words: Ints
    lists: Ints
    listed: Ints


def _split(column: pa.LargeStringArray) -> tuple[NDArray[np.float64], list[frozenset[str]]]:
    """The share and the words of each constant."""
    parts = [text.partition("\t") for text in column.to_pylist()]
    return np.array([float(share) for share, _, _ in parts]), [words(text) for _, _, text in parts]


def _kinds(shares: NDArray[np.float64], wanted: list[frozenset[str]]) -> Ints:
    has_words = np.array([bool(some) for some in wanted], dtype=np.bool_)
    return np.where(shares <= 0, np.where(has_words, ANYTHING, ANY_WORDS), ASKS).astype(np.int64)


@dataclass(frozen=True)
class Similar:
    """`similar`: distinct constants in an inverted index over their rarest words."""

    constants: pa.LargeStringArray

    @staticmethod
    def order(column: pa.LargeStringArray) -> Ints:
        """Equal constants are adjacent. Those that require no common word come last."""
        codes = column.dictionary_encode()
        at = codes.indices.to_numpy()
        ranks = pc.rank(codes.dictionary, tiebreaker="dense").to_numpy()[at]
        return np.lexsort((ranks, hash_texts(codes.dictionary)[at], _kinds(*_split(codes.dictionary))[at]))

    @cached_property
    def _distinct(self) -> tuple[pa.LargeStringArray, Ints]:
        """The distinct constants, and the offset of each in the table."""
        return distinct_constants(self.constants)

    @cached_property
    def _parts(self) -> tuple[NDArray[np.float64], list[frozenset[str]]]:
        return _split(self._distinct[0])

    @cached_property
    def _free(self) -> tuple[int, int]:
        """The offsets of the constants that require no common word, and of those that require nothing."""
        free, anything = self._distinct[1][np.searchsorted(_kinds(*self._parts), (ANY_WORDS, ANYTHING))]
        return int(free), int(anything)

    @cached_property
    def inverted(self) -> InvertedIndex:
        shares, wanted = self._parts
        flat = pa.array([word for some in wanted for word in sorted(some)], pa.large_string()).dictionary_encode()
        lengths = np.array([len(some) for some in wanted], dtype=np.int64)
        starts = np.append(0, np.cumsum(lengths)).astype(np.int64)
        numbers = flat.indices.to_numpy().astype(np.int64)
        counts = np.bincount(numbers, minlength=len(flat.dictionary))
        owner = np.repeat(np.arange(len(wanted)), lengths)
        numbers = numbers[np.lexsort((numbers, counts[numbers], owner))]
        within = np.arange(len(numbers)) - starts[owner]
        needed = least_common(shares, lengths)
        kept = within < np.where((shares > 0) & (needed <= lengths), lengths - needed + 1, 0)[owner]
        by_word = np.argsort(numbers[kept], kind="stable")
        lists = np.searchsorted(numbers[kept][by_word], np.arange(len(counts) + 1)).astype(np.int64)
        order = Equal.order(flat.dictionary)
        vocabulary = Equal.build(flat.dictionary.take(pa.array(order)))
        return InvertedIndex(vocabulary, order.astype(np.int64), starts, numbers, lists, owner[kept][by_word])

    def look_up(self, values: PathTable) -> Slices:
        shares, starts, size = self._parts[0], self._distinct[1], len(self.constants)
        given, ends, lengths = self._numbered(values)
        index = self.inverted
        rows, found = _similar_pairs(given, ends, lengths, index.lists, index.listed, index.starts, index.words, shares)
        free, anything = self._free
        every = np.arange(len(values) if free < size else 0)
        return slices(
            np.concatenate([rows, every]),
            np.concatenate([starts[found], np.where(lengths[every] > 0, free, anything)]),
            np.concatenate([starts[found + 1], np.full(len(every), size)]),
        )

    def _numbered(self, values: PathTable) -> tuple[Ints, Ints, Ints]:
        """The numbers of each value's known words, the offsets of each value, and its total number of words."""
        dictionary, present = values.word_numbers
        number = np.full(len(dictionary), -1, np.int64)
        index = self.inverted
        known = index.vocabulary.look_up(PathTable(np.arange(len(dictionary)), np.empty((0, 0), np.int64), dictionary))
        number[known.row] = index.numbers[known.lo]
        rows, at = np.divmod(present, max(len(dictionary), 1))
        keep = number[at] >= 0
        ends = np.searchsorted(rows[keep], np.arange(len(values) + 1)).astype(np.int64)
        return number[at[keep]], ends, np.bincount(rows, minlength=len(values)) - 1  # every value has the empty word


def least_common(shares: NDArray[np.float64], lengths: Ints) -> Ints:
    """The least k with k / n >= share in floating-point division; n + 1 if there is none."""
    least = np.zeros(len(lengths), np.int64)
    some = np.flatnonzero((lengths > 0) & (shares > 0) & (shares <= 1))
    n, share = lengths[some], shares[some]
    k = np.ceil(share * n).astype(np.int64)
    k -= (k - 1) / n >= share
    least[some] = np.maximum(k, 1)
    least[~((shares <= 1) & (lengths > 0))] = lengths[~((shares <= 1) & (lengths > 0))] + 1
    return least


@kernel
def _similar_pairs(
    given: Ints,
    ends: Ints,
    lengths: Ints,
    lists: Ints,
    listed: Ints,
    starts: Ints,
    numbers: Ints,
    shares: NDArray[np.float64],
) -> tuple[Ints, Ints]:
    """The similar (value, constant) pairs. Candidates come from the lists, and each is counted once per value."""
    rows, found, count = np.empty(64, np.int64), np.empty(64, np.int64), 0
    tried, marked = np.full(len(shares), -1, np.int64), np.full(len(lists), -1, np.int64)
    for row in range(len(ends) - 1):
        for at in range(ends[row], ends[row + 1]):
            marked[given[at]] = row
        for at in range(ends[row], ends[row + 1]):
            for place in range(lists[given[at]], lists[given[at] + 1]):
                constant = listed[place]
                if tried[constant] == row:
                    continue
                tried[constant] = row
                own = starts[constant + 1] - starts[constant]
                if min(own, lengths[row]) / max(own, lengths[row]) < shares[constant]:
                    continue
                common = 0
                for word in range(starts[constant], starts[constant + 1]):
                    if marked[numbers[word]] == row:
                        common += 1
                if common / (own + lengths[row] - common) >= shares[constant]:
                    if count == len(rows):
                        rows, found = np.append(rows, rows), np.append(found, found)
                    rows[count], found[count] = row, constant
                    count += 1
    return rows[:count], found[:count]


add_index("similar", IndexFactory(Similar.order, Similar))
