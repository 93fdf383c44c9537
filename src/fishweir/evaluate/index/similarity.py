"""Similarity: which of many texts share enough words with a value, each by its own threshold.

In: constants `share<tab>text`. Out: slices of the table, exact. Prefix filtering (as set similarity joins
do it): a constant of n words asking for a Jaccard similarity t must have at least k = ceil(t n) words in
common, so one of its n - k + 1 rarest is among them, and it is listed under these alone. For a value only the
constants listed under its words are tried, each once: its words are marked, and a constant's marked words
counted. Constants with t <= 0 are together at the end of the table: they are one slice for every value.
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
from fishweir.evaluate.jit import kernel
from fishweir.evaluate.witnesses.path_tables import PathTable, hash_texts

ASKS, ANY_WORDS, ANYTHING = 0, 1, 2
"""What a constant needs: words in common, a value with words at least, nothing."""


class Inverted(NamedTuple):
    """Constant i has the words `words[starts[i]:starts[i+1]]`, rarest first; word w lists
    `listed[lists[w]:lists[w+1]]`. `vocabulary` leads from a text to `numbers`, its word's number."""

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
    """`similar`: distinct constants in an inverted index of their rarest words."""

    constants: pa.LargeStringArray

    @staticmethod
    def order(column: pa.LargeStringArray) -> Ints:
        """Equal constants together, those that need no common word last."""
        codes = column.dictionary_encode()
        at = codes.indices.to_numpy()
        ranks = pc.rank(codes.dictionary, tiebreaker="dense").to_numpy()[at]
        return np.lexsort((ranks, hash_texts(codes.dictionary)[at], _kinds(*_split(codes.dictionary))[at]))

    @cached_property
    def _distinct(self) -> tuple[pa.LargeStringArray, Ints]:
        """The distinct constants, and where in the table each begins."""
        return distinct_constants(self.constants)

    @cached_property
    def _parts(self) -> tuple[NDArray[np.float64], list[frozenset[str]]]:
        return _split(self._distinct[0])

    @cached_property
    def _free(self) -> tuple[int, int]:
        """Where the constants begin that need no common word, and those that need nothing."""
        free, anything = self._distinct[1][np.searchsorted(_kinds(*self._parts), (ANY_WORDS, ANYTHING))]
        return int(free), int(anything)

    @cached_property
    def inverted(self) -> Inverted:
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
        return Inverted(vocabulary, order.astype(np.int64), starts, numbers, lists, owner[kept][by_word])

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
        """The numbers of the known words of each value, where each value's end, how many words it has in all."""
        dictionary, present = values.word_numbers
        number = np.full(len(dictionary), -1, np.int64)
        index = self.inverted
        known = index.vocabulary.look_up(PathTable(np.arange(len(dictionary)), np.empty((0, 0), np.int64), dictionary))
        number[known.row] = index.numbers[known.lo]
        rows, at = np.divmod(present, max(len(dictionary), 1))
        keep = number[at] >= 0
        ends = np.searchsorted(rows[keep], np.arange(len(values) + 1)).astype(np.int64)
        return number[at[keep]], ends, np.bincount(rows, minlength=len(values)) - 1  # `` is in every value


def least_common(shares: NDArray[np.float64], lengths: Ints) -> Ints:
    """The least k with k / n >= share, as floating-point division has it; n + 1 where there is none."""
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
    """The (value, constant) pairs that are similar: candidates by list, each counted once per value."""
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
