"""Base of join tables: shared by joins that return combinations of documents and joins that collect.

A table has the queries of one template. Its columns hold what differs between the queries. Tables of several segments
with the same merge key are merged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.nodes import Source
from fishweir.evaluate.arrays import Column, Ints, take
from fishweir.evaluate.select.constant_tables import concatenated
from fishweir.evaluate.witnesses.path_tables import Path


class QueryTable(ABC):
    """The queries of one template. `numbers` and `columns` have one row per query, ordered by number."""

    kind: ClassVar[str] = "joins"

    numbers: Ints
    columns: tuple[Column, ...]

    @property
    @abstractmethod
    def sources(self) -> tuple[Source, ...]: ...

    @property
    @abstractmethod
    def merge_key(self) -> Hashable:
        """The common properties of the queries of one table."""

    @property
    def is_of_two(self) -> bool:
        """Whether its results are pairs of documents."""
        return False

    @property
    def is_plain(self) -> bool:
        """Whether the set of equal values of two documents decides: no constants, no other comparisons."""
        return False

    @property
    def matched_sides(self) -> Ints:
        """Its sides that another kind matches."""
        return np.empty(0, np.int64)

    @abstractmethod
    def waiting(self) -> Iterator[tuple[Source, Source, bool, NDArray[np.float64]]]:
        """How long documents of a source wait for those of another, by query: in rows, or in seconds."""

    @abstractmethod
    def header(self) -> Any: ...

    def arrays(self) -> dict[str, Any]:
        return {"numbers": self.numbers} | {f"column{i}": column for i, column in enumerate(self.columns)}

    @abstractmethod
    def paths(self, sources: Sequence[Source]) -> dict[Path, bool]:
        """The paths to find in some sources' documents, each with a flag: whether its values are read."""

    @property
    def size(self) -> int:
        return len(self.numbers)

    @property
    def members(self) -> Ints:
        return self.numbers

    def positions_of(self, number: int) -> Ints:
        return np.flatnonzero(self.numbers == number)


AnyTable = TypeVar("AnyTable", bound=QueryTable)


def merge_tables(tables: Sequence[AnyTable], dropped: Ints) -> AnyTable | None:
    """Merges several tables with the same merge key, without the dropped queries; None if no query is left."""
    numbers = np.concatenate([table.numbers for table in tables])
    keep = np.flatnonzero(~np.isin(numbers, dropped))
    keep = keep[np.argsort(numbers[keep], kind="stable")]
    if not len(keep):
        return None
    columns = zip(*(table.columns for table in tables), strict=True)
    merged = tuple(take(concatenated(parts), keep) for parts in columns)
    return replace(tables[0], numbers=numbers[keep], columns=merged)  # type: ignore[type-var]


def read_columns(arrays: Mapping[str, Any]) -> tuple[Ints, tuple[Column, ...]]:
    """The numbers and columns of a table."""
    return arrays["numbers"], tuple(arrays[f"column{i}"] for i in range(len(arrays) - 1))
