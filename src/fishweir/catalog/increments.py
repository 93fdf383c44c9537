"""A per-process cache of append-only catalog data: each refresh reads only what is new since the last one.

Rows are never deleted, and change numbers are assigned in commit order, so a process that remembers its position never
reads a row twice. The data is kept in arrays: a million dropped queries take 24 MB and no time.
"""

from __future__ import annotations

import threading
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from fishweir.catalog.checksums import verified, whole
from fishweir.catalog.schema import queries
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


class Increments:
    """The tombstones."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine, self._lock = engine, threading.Lock()
        self._tombstones, self._version = Tombstones(), -1

    def tombstones(self, version: int) -> Tombstones:
        """At least those of a version of the catalog."""
        with self._lock:
            known = self._tombstones
            if version <= self._version:
                return known
            last = int(known.changes[-1]) if len(known.changes) else 0
            wanted = sa.select(queries.c.dropped, queries.c.number, queries.c.added, whole(queries))
            new = self._rows(wanted.where(queries.c.dropped > last).order_by(queries.c.dropped, queries.c.number))
            if len(new):
                parts = zip((known.changes, known.numbers, known.added), new.T, strict=True)
                self._tombstones = Tombstones(*(np.append(old, more) for old, more in parts))
            self._version = version
            return self._tombstones

    def _rows(self, chosen: sa.Select[Any]) -> Ints:
        with self.engine.connect() as connection:
            found = [tuple(row)[:3] for row in verified(connection.execute(chosen).all(), queries, self.engine)]
        return np.array(found, np.int64).reshape(-1, 3)
