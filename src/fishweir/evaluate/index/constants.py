"""Constant tables: find the constants of a group that a value satisfies (NiagaraCQ 3.2.2 and 3.4).

In: the constants of all queries with one signature. Out, for a batch of values: *slices* of the table. The queries that
a value fires are contiguous, so an answer consists of a few (from, to) pairs, regardless of the number of queries. This
follows from the sort order: `value > c` holds for a prefix of the sorted constants, `value < c` for a suffix, and
`value = c` for a run of equal ones. Two-sided ranges are stored in an interval tree whose nodes are sorted in the same
way. Each value takes one lookup, without a loop over queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Column, Ints
from fishweir.evaluate.witnesses.path_tables import PathTable, bytes_of, hash_texts, offsets_of

Floats = NDArray[np.float64]


class Slices(NamedTuple):
    """The values in row `row[i]` satisfy the constants at positions `lo[i]` to `hi[i]` of the table."""

    row: Ints
    lo: Ints
    hi: Ints

    def nonempty(self) -> Slices:
        keep = self.hi > self.lo
        return self if keep.all() else Slices(self.row[keep], self.lo[keep], self.hi[keep])


def slices(row: Ints, lo: Ints, hi: Ints) -> Slices:
    return Slices(np.asarray(row, np.int64), np.asarray(lo, np.int64), np.asarray(hi, np.int64)).nonempty()


@dataclass(frozen=True)
class Everything:
    """The index for queries without a constant: every value fires every query."""

    size: int

    @staticmethod
    def order(size: int) -> Ints:
        return np.arange(size)

    def look_up(self, values: PathTable) -> Slices:
        rows = values.documents if values.is_whole else np.arange(len(values))
        return slices(rows, np.zeros(len(rows), np.int64), np.full(len(rows), self.size))


@dataclass(frozen=True)
class Equal:
    """`= string`: distinct constants, sorted by hash. The texts are compared too, so collisions are harmless."""

    hashes: NDArray[np.uint64]
    constants: pa.LargeStringArray
    starts: Ints

    @staticmethod
    def order(column: pa.LargeStringArray) -> Ints:
        codes = column.dictionary_encode()
        ranks = pc.rank(codes.dictionary, tiebreaker="dense").to_numpy()[codes.indices.to_numpy()]
        return np.lexsort((ranks, hash_texts(codes.dictionary)[codes.indices.to_numpy()]))

    @classmethod
    def build(cls, column: pa.LargeStringArray) -> Equal:
        """Builds the index; `column` is in the table's order."""
        codes = column.dictionary_encode()
        starts = np.flatnonzero(np.diff(codes.indices.to_numpy(), prepend=-1))
        return cls(hash_texts(codes.dictionary), codes.dictionary, np.append(starts, len(column)).astype(np.int64))

    @cached_property
    def _directory(self) -> tuple[Ints, int]:
        """The position of the first hash with each prefix, and the prefix length in bits. About one hash has each
        prefix."""
        bits = len(self.hashes).bit_length()
        first = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits) if bits else np.zeros(1, np.uint64)
        return np.append(np.searchsorted(self.hashes, first), len(self.hashes)), bits

    def look_up(self, values: PathTable) -> Slices:
        from fishweir.evaluate.index.word_kernels import find_equal  # imported late because it loads the kernels

        known, given = (offsets_of(self.constants), bytes_of(self.constants)), values.texts
        rows, at = find_equal(self.hashes, *self._directory, *known, values.hashes, offsets_of(given), bytes_of(given))
        return slices(rows, self.starts[at], self.starts[at + 1])


@dataclass(frozen=True)
class Sorted:
    """One-sided ranges, `!=`, and `=` on numbers: the constants in ascending order."""

    op: str
    constants: Column
    part: str = "value"

    @staticmethod
    def order(column: Column) -> Ints:
        if isinstance(column, np.ndarray):
            return np.argsort(column, kind="stable")
        return pc.sort_indices(column).to_numpy().astype(np.int64)

    def look_up(self, values: PathTable) -> Slices:
        rows, below, upto = self._positions(values)
        start, end = np.zeros_like(below), np.full_like(below, len(self.constants))
        match self.op:
            case ">":
                return slices(rows, start, below)
            case ">=":
                return slices(rows, start, upto)
            case "<":
                return slices(rows, upto, end)
            case "<=":
                return slices(rows, below, end)
            case "=":
                return slices(rows, below, upto)
        both = np.concatenate([rows, rows])
        return slices(both, np.concatenate([start, upto]), np.concatenate([below, end]))

    def _positions(self, values: PathTable) -> tuple[Ints, Ints, Ints]:
        """Comparable rows, with the numbers of constants less than the value, and less than or equal to it."""
        if isinstance(self.constants, np.ndarray):
            rows, given = in_order(values, self.part)
            below, upto = (np.searchsorted(self.constants, given, side) for side in ("left", "right"))
            return rows, below, upto
        rows = np.arange(len(values))
        constants, texts = self.constants.to_numpy(zero_copy_only=False), values.texts.to_numpy(False)
        return rows, np.searchsorted(constants, texts, "left"), np.searchsorted(constants, texts, "right")


