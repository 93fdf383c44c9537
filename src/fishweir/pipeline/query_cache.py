"""A cache of query metadata in columns, for readers of results: the query registered under a number never changes.

In: query numbers. Out: for each query, its name, when it was added, and its kind: queries of one kind have the same
output for the same documents. A shape is examined once, not for each query and batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fishweir.algebra.nodes import DERIVED, Constant
from fishweir.algebra.path_queries import Paths, own_shape
from fishweir.evaluate.arrays import Ints, distinct
from fishweir.pipeline.column_cache import ColumnCache, Columns
from fishweir.pipeline.outputs import is_bound_when_read, several
from fishweir.records import dataclass

REMEMBERED = 500_000
"""The number of queries that a reader caches, so that they are not looked up again for each batch."""


class QuerySource(Protocol):
    """The catalog, as far as readers need it."""

    def query_columns(self, numbers: list[int]) -> tuple[list[Any], ...]:
        """Numbers, names, ids of shapes, changes that added the queries, and whether they have a preference."""

    def shape(self, id: int) -> Any: ...

    def constants(self, numbers: list[int]) -> Mapping[int, tuple[Constant, ...]]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What queries with the same output for the same documents have in common."""

    shape: Any
    constants: tuple[Constant, ...]
    """Those of the query if its documents are bound when a row is read; otherwise none."""
    preferred: bool
    several: bool


@dataclass(frozen=True)
class QueryColumns(Columns):
    """Some queries in ascending order of their numbers."""

    numbers: Ints
    names: pa.StringArray
    added: Ints
    kinds: Ints
    shown: NDArray[Any]
    """The `Kind` of each query."""
    several: NDArray[np.bool_]
    """Whether several alternatives may yield the same result."""
    derived: NDArray[np.bool_]
    """Whether a query is an intermediate step of a chained join, whose results users do not read."""

    @cached_property
    def listed_names(self) -> NDArray[Any]:
        return _objects(self.names.to_pylist())


class QueryCache(ColumnCache[QueryColumns]):
    """Columns of the queries looked up so far."""

    def __init__(self, source: QuerySource) -> None:
        super().__init__(lambda: _LookUp(source), REMEMBERED)


class _LookUp:
    """Looks up queries, and numbers their kinds."""

    def __init__(self, source: QuerySource) -> None:
        self.source = source
        self._known: dict[tuple[Any, ...], int] = {}
        self._kinds: list[Kind] = []

    def __call__(self, numbers: Ints) -> QueryColumns:
        listed, names, shapes, added, preferred = self.source.query_columns(numbers.tolist())
        found, texts = np.array(listed, np.int64), pa.array(names, pa.string())
        kinds = self._kinds_of(found, np.array(shapes, np.int64), np.array(preferred, np.bool_))
        once, of = distinct(kinds)
        shown = [self._kinds[kind] for kind in once.tolist()]
        return QueryColumns(
            found,
            texts,
            np.array(added, np.int64),
            kinds,
            _objects(shown)[of],
            np.array([kind.several for kind in shown], np.bool_)[of],
            pc.starts_with(texts, DERIVED).to_numpy(zero_copy_only=False),
        ).ordered()

    def _kinds_of(self, numbers: Ints, shapes: Ints, preferred: NDArray[np.bool_]) -> Ints:
        once, of = distinct(shapes * 2 + preferred)
        given = [(self.source.shape(code >> 1), code >> 1, bool(code & 1)) for code in once.tolist()]
        own = [isinstance(shape, Paths) or is_bound_when_read(shape) for shape, _, _ in given]
        shared = [-1 if alone else self._kind(*one) for one, alone in zip(given, own, strict=True)]
        kinds = np.array(shared, np.int64)[of]
        if any(own):
            places = np.flatnonzero(kinds < 0)
            constants = self.source.constants(numbers[places].tolist())
            for place, number in zip(places.tolist(), numbers[places].tolist(), strict=True):
                kinds[place] = self._own_kind(given[of[place]], constants[number])
        return kinds

    def _own_kind(self, given: tuple[Any, int, bool], constants: tuple[Constant, ...]) -> int:
        """The kind of a query whose output depends on its constants."""
        shape, id, preferred = given
        if not isinstance(shape, Paths):
            return self._kind(shape, id, preferred, constants)
        return self._kind(own_shape(shape, constants)[0], (id, constants[0]), preferred)

    def _kind(self, shape: Any, id: Any, preferred: bool, constants: tuple[Constant, ...] = ()) -> int:
        key = id, preferred, repr(constants)
        if key not in self._known:
            self._known[key] = len(self._kinds)
            self._kinds.append(Kind(shape, constants, preferred, several(shape)))
        return self._known[key]


def _objects(items: list[Any]) -> NDArray[Any]:
    found = np.empty(len(items), object)
    found[:] = items
    return found
