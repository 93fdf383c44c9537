"""Lookups of multiway joins: the rows of a side in all runs, and the documents of all runs.

In: runs and views. Out: rows and documents numbered across all runs, and their values on demand, without copying
retained state. For the combinations found so far, the candidate rows of a side are looked up by value, by time, or by
the remaining queries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.join.many.query_kernels import Floats, Lists
from fishweir.evaluate.join.many.side_views import TIME, SideView
from fishweir.evaluate.join.state import Run


def gathered(starts: Ints, at: Ints, parts: Sequence[Any], kind: Any) -> Any:
    """Gathers values of rows that are numbered across several arrays."""
    if len(parts) == 1:
        return parts[0][at]
    part = np.searchsorted(starts, at, "right") - 1
    found = np.empty(len(at), kind)
    for i in np.unique(part).tolist():
        mine = part == i
        found[mine] = parts[i][at[mine] - starts[i]]
    return found


class Documents:
    """The documents of all runs."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = list(runs)
        self.starts = np.append(0, np.cumsum([len(run) for run in runs]))[:-1].astype(np.int64)
        self._start = {id(run): int(start) for run, start in zip(runs, self.starts, strict=True)}

    def start(self, run: Run) -> int:
        return self._start[id(run)]

    def get(self, documents: Ints, part: Callable[[Run], Any], kind: Any = np.int64) -> Any:
        return gathered(self.starts, documents, [part(run) for run in self.runs], kind)


class Candidates:
    """The candidate rows of one side, in several runs."""

    def __init__(self, views: Sequence[SideView]) -> None:
        self.views = list(views)
        self.starts = np.append(0, np.cumsum([len(view) for view in views]))[:-1].astype(np.int64)

    def value(self, rows: Ints, value: int) -> Any:
        return gathered(self.starts, rows, [view.values[:, value] for view in self.views], np.uint64)

    def nodes(self, rows: Ints) -> list[Ints]:
        """The nodes of some rows, one array for each position."""
        width = self.views[0].nodes.shape[1]
        return [gathered(self.starts, rows, [v.nodes[:, i] for v in self.views], np.int64) for i in range(width)]


class Lookup(ABC):
    """A lookup of the rows of a side for some combinations. `value` is the value that it decides, -1 for none."""

    def __init__(self, side: int, value: int, hashed: bool = False) -> None:
        self.side, self.value, self.hashed = side, value, hashed

    def hits(self, candidates: Candidates) -> Ints:
        """The number of rows in all views for each combination."""
        found = self.counts(candidates.views[0])
        for view in candidates.views[1:]:
            found = found + self.counts(view)
        return found

    @abstractmethod
    def counts(self, view: SideView) -> Ints: ...

    @abstractmethod
    def found(self, view: SideView, some: slice) -> tuple[Ints, Ints]:
        """The found rows for some of the combinations, each with the number of its combination."""


class ByValue(Lookup):
    """Looks up rows by one of their values, or by TIME: ranges of the rows in that order, between the bounds that each
    combination sets."""

    def __init__(self, side: int, value: int, hashed: bool, against: Sequence[tuple[str, Any]]) -> None:
        super().__init__(side, value, hashed)
        self.against = against
        self._ranges: dict[int, tuple[Ints, Ints]] = {}

    def counts(self, view: SideView) -> Ints:
        lo, hi = self.ranges(view)
        return hi - lo

    def found(self, view: SideView, some: slice) -> tuple[Ints, Ints]:
        lo, hi = self.ranges(view)
        source, at = expand(lo[some], hi[some])
        return source + some.start, view.order(self.value, self.hashed)[0][at]

    def ranges(self, view: SideView) -> tuple[Ints, Ints]:
        """The range of positions in the view's order for each combination."""
        if id(view) not in self._ranges:
            _, by = view.order(self.value, self.hashed)
            lo, hi = np.zeros(len(self.against[0][1]), np.int64), np.full(len(self.against[0][1]), len(by))
            for op, values in self.against:
                if op in ("=", "<", "<="):
                    lo = np.maximum(lo, np.searchsorted(by, values, "right" if op == "<" else "left"))
                if op in ("=", ">", ">="):
                    hi = np.minimum(hi, np.searchsorted(by, values, "left" if op == ">" else "right"))
                if not self.hashed:
                    hi = np.where(np.isnan(values), 0, hi)
            self._ranges[id(view)] = lo, np.maximum(lo, hi)
        return self._ranges[id(view)]


def by_time(side: int, newest: Floats, reach: float, until: Floats) -> ByValue:
    """Looks up the rows that are at most `reach` before the newest document of each combination, and not after the time
    until which the others wait. The range is slightly wider, since the exact times are compared afterwards."""
    slack = 4 * np.spacing(np.abs(newest) + (reach if np.isfinite(reach) else 0.0))
    since = newest - reach - slack if np.isfinite(reach) else np.full(len(newest), -np.inf)
    return ByValue(side, TIME, False, (("<=", since), (">=", until + slack)))


class ByQuery(Lookup):
    """Looks up rows by the queries that remain for each combination: the distinct rows that satisfy any of them."""

    def __init__(self, side: int, remaining: Lists) -> None:
        super().__init__(side, TIME)
        self.remaining = remaining

    def counts(self, view: SideView) -> Ints:
        lo, hi, members = self.remaining
        source, at = expand(lo, hi)
        starts, _ = view.by_member
        queries = members[at]
        return np.bincount(source, starts[queries + 1] - starts[queries], len(lo)).astype(np.int64)

    def found(self, view: SideView, some: slice) -> tuple[Ints, Ints]:
        lo, hi, members = self.remaining
        starts, rows = view.by_member
        combination, at = expand(lo[some], hi[some])
        queries = members[at]
        source, place = expand(starts[queries], starts[queries + 1])
        keys = np.sort((combination[source] + some.start) << 32 | rows[place])
        keys = keys[np.diff(keys, prepend=-1) > 0]
        return keys >> 32, keys & 0xFFFFFFFF
