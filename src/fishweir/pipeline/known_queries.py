"""A cache of query metadata in columns, for readers of results: what is registered under a number never changes.

In: numbers of queries. Out: of each its name, when it was added, and a kind: queries of one kind show the same of the
same documents. A shape is looked at once, not for each query and batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.nodes import DERIVED
from fishweir.evaluate.arrays import Ints
from fishweir.pipeline.outputs import is_bound_when_read, several
from fishweir.pipeline.result import QueryLike

REMEMBERED = 100_000
"""Queries that a reader keeps, so that they are not looked up for each batch again."""


@dataclass(frozen=True)
class QueryColumns:
    """Some queries in the order of their numbers."""

    numbers: Ints
    queries: NDArray[Any]
    names: NDArray[Any]
    added: Ints
    kinds: Ints
    several: NDArray[np.bool_]
    """Whether several alternatives may give the same result."""
    derived: NDArray[np.bool_]
    """Whether a query is part of a chained join, which nobody asks for by itself."""

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, places: Ints) -> QueryColumns:
        return QueryColumns(*(getattr(self, field.name)[places] for field in fields(self)))


class KnownQueries:
    """Columns of the queries met so far; several threads may ask."""

    def __init__(self, look_up: Callable[[list[int]], Mapping[int, QueryLike]]) -> None:
        self._look_up = look_up
        self._columns, self._kinds = _columns_of({}, kinds := _Kinds()), kinds

    def of(self, numbers: Ints) -> QueryColumns:
        """Those with some distinct numbers, ascending."""
        columns = self._columns
        places = np.searchsorted(columns.numbers, numbers)
        missing = numbers
        if len(columns):
            missing = numbers[columns.numbers[np.minimum(places, len(columns) - 1)] != numbers]
        if len(missing):
            columns = self._with(columns, self._look_up(missing.tolist()), numbers)
            places = np.searchsorted(columns.numbers, numbers)
        return columns.take(places)

    def _with(self, columns: QueryColumns, found: Mapping[int, QueryLike], numbers: Ints) -> QueryColumns:
        kinds = self._kinds
        if len(columns) + len(found) > REMEMBERED:
            columns, kinds = columns.take(np.flatnonzero(np.isin(columns.numbers, numbers))), _Kinds()
            known = dict(zip(columns.numbers.tolist(), columns.queries, strict=True))
            merged = _columns_of({**known, **found}, kinds)
        else:
            new = _columns_of(found, kinds)
            merged = QueryColumns(
                *(np.concatenate([getattr(columns, f.name), getattr(new, f.name)]) for f in fields(columns))
            )
        self._columns, self._kinds = merged.take(np.argsort(merged.numbers)), kinds
        return self._columns


class _Kinds:
    """Numbers of kinds by the identity of shapes, which are kept so that they stay what they are."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], int] = {}
        self._shapes: dict[int, tuple[Any, bool, bool]] = {}
        self._kept: list[Any] = []

    def of(self, query: QueryLike) -> tuple[int, bool]:
        """Its kind, and whether several alternatives may give the same result."""
        shape = query.shape
        if id(shape) not in self._shapes:
            self._shapes[id(shape)] = shape, is_bound_when_read(shape), several(shape)
        _, bound, often = self._shapes[id(shape)]
        if bound:
            self._kept.append(query.constants)
        key = (id(shape), query.preferred, id(query.constants)) if bound else (id(shape), query.preferred)
        return self._known.setdefault(key, len(self._known)), often


def _columns_of(found: Mapping[int, QueryLike], kinds: _Kinds) -> QueryColumns:
    listed = [found[number] for number in found]
    of = [kinds.of(query) for query in listed]
    return QueryColumns(
        np.fromiter(found, np.int64, len(found)),
        _objects(listed),
        _objects(query.name for query in listed),
        np.array([query.added for query in listed], np.int64),
        np.array([kind for kind, _ in of], np.int64),
        np.array([often for _, often in of], np.bool_),
        np.array([query.name.startswith(DERIVED) for query in listed], np.bool_),
    )


def _objects(items: Iterable[Any]) -> NDArray[Any]:
    listed = list(items)
    found = np.empty(len(listed), object)
    found[:] = listed
    return found
