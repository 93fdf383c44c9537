"""What joins of several streams look up: the rows of a side in all runs, and the documents of all runs.

In: runs and views. Out: rows and documents numbered through all of them, and their values where somebody asks; nothing
of what is retained is copied. For the combinations found so far, the rows of a side that may go with each are stretches
of an order by value, or by time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.sharing.arrays import Ints
from fishweir.sharing.joins.many_views import TIME, SideView
from fishweir.sharing.joins.state import Run

Floats = NDArray[np.float64]


def gathered(starts: Ints, at: Ints, parts: Sequence[Any], kind: Any) -> Any:
    """Values of rows that are numbered through several arrays."""
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


class Pool:
    """The rows that one side may take, in several runs."""

    def __init__(self, views: Sequence[SideView]) -> None:
        self.views = list(views)
        self.starts = np.append(0, np.cumsum([len(view) for view in views]))[:-1].astype(np.int64)

    def value(self, rows: Ints, value: int) -> Any:
        return gathered(self.starts, rows, [view.values[:, value] for view in self.views], np.uint64)


@dataclass(frozen=True)
class Probe:
    """A look-up of the rows of a side by one of their values: what each combination compares it with, or by TIME, from
    a time to a time."""

    side: int
    value: int
    hashed: bool
    against: tuple[tuple[str, Any], ...]

    def stretches(self, view: SideView) -> tuple[Ints, Ints]:
        """For each combination the places in the view's order."""
        _, by = view.order(self.value, self.hashed)
        lo, hi = np.zeros(len(self.against[0][1]), np.int64), np.full(len(self.against[0][1]), len(by))
        for op, values in self.against:
            if op in ("=", "<", "<="):
                lo = np.maximum(lo, np.searchsorted(by, values, "right" if op == "<" else "left"))
            if op in ("=", ">", ">="):
                hi = np.minimum(hi, np.searchsorted(by, values, "left" if op == ">" else "right"))
            if not self.hashed:
                hi = np.where(np.isnan(values), 0, hi)
        return lo, np.maximum(lo, hi)


def by_time(side: int, newest: Floats, reach: float, until: Floats) -> Probe:
    """The rows that are at most `reach` before the newest of each combination, and not after the time that the others
    wait till; a bit wider, since the exact times are compared afterwards."""
    slack = 4 * np.spacing(np.abs(newest) + (reach if np.isfinite(reach) else 0.0))
    since = newest - reach - slack if np.isfinite(reach) else np.full(len(newest), -np.inf)
    return Probe(side, TIME, False, (("<=", since), (">=", until + slack)))
