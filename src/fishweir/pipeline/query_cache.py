"""A cache of query metadata in columns, for readers of results: the query registered under a number never changes.

In: query numbers. Out: for each query, its name, when it was added, and its kind: queries of one kind have the same
output for the same documents. A shape is examined once, not for each query and batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.nodes import DERIVED
from fishweir.evaluate.arrays import Ints
from fishweir.pipeline.outputs import is_bound_when_read, several
from fishweir.pipeline.result import QueryLike
from fishweir.records import dataclass

FEW = 1_000
"""The maximum number of recently added queries that are kept separately from the others."""
REMEMBERED = 100_000
"""The number of queries that a reader caches, so that they are not looked up again for each batch."""


@dataclass(frozen=True)
class QueryColumns:
    """Some queries in ascending order of their numbers."""

    numbers: Ints
    queries: NDArray[Any]
    names: pa.StringArray
    added: Ints
    kinds: Ints
    several: NDArray[np.bool_]
    """Whether several alternatives may yield the same result."""
    derived: NDArray[np.bool_]
    """Whether a query is an intermediate step of a chained join, whose results users do not read."""

    def __len__(self) -> int:
        return len(self.numbers)

    def has(self, numbers: Ints) -> NDArray[np.bool_]:
        """Which of the given numbers are present."""
        if not len(self):
            return np.zeros(len(numbers), np.bool_)
        at = np.minimum(np.searchsorted(self.numbers, numbers), len(self) - 1)
        return np.asarray(self.numbers[at] == numbers, np.bool_)

    def take(self, places: Ints) -> QueryColumns:
        return QueryColumns(*(_take(getattr(self, field.name), places) for field in fields(self)))

    @cached_property
    def listed_names(self) -> NDArray[Any]:
        return _objects(self.names.to_pylist())


class QueryCache:
    """Columns of the queries looked up so far; thread-safe."""

    def __init__(self, look_up: Callable[[list[int]], Mapping[int, QueryLike]]) -> None:
        self._look_up, self._kinds = look_up, _Kinds()
        self._known = _columns_of({}, self._kinds), _columns_of({}, self._kinds)
        """The cached queries, and those added recently. New queries are added to the smaller set."""

    def of(self, numbers: Ints) -> QueryColumns:
        """The queries with the given distinct, ascending numbers."""
        old, new = self._known
        missing = numbers[~old.has(numbers)]
        missing = missing[~new.has(missing)]
        if len(missing):
            old, new = self._with(old, new, self._look_up(missing.tolist()), numbers)
        there = old.has(numbers)
        found = old.take(np.searchsorted(old.numbers, numbers[there]))
        if there.all():
            return found
        return _together(found, new.take(np.searchsorted(new.numbers, numbers[~there])))

    def _with(
        self, old: QueryColumns, new: QueryColumns, found: Mapping[int, QueryLike], numbers: Ints
    ) -> tuple[QueryColumns, QueryColumns]:
        kinds = self._kinds
        if len(old) + len(new) + len(found) > REMEMBERED:
            kinds, kept = _Kinds(), dict(found)
            for columns in (old, new):
                some = columns.take(np.flatnonzero(np.isin(columns.numbers, numbers)))
                kept |= dict(zip(some.numbers.tolist(), some.queries, strict=True))
            old, new = _columns_of({}, kinds), _columns_of(dict(sorted(kept.items())), kinds)
        else:
            new = _together(new, _columns_of(found, kinds))
        if len(new) > max(FEW, len(old) // 4):
            old, new = _together(old, new), _columns_of({}, kinds)
        self._known, self._kinds = (old, new), kinds
        return old, new


def _together(some: QueryColumns, others: QueryColumns) -> QueryColumns:
    pairs = ((getattr(some, field.name), getattr(others, field.name)) for field in fields(some))
    both = QueryColumns(*(_concatenated(*pair) for pair in pairs))
    return both.take(np.argsort(both.numbers))


def _take(column: Any, places: Ints) -> Any:
    return column[places] if isinstance(column, np.ndarray) else column.take(pa.array(places))


def _concatenated(some: Any, others: Any) -> Any:
    return np.concatenate([some, others]) if isinstance(some, np.ndarray) else pa.concat_arrays([some, others])


class _Kinds:
    """Kind numbers by shape identity. The shapes are kept, so that their identities stay valid."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], int] = {}
        self._shapes: dict[int, tuple[Any, bool, bool]] = {}
        self._kept: list[Any] = []

    def of(self, query: QueryLike) -> tuple[int, bool]:
        """The kind of a query, and whether several alternatives may yield the same result."""
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
        pa.array([query.name for query in listed], pa.string()),
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