@dataclass(frozen=True)
class Interval:
    """Two-sided ranges: an interval tree over the ranks of the endpoints.

    The coordinate of a value is 2i+1 if it equals the i-th endpoint and 2i if it lies just below it, so strict and
    non-strict bounds both become closed integer intervals [a, b]. An interval is stored at the level of the highest bit
    in which a and b differ. The nodes of a level that a coordinate can reach share its higher bits, so the list of a
    level, sorted by a (left half) or by b (right half), answers with one slice.
    """

    endpoints: Floats
    levels: Ints
    starts: Ints
    by_a: Ints
    by_b: Ints
    part: str = "value"

    @staticmethod
    def coordinates(endpoints: Floats, lo: Floats, hi: Floats, lo_op: str, hi_op: str) -> tuple[Ints, Ints]:
        a = 2 * np.searchsorted(endpoints, lo) + (2 if lo_op == ">" else 1)
        b = 2 * np.searchsorted(endpoints, hi) + (0 if hi_op == "<" else 1)
        return a, b

    @classmethod
    def build(cls, lo: Floats, hi: Floats, lo_op: str, hi_op: str, part: str = "value") -> tuple[Interval, Ints]:
        """The tree, and the order: an index into the given constants for each position in the table."""
        endpoints = np.unique(np.concatenate([lo, hi]))
        a, b = cls.coordinates(endpoints, lo, hi, lo_op, hi_op)
        possible = np.flatnonzero(a <= b)
        a, b = a[possible], b[possible]
        bits = np.frexp((a ^ b).astype(np.float64))[1].astype(np.int64)
        left, right = np.lexsort((a, bits)), np.lexsort((b, bits))
        levels, starts = np.unique(bits[left], return_index=True)
        tree = cls(endpoints, levels, np.append(starts, len(a)).astype(np.int64), a[left], b[right], part)
        return tree, np.concatenate([possible[left], possible[right]])

    def look_up(self, values: PathTable) -> Slices:
        rows, given = in_order(values, self.part)
        at = np.searchsorted(self.endpoints, given, "left") + np.searchsorted(self.endpoints, given, "right")
        found = [self._level(i, at) for i in range(len(self.levels))]
        lo = np.concatenate([lo for lo, _ in found]) if found else np.empty(0, np.int64)
        hi = np.concatenate([hi for _, hi in found]) if found else np.empty(0, np.int64)
        return slices(np.tile(rows, len(found)), lo, hi)

    def _level(self, i: int, at: Ints) -> tuple[Ints, Ints]:
        bits, start, end = self.levels[i], self.starts[i], self.starts[i + 1]
        a, b = self.by_a[start:end], self.by_b[start:end]
        first = (at >> bits) << bits
        middle, last = first + ((1 << bits) >> 1), first + (1 << bits)
        left, right = np.flatnonzero(at < middle), np.flatnonzero(at >= middle)
        lo, hi = np.empty(len(at), np.int64), np.empty(len(at), np.int64)
        lo[left], hi[left] = np.searchsorted(a, first[left]), np.searchsorted(a, at[left], "right")
        lo[right], hi[right] = np.searchsorted(b, at[right]), np.searchsorted(b, last[right])
        lo[right] += len(self.by_a)
        hi[right] += len(self.by_a)
        return lo + start, hi + start


def in_order(values: PathTable, part: str) -> tuple[Ints, Floats]:
    """The rows with a number, and these numbers, in ascending order, so that lookups touch each cache line once."""
    if part == "value":
        return values.by_number, values.numbers[values.by_number]
    numbers = values.part(part)
    order = np.argsort(numbers, kind="stable")
    order = order[: len(order) - int(np.isnan(numbers).sum())]
    return order, numbers[order]
