"""Combinations of documents, partial and complete.

In: rows of sides, portion by portion. Out: the same with fewer rows, or several portions concatenated; combinations
that are results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.many.query_kernels import Floats, Lists


@dataclass(frozen=True)
class Combinations:
    """Results of one table: for each a document per side, the nodes of all sides that it is over, and its queries.

    `order` lists the sides by time. `since` is the version of the catalog when the first of the documents arrived: a
    query registered after that does not see the combination.
    """

    streams: Ints
    numbers: Ints
    nodes: Ints
    order: Ints
    times: Floats
    since: Ints
    member_starts: Ints
    members: Ints

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True)
class Partial:
    """Partial combinations: for each joined side its candidate rows, its documents and their times; and the queries
    that they satisfy, None for all."""

    rows: dict[int, Ints]
    documents: dict[int, Ints]
    times: dict[int, Floats]
    newest: Floats
    remaining: Lists | None

    def __len__(self) -> int:
        return len(self.newest)

    def take(self, rows: Ints | NDArray[np.bool_]) -> Partial:
        return Partial(
            _each(self.rows, rows),
            _each(self.documents, rows),
            _each(self.times, rows),
            self.newest[rows],
            None if self.remaining is None else (self.remaining[0][rows], self.remaining[1][rows], self.remaining[2]),
        )


def _each(parts: dict[int, Any], rows: Any) -> dict[int, Any]:
    return {side: part[rows] for side, part in parts.items()}


def together(parts: Sequence[Partial]) -> Partial:
    """Concatenates several portions with the same sides joined."""
    if len(parts) == 1:
        return parts[0]
    lists = [part.remaining for part in parts if part.remaining is not None]
    remaining: Lists | None = None
    if lists and all(own[2] is lists[0][2] for own in lists):
        remaining = np.concatenate([own[0] for own in lists]), np.concatenate([own[1] for own in lists]), lists[0][2]
    elif lists:
        shifts = np.append(0, np.cumsum([len(members) for _, _, members in lists]))[:-1].tolist()
        lo, hi = (np.concatenate([own[i] + shift for own, shift in zip(lists, shifts, strict=True)]) for i in (0, 1))
        remaining = lo, hi, np.concatenate([members for _, _, members in lists])
    return Partial(
        _all([p.rows for p in parts]),
        _all([p.documents for p in parts]),
        _all([p.times for p in parts]),
        np.concatenate([part.newest for part in parts]),
        remaining,
    )


def _all(parts: Sequence[dict[int, Any]]) -> dict[int, Any]:
    return {side: np.concatenate([part[side] for part in parts]) for side in parts[0]}
