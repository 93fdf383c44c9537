"""The naive window join: every query, every pair, one value at a time. Obviously correct, never fast.

In: the same as for any strategy. Out: a list of (query, r, s). Tests compare every strategy with it. It shares only the
form of the queries with them, no code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from fishweir.evaluate.select.boxes.regions import float_keys
from fishweir.papers.spatialjoin.windows.join import Arrivals
from fishweir.papers.spatialjoin.windows.queries import ALL_ROWS, JoinQueries


@dataclass(frozen=True)
class Row:
    time: float
    number: int
    values: tuple[float, ...]


@dataclass
class NaiveJoin:
    queries: JoinQueries
    lateness: float = 0.0
    kept: tuple[list[Row], list[Row]] = field(default_factory=lambda: ([], []))
    arrived: list[int] = field(default_factory=lambda: [0, 0])

    def process_both(self, left: Arrivals, right: Arrivals) -> list[tuple[int, int, int]]:
        new: set[tuple[int, int]] = set()
        for side, arrivals in enumerate((left, right)):
            for time, values in zip(arrivals.times.tolist(), arrivals.columns.tolist(), strict=True):
                self.kept[side].append(Row(time, self.arrived[side], tuple(values)))
                new.add((side, self.arrived[side]))
                self.arrived[side] += 1
        found = [
            (query, r.number, s.number)
            for query in range(self.queries.count)
            for r in self.kept[0]
            for s in self.kept[1]
            if ((0, r.number) in new or (1, s.number) in new)
            if self.selected(query, 0, r) and self.selected(query, 1, s)
            if self.compared(query, r, s) and self.within_windows(query, r, s)
        ]
        self.invalidate()
        return sorted(found)

    def selected(self, query: int, side: int, row: Row) -> bool:
        boxes = self.queries.selections[side]
        keys = float_keys(row.values)
        return all(boxes.low[query, a] <= keys[a] <= boxes.high[query, a] for a in range(len(keys)))

    def compared(self, query: int, r: Row, s: Row) -> bool:
        c = self.queries.comparisons
        for i in np.flatnonzero(c.query == query).tolist():
            one, other = r.values[c.left[i]], s.values[c.right[i]]
            if not c.low[i] <= (0.0 if one == other else one - other) <= c.high[i]:
                return False
        return True

    def within_windows(self, query: int, r: Row, s: Row) -> bool:
        if r.time == s.time:
            return True
        side, older, newer = (0, r, s) if r.time < s.time else (1, s, r)
        between = sum(
            (row.time, row.number) > (older.time, older.number) and row.time <= newer.time for row in self.kept[side]
        )
        apart = newer.time - older.time
        return bool(apart <= self.queries.seconds[query, side] and between < self.queries.rows[query, side])

    def invalidate(self) -> None:
        clock = max((row.time for rows in self.kept for row in rows), default=-math.inf) - self.lateness
        self.clock = max(getattr(self, "clock", -math.inf), clock)
        for side, rows in enumerate(self.kept):
            order = sorted(rows, key=lambda row: (row.time, row.number))
            there = sum(row.time <= self.clock for row in order)
            stay = set()
            for place, row in enumerate(order):
                for query in range(self.queries.count):
                    n, t = self.queries.rows[query, side], self.queries.seconds[query, side]
                    by_rows = there - place <= n
                    if by_rows if n < ALL_ROWS else self.clock - row.time <= t and t >= 0:
                        stay.add(row.number)
            rows[:] = [row for row in rows if row.number in stay]
