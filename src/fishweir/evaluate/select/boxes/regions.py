"""Queries as regions and tuples as points of one space (the duality model).

In: a range with open or closed ends per query and attribute; a row of float64 values per tuple, NaN for NULL. Out: both
as *keys*, which are 64-bit integers in the order of the floats. Keys eliminate all special cases: an open end is the
neighbouring integer, NULL is the largest key, an attribute without a condition is the range of all keys, and an empty
region is a range without keys. Shared: every strategy works on keys and compares only integers. Paper: Spatial Join CQ,
section 4.1, definitions 1 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_SIGN = np.int64(np.iinfo(np.int64).max)
LOWEST = int(np.iinfo(np.int64).min)
HIGHEST = int(np.iinfo(np.int64).max)
NULL = HIGHEST


def float_keys(values: npt.ArrayLike) -> Keys:
    """Integers in the order of these floats; -0.0 and 0.0 are one key, NaN is NULL.

    >>> (np.diff(float_keys([-np.inf, -1.5, -0.0, 0.0, 1.5, np.inf, np.nan])) > 0).tolist()
    [True, True, False, True, True, True]
    """
    floats = np.asarray(values, dtype=np.float64) + 0.0
    bits = floats.view(np.int64)
    keys = np.where(bits < 0, bits ^ _SIGN, bits)
    return np.where(np.isnan(floats), NULL, keys)


def key_floats(keys: Keys) -> Floats:
    """The floats of these keys; LOWEST and HIGHEST, which no float has, become NaN."""
    return np.where(keys < 0, keys ^ _SIGN, keys).view(np.float64)


@dataclass(frozen=True, slots=True)
class Boxes:
    """Query regions: query i is low[i, a] <= key <= high[i, a] for every attribute a. Queries are numbered by row."""

    low: Keys
    high: Keys

    @classmethod
    def from_ranges(
        cls,
        lo: npt.ArrayLike,
        hi: npt.ArrayLike,
        lo_open: npt.ArrayLike = False,
        hi_open: npt.ArrayLike = False,
    ) -> Boxes:
        """Creates regions from (queries x attributes) matrices of constants. Each flag is a matrix or one value for
        all.

        -inf to inf means no condition, regardless of the flags. The same applies to the infinite end of a half-line.
        """
        least, most = np.asarray(lo, dtype=np.float64), np.asarray(hi, dtype=np.float64)
        if least.ndim != 2 or least.shape != most.shape:
            raise ValueError(f"lo and hi must be matrices of queries x attributes, not {least.shape} and {most.shape}")
        no_lower, no_upper = np.isneginf(least), np.isposinf(most)
        low = float_keys(least) + (np.broadcast_to(np.asarray(lo_open), least.shape) & ~no_lower & ~np.isnan(least))
        high = float_keys(most) - (np.broadcast_to(np.asarray(hi_open), most.shape) & ~no_upper & ~np.isnan(most))
        free = no_lower & no_upper
        high = np.where(np.isnan(least) | np.isnan(most), LOWEST, high)
        return cls.of_keys(np.where(free, LOWEST, low), np.where(free, HIGHEST, high))

    @classmethod
    def of_keys(cls, low: Keys, high: Keys) -> Boxes:
        """Creates regions from closed ranges of keys. A query with an empty range is empty as a whole. Takes ownership
        of the arrays."""
        empty = (low > high).any(axis=1)
        low[empty], high[empty] = HIGHEST, LOWEST
        return cls(low, high)

    @property
    def count(self) -> int:
        return int(self.low.shape[0])

    @property
    def attributes(self) -> int:
        return int(self.low.shape[1])

    def conditioned(self) -> Flags:
        """Whether each query has a condition on each attribute."""
        return (self.low != LOWEST) | (self.high != HIGHEST)

    def empty(self) -> Flags:
        """The queries that no tuple satisfies."""
        return np.asarray((self.low > self.high).any(axis=1))

    def used_attributes(self) -> npt.NDArray[np.intp]:
        """The attributes on which some satisfiable query has a condition."""
        return np.flatnonzero(self.conditioned()[~self.empty()].any(axis=0))

    def take(self, queries: npt.NDArray[np.intp], attributes: npt.NDArray[np.intp]) -> Boxes:
        chosen = np.ix_(queries, attributes)
        return Boxes(np.ascontiguousarray(self.low[chosen]), np.ascontiguousarray(self.high[chosen]))


def tuple_keys(values: npt.ArrayLike, attributes: int) -> Keys:
    """A batch of tuples (rows x attributes, float64, NaN for NULL) as keys."""
    floats = np.asarray(values, dtype=np.float64)
    if floats.ndim != 2 or floats.shape[1] != attributes:
        raise ValueError(f"expected a batch of tuples with {attributes} attributes, got the shape {floats.shape}")
    return float_keys(floats)
