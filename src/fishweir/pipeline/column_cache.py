"""A cache of rows by number, in columns: what the catalog says about the queries that have fired so far.

In: query numbers. Out: the rows of these queries, one per query (query_cache.py) or any number (the subscriptions of
delivery/routing.py). A query that fires for the first time costs no object of its own: millions of objects would take
longer to create, and to be scanned by the garbage collector, than the lookup itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand
from fishweir.records import dataclass

FEW = 1_000
"""The maximum number of recently added numbers that are kept separately from the others."""


class Columns:
    """Rows in ascending order of their numbers. Each field of a subclass is a column: a NumPy or Arrow array."""

    numbers: Ints

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, places: Ints) -> Self:
        return type(self)(*(_taken(column, places) for column in self._columns()))

    def ordered(self) -> Self:
        """The rows in ascending order, given in any order."""
        is_ascending = bool((self.numbers[1:] >= self.numbers[:-1]).all())
        return self if is_ascending else self.take(np.argsort(self.numbers, kind="stable"))

    def together(self, others: Self) -> Self:
        """The rows of both."""
        if not len(self) or not len(others):
            return self if len(self) else others
        pairs = zip(self._columns(), others._columns(), strict=True)
        return type(self)(*(_concatenated(*pair) for pair in pairs)).ordered()

    def _columns(self) -> list[Any]:
        return [getattr(self, name) for name in self.__dataclass_fields__]  # type: ignore[attr-defined]


def _taken(column: Any, places: Ints) -> Any:
    return column[places] if isinstance(column, np.ndarray) else column.take(pa.array(places))


def _concatenated(some: Any, others: Any) -> Any:
    return np.concatenate([some, others]) if isinstance(some, np.ndarray) else pa.concat_arrays([some, others])


C = TypeVar("C", bound=Columns)


@dataclass(frozen=True)
class _Known(Generic[C]):
    """The numbers that have been looked up, ascending, and their rows."""

    numbers: Ints
    rows: C

    @cached_property
    def size(self) -> int:
        return max(len(self.numbers), len(self.rows))

    @cached_property
    def has_one_row_each(self) -> bool:
        return np.array_equal(self.numbers, self.rows.numbers)

    def has(self, numbers: Ints) -> NDArray[np.bool_]:
        """Which of the given numbers have been looked up."""
        if not len(self.numbers):
            return np.zeros(len(numbers), np.bool_)
        at = self.numbers.searchsorted(numbers)
        return np.asarray(self.numbers.take(at, mode="clip") == numbers, np.bool_)

    def of(self, numbers: Ints) -> C:
        """The rows of some ascending numbers that have been looked up."""
        begins = self.rows.numbers.searchsorted(numbers)
        if self.has_one_row_each:
            return self.rows.take(begins)
        return self.rows.take(expand(begins, self.rows.numbers.searchsorted(numbers, "right"))[1])

    def together(self, others: _Known[C]) -> _Known[C]:
        numbers = np.sort(np.concatenate([self.numbers, others.numbers]), kind="stable")
        return _Known(numbers, self.rows.together(others.rows))


class ColumnCache(Generic[C]):
    """The rows of the numbers looked up so far; thread-safe."""

    def __init__(self, start: Callable[[], Callable[[Ints], C]], most: int) -> None:
        """`start` returns a function that looks up distinct, ascending numbers. If more than `most` numbers or rows
        would be cached, all are forgotten, and `start` is called again."""
        self._start, self._most, self._lock = start, most, threading.Lock()
        self._look_up = start()
        self._known = self._nothing()
        """What is cached, and what was added recently. New rows are added to the smaller table."""

    def of(self, numbers: Ints) -> C:
        """The rows of the given distinct, ascending numbers."""
        old, new = self._known
        there = old.has(numbers)
        if not there.all() and not new.has(numbers[~there]).all():
            with self._lock:
                old, new = self._known = self._with(numbers)
            there = old.has(numbers)
        if there.all():
            return old.of(numbers)
        return old.of(numbers[there]).together(new.of(numbers[~there]))

    def _nothing(self) -> tuple[_Known[C], _Known[C]]:
        none = np.empty(0, np.int64)
        empty = _Known(none, self._look_up(none))
        return empty, empty

    def _with(self, numbers: Ints) -> tuple[_Known[C], _Known[C]]:
        """Both tables after a lookup of those numbers that they lack."""
        old, new = self._known
        missing = numbers[~(old.has(numbers) | new.has(numbers))]
        if old.size + new.size + len(missing) > self._most:
            self._look_up = self._start()
            (old, new), missing = self._nothing(), numbers
        new = new.together(_Known(missing, self._look_up(missing)))
        if new.size > max(FEW, old.size // 8):
            return old.together(new), self._nothing()[1]
        return old, new
