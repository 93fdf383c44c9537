"""Patterns: find the patterns with wildcards that a value matches (`like`, `ilike`, `substring`, `starts-with`).

In: the patterns of all queries with one signature. Out: slices of the table, exact. Characters are replaced by their
class: two characters share a class if the condition treats them as equal, so case needs no further handling. The two
ends of a text have classes of their own. Each pattern is listed under one *key* that every matching value has: the
whole text if it has no wildcard, else three consecutive characters, the rarest among the patterns. A value's keys lead
to the few patterns that are tried. Patterns without a key (`%a%`) are tried on every value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.index.constants import Equal, Slices, slices
from fishweir.evaluate.index.pattern_kernels import ANY_ONE, ANY_TEXT, END, START, hash_slots, like_pairs, literal_keys
from fishweir.evaluate.index.registry import IndexFactory, add_index
from fishweir.evaluate.index.scan import distinct_constants, distinct_values
from fishweir.evaluate.witnesses.path_tables import PathTable

NO_KEY = np.int64(0)
"""Only NUL has class 0. Patterns with three NULs are listed with the patterns without a key."""


@lru_cache(maxsize=1)
def classes() -> NDArray[np.int32]:
    """The class of every character. Characters that a pattern's letter matches regardless of case share a class."""
    found = np.arange(0x110000, dtype=np.int32)
    several: dict[str, int] = {}
    for code in range(0x1F000):  # no letter beyond this has case
        char = chr(code)
        upper = char.lower()[0].upper()
        if upper != char:
            found[code] = ord(upper) if len(upper) == 1 else several.setdefault(upper, 0x110000 + len(several))
    return found


class Style(NamedTuple):
    """How a constant is interpreted: whether case is ignored, whether `%` and `_` are wildcards, and whether arbitrary
    text may precede and follow it."""

    folded: bool = False
    wild: bool = False
    before: bool = False
    after: bool = False


class CodedTexts(NamedTuple):
    """Texts as character classes, each between START and END."""

    codes: Ints
    starts: Ints


def _characters(texts: list[str], before: int = 1, after: int = 1) -> tuple[NDArray[np.uint32], Ints]:
    """All characters in one array, with room before and after each text, and the offset of each text."""
    lengths = np.array([len(text) + before + after for text in texts], dtype=np.int64)
    room, behind = "\0" * before, "\0" * after
    plain = np.frombuffer("".join(f"{room}{text}{behind}" for text in texts).encode("utf-32-le"), np.uint32)
    return plain, np.append(0, np.cumsum(lengths)).astype(np.int64)


def to_codes(texts: list[str], folded: bool = False) -> CodedTexts:
    plain, starts = _characters(texts)
    codes = (classes()[plain] if folded else plain).astype(np.int64)
    codes[starts[:-1]], codes[starts[1:] - 1] = START, END
    return CodedTexts(codes, starts)


def pattern_codes(patterns: list[str], style: Style) -> CodedTexts:
    plain, starts = _characters(patterns, 1 + style.before, 1 + style.after)
    codes = (classes()[plain] if style.folded else plain).astype(np.int64)
    if style.wild:
        codes = np.where(plain == ord("%"), ANY_TEXT, np.where(plain == ord("_"), ANY_ONE, codes))
    if style.before:
        codes[starts[:-1] + 1] = ANY_TEXT
    if style.after:
        codes[starts[1:] - 2] = ANY_TEXT
    codes[starts[:-1]], codes[starts[1:] - 1] = START, END
    return CodedTexts(codes, starts)


class KeyTable(NamedTuple):
    """The distinct keys in a hash table. The patterns `listed[lists[i]:lists[i+1]]` are listed under key i."""

    patterns: CodedTexts
    keys: Ints
    slots: Ints
    lists: Ints
    listed: Ints
    without: Ints


@dataclass(frozen=True)
class Patterns:
    """Distinct patterns of one style, each listed under one key."""

    constants: pa.LargeStringArray
    style: Style

    @cached_property
    def _distinct(self) -> tuple[pa.LargeStringArray, Ints]:
        return distinct_constants(self.constants)

    @cached_property
    def listed(self) -> KeyTable:
        patterns = pattern_codes(self._distinct[0].to_pylist(), self.style)
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
        return KeyTable(patterns, distinct, hash_slots(distinct), lists, by_key, np.flatnonzero(chosen == NO_KEY))

    def look_up(self, values: PathTable) -> Slices:
        coded, order, ends = values.once(_folded_values if self.style.folded else _plain_values)
        index, starts = self.listed, self._distinct[1]
        found, pattern = like_pairs(
            *coded, *index.patterns, index.keys, index.slots, index.lists, index.listed, index.without
        )
        pair, at = expand(ends[found], ends[found + 1])
        return slices(order[at], starts[pattern[pair]], starts[pattern[pair] + 1])


def _plain_values(values: PathTable) -> tuple[CodedTexts, Ints, Ints]:
    """The distinct values as character codes, and the rows of each."""
    texts, order, ends = values.once(distinct_values)
    return to_codes(texts.to_pylist()), order, ends


def _folded_values(values: PathTable) -> tuple[CodedTexts, Ints, Ints]:
    texts, order, ends = values.once(distinct_values)
    return to_codes(texts.to_pylist(), folded=True), order, ends


STYLES = {
    "like": Style(wild=True), "ilike": Style(folded=True, wild=True),
    "substring": Style(before=True, after=True), "starts-with": Style(after=True),
}  # fmt: skip

for _name, _style in STYLES.items():
    add_index(_name, IndexFactory(Equal.order, partial(Patterns, style=_style)))
