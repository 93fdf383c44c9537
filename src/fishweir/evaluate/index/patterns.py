"""Patterns: which of many SQL `like` patterns a value matches.

In: the patterns of all queries of one signature. Out: slices of the table, exact. Characters are replaced by
their class: two are in one class where `like` takes them for the same, so case plays no further role, and both
ends of a text have a class of their own. Each pattern is listed under one *key* that every value matching
it has: the whole text where it has no wildcard, else three characters in a row, the rarest among the patterns.
A value's keys lead to the few patterns that are tried; those without a key (`%a%`) are tried on each value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.index.constants import Equal, Slices, slices
from fishweir.evaluate.index.pattern_kernels import ANY_ONE, ANY_TEXT, END, START, hash_slots, like_pairs, literal_keys
from fishweir.evaluate.witnesses.path_tables import PathTable

NO_KEY = np.int64(0)
"""No character has class 0 but NUL, and three of those are listed with the patterns without a key."""


@lru_cache(maxsize=1)
def classes() -> NDArray[np.int32]:
    """The class of every character: that of all which a pattern's letter matches, whatever the case."""
    found = np.arange(0x110000, dtype=np.int32)
    several: dict[str, int] = {}
    for code in range(0x1F000):  # no letter beyond has a case
        char = chr(code)
        upper = char.lower()[0].upper()
        if upper != char:
            found[code] = ord(upper) if len(upper) == 1 else several.setdefault(upper, 0x110000 + len(several))
    return found


class Coded(NamedTuple):
    """Texts as classes of characters, each between START and END."""

    codes: Ints
    starts: Ints


def to_codes(texts: list[str]) -> Coded:
    lengths = np.array([len(text) + 2 for text in texts], dtype=np.int64)
    starts = np.append(0, np.cumsum(lengths)).astype(np.int64)
    plain = np.frombuffer("".join(f"\0{text}\0" for text in texts).encode("utf-32-le"), np.uint32)
    codes = classes()[plain].astype(np.int64)
    codes[starts[:-1]], codes[starts[1:] - 1] = START, END
    return Coded(codes, starts)


def pattern_codes(patterns: list[str]) -> Coded:
    coded = to_codes(patterns)
    plain = np.frombuffer("".join(f"\0{text}\0" for text in patterns).encode("utf-32-le"), np.uint32)
    codes = np.where(plain == ord("%"), ANY_TEXT, np.where(plain == ord("_"), ANY_ONE, coded.codes))
    return Coded(codes, coded.starts)


class Listed(NamedTuple):
    """The distinct keys in a hash table; patterns `listed[lists[i]:lists[i+1]]` are under key i."""

    patterns: Coded
    keys: Ints
    slots: Ints
    lists: Ints
    listed: Ints
    without: Ints


@dataclass(frozen=True)
class Like:
    """`like`: distinct patterns, each under one key."""

    constants: pa.LargeStringArray

    @staticmethod
    def order(column: pa.LargeStringArray) -> Ints:
        return Equal.order(column)

    @cached_property
    def _distinct(self) -> tuple[pa.LargeStringArray, Ints]:
        codes = self.constants.dictionary_encode()
        starts = np.flatnonzero(np.diff(codes.indices.to_numpy(), prepend=-1))
        return codes.dictionary, np.append(starts, len(self.constants)).astype(np.int64)

    @cached_property
    def listed(self) -> Listed:
        patterns = pattern_codes(self._distinct[0].to_pylist())
        keys, owner = literal_keys(*patterns)
        _, number, counts = np.unique(keys, return_inverse=True, return_counts=True)
        order = np.lexsort((counts[number], owner))
        first = order[np.append(True, np.diff(owner[order]) > 0)] if len(order) else order
        chosen = np.full(len(patterns.starts) - 1, NO_KEY)
        chosen[owner[first]] = keys[first]
        by_key = np.argsort(chosen, kind="stable")
        by_key = by_key[chosen[by_key] != NO_KEY]
        distinct, lists = np.unique(chosen[by_key], return_index=True)
        lists = np.append(lists, len(by_key)).astype(np.int64)
        return Listed(patterns, distinct, hash_slots(distinct), lists, by_key, np.flatnonzero(chosen == NO_KEY))

    def look_up(self, values: PathTable) -> Slices:
        coded, order, ends = values.once(_distinct_values)
        index, starts = self.listed, self._distinct[1]
        found, pattern = like_pairs(
            *coded, *index.patterns, index.keys, index.slots, index.lists, index.listed, index.without
        )
        pair, at = expand(ends[found], ends[found + 1])
        return slices(order[at], starts[pattern[pair]], starts[pattern[pair] + 1])


def _distinct_values(values: PathTable) -> tuple[Coded, Ints, Ints]:
    """The distinct values as classes of characters, and the rows that have each."""
    codes = values.texts.dictionary_encode()
    rows = codes.indices.to_numpy().astype(np.int64)
    order = np.argsort(rows, kind="stable")
    ends = np.searchsorted(rows[order], np.arange(len(codes.dictionary) + 1)).astype(np.int64)
    return to_codes(codes.dictionary.to_pylist()), order, ends
