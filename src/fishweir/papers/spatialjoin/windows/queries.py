"""Window join queries: conditions on a tuple of R, on a tuple of S, comparisons between both, a window per side.

In: per query ranges on the attributes of each side, comparisons of an attribute of R with one of S, and how long (or
among how many) a tuple of each side waits for the other. Out: arrays over all queries. Nothing is shared yet.

A comparison is a range of the difference R.a - S.b, where equal values have the difference 0: `=` is [0, 0], `<` is
everything below 0, a band its two ends. This is the paper's diagonal and the areas beside it. An open end is the
neighbouring float, so that all ranges are closed. NULL is NaN, and no range contains it.
Paper: Spatial Join CQ, sections 2 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.regions import Boxes, Floats

Ints = npt.NDArray[np.int64]
LEFT, RIGHT = 0, 1
ALL_ROWS = 1 << 60
"""Rows of a window that is not by rows."""

_BELOW, _ABOVE = float(np.nextafter(0.0, -1.0)), float(np.nextafter(0.0, 1.0))
OPERATORS = {
    "=": (0.0, 0.0),
    "<": (-np.inf, _BELOW),
    "<=": (-np.inf, 0.0),
    ">": (_ABOVE, np.inf),
    ">=": (0.0, np.inf),
}


@dataclass(frozen=True, slots=True)
class Comparisons:
    """low <= R.left - S.right <= high, for the query. All comparisons of a query must hold."""

    query: Ints
    left: Ints
    right: Ints
    low: Floats
    high: Floats

    @classmethod
    def of(
        cls, query: npt.ArrayLike, left: npt.ArrayLike, operators: Sequence[str], right: npt.ArrayLike
    ) -> Comparisons:
        ends = np.array([OPERATORS[operator] for operator in operators], dtype=np.float64).reshape(-1, 2)
        return cls.bands(query, left, right, ends[:, 0], ends[:, 1])

    @classmethod
    def bands(
        cls, query: npt.ArrayLike, left: npt.ArrayLike, right: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike
    ) -> Comparisons:
        which, one, other = (np.asarray(x, dtype=np.int64).ravel() for x in (query, left, right))
        least, most = (np.asarray(x, dtype=np.float64).ravel() for x in (low, high))
        return cls(which, one, other, least, most)

    def and_also(self, others: Comparisons) -> Comparisons:
        names = ("query", "left", "right", "low", "high")
        return Comparisons(*(np.concatenate((getattr(self, name), getattr(others, name))) for name in names))

    def by_query(self) -> Comparisons:
        """Sorted, so that equal sets of comparisons are identical. Equalities and narrow bands come first."""
        order = np.lexsort((self.high, self.low, self.right, self.left, self.high - self.low, self.query))
        which, one, other = self.query[order], self.left[order], self.right[order]
        return Comparisons(which, one, other, self.low[order], self.high[order])


@dataclass(frozen=True)
class JoinQueries:
    """All queries over one pair of streams. A query's number is its row.

    `seconds[q, side]`, `rows[q, side]`: how long a tuple of that side waits for the other, and among how many newest;
    inf and ALL_ROWS if there is no such bound, seconds below 0 if it does not wait at all.
    """

    selections: tuple[Boxes, Boxes]
    comparisons: Comparisons
    seconds: Floats
    rows: Ints

    @classmethod
    def of(
        cls,
        left: Boxes,
        right: Boxes,
        comparisons: Comparisons,
        seconds: npt.ArrayLike = np.inf,
        rows: npt.ArrayLike = ALL_ROWS,
    ) -> JoinQueries:
        """`seconds` and `rows` per query and side, or anything that broadcasts to this shape."""
        shape = (left.count, 2)
        wide = np.broadcast_to(np.asarray(seconds, dtype=np.float64), shape)
        many = np.minimum(np.broadcast_to(np.asarray(rows, dtype=np.int64), shape), ALL_ROWS)
        if left.count != right.count:
            raise ValueError(f"{left.count} queries on the left side, {right.count} on the right")
        if (many < 1).any() or np.isnan(wide).any():
            raise ValueError("a window must have at least one row and a number of seconds")
        return cls((left, right), comparisons.by_query(), np.ascontiguousarray(wide), np.ascontiguousarray(many))

    @property
    def count(self) -> int:
        return self.selections[0].count

    @cached_property
    def starts(self) -> Ints:
        """The comparisons of query q are those from starts[q] to starts[q + 1]."""
        return np.searchsorted(self.comparisons.query, np.arange(self.count + 1)).astype(np.int64)

    @cached_property
    def reach(self) -> Reach:
        return Reach.of(self.seconds, self.rows)

    def satisfiable(self) -> npt.NDArray[np.bool_]:
        return ~(self.selections[0].empty() | self.selections[1].empty())


@dataclass(frozen=True, slots=True)
class Reach:
    """The reach of the longest windows, per side: seconds of those by time (below 0: none), rows of those by rows."""

    seconds: Floats
    rows: Ints
    even: bool
    """Whether all windows are the same, and by time or by rows: then the reach is the window."""

    @classmethod
    def of(cls, seconds: Floats, rows: Ints) -> Reach:
        by_rows = rows < ALL_ROWS
        longest = np.where(by_rows, -1.0, seconds).max(axis=0, initial=-1.0)
        most = np.where(by_rows, rows, 0).max(axis=0, initial=0)
        same = bool(len(rows)) and bool((seconds == seconds[0]).all() and (rows == rows[0]).all())
        return cls(longest, most, same and not bool((by_rows & np.isfinite(seconds)).any()))
