"""A per-process cache of append-only catalog data: each refresh reads only what is new since the last one.

Rows are never deleted, and change numbers are assigned in commit order, so a process that remembers its position never
reads a row twice. The data is kept in arrays: a million dropped queries take 24 MB and no time.
"""

from __future__ import annotations

import threading
from dataclasses import field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fishweir.catalog.checksums import verified
from fishweir.catalog.database import Database
from fishweir.catalog.schema import ABSENCE, NOT_YET
from fishweir.records import dataclass

Ints = NDArray[np.int64]


def _none() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class Tombstones:
    """The dropped queries, in the order of the changes that dropped them, with the changes that had added them."""

    changes: Ints = field(default_factory=_none)
    numbers: Ints = field(default_factory=_none)
    added: Ints = field(default_factory=_none)

    def upto(self, version: int) -> Ints:
        """The numbers of the queries that a micro-batch of this version must not fire."""
        return self.numbers[: np.searchsorted(self.changes, version, "right")]

    def within(self, after: int, upto: int, since: int) -> int:
        """How many queries that were added by changes in (after, upto] were dropped after the change `since`."""
        added = self.added[np.searchsorted(self.changes, since, "right") :]
        return int(np.count_nonzero((added > after) & (added <= upto)))

    @cached_property
    def all(self) -> frozenset[int]:
        return frozenset(self.numbers.tolist())


class QuerySet:
    """Some queries, by number."""

    def __init__(self, numbers: Ints) -> None:
        """The numbers are ascending. Those of queries registered together are adjacent, and form few ranges."""
        self.numbers = numbers
        starts, lasts = numbers[np.diff(numbers, prepend=-2) > 1], numbers[np.diff(numbers, append=NOT_YET) > 1]
        self._ends = np.stack([starts, lasts + 1], axis=1).ravel()

    def __len__(self) -> int:
        return len(self.numbers)

    def has(self, numbers: Ints) -> NDArray[np.bool_]:
        """Which of the given queries are in the set."""
        return np.asarray(self._ends.searchsorted(numbers, "right") % 2 == 1, np.bool_)


class Increments:
    """The tombstones, and the queries with `NOT FOLLOWED BY`."""

    def __init__(self, database: Database) -> None:
        self.database, self._lock = database, threading.Lock()
        self._tombstones, self._version = Tombstones(), -1
        self._absences, self._last, self._seen = QuerySet(_none()), 0, -1

    def absences(self, version: int) -> QuerySet:
        """The queries of a version, and possibly of later ones, whose documents wait for the end of their window."""
        with self._lock:
            if version > self._seen:
                with self.database.connect() as connection:
                    last = int(connection.scalar("select max(number) from queries") or 0)
                    new = connection.scalars(
                        "select number from queries join shapes on shapes.id = queries.shape "
                        "where number > :after and number <= :last and normal_form like :absence order by number",
                        after=self._last,
                        last=last,
                        absence=f"{ABSENCE} %",
                    )
                if new:
                    self._absences = QuerySet(np.append(self._absences.numbers, np.array(new, np.int64)))
                self._last, self._seen = last, version
            return self._absences

    def tombstones(self, version: int) -> Tombstones:
        """The tombstones of a version of the catalog, and possibly later ones."""
        with self._lock:
            cached = self._tombstones
            if version <= self._version:
                return cached
            last = int(cached.changes[-1]) if len(cached.changes) else 0
            new = self._dropped(last)
            if len(new):
                parts = zip((cached.changes, cached.numbers, cached.added), new.T, strict=True)
                self._tombstones = Tombstones(*(np.append(old, more) for old, more in parts))
            self._version = version
            return self._tombstones

    def _dropped(self, after: int) -> Ints:
        with self.database.connect() as connection:
            select = f"select dropped, number, added, {connection.whole('queries')} from queries"
            rows = connection.execute(f"{select} where dropped > :after order by dropped, number", after=after)
        found = [tuple(row)[:3] for row in verified(rows, "queries", self.database.place)]
        return np.array(found, np.int64).reshape(-1, 3)
