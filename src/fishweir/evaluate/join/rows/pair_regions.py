"""Checks constants above the join: joins pairs of rows, as points, with the queries of a table, as regions, in one
kernel.

In: a join table, then the values of both rows of pairs and their distances in time. Out: (pair, query) for all
constants and windows that hold. There is an axis for each constant that is compared with a number or equal to a text,
and one for the window. `!=` is checked on the remaining pairs. The cost grows with the number of pairs and of the
queries that they satisfy. Shared: the index is the same as for selections (select/boxes), built once per table and
order in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.nodes import Operator
from fishweir.algebra.values import COMPARE
from fishweir.evaluate.arrays import Column, Ints
from fishweir.evaluate.select.boxes import Boxes, Index, choose
from fishweir.evaluate.witnesses.path_tables import hash_texts

Floats = NDArray[np.float64]
Values = NDArray[np.uint64]

FIRST, FOUND_AT_ONCE = 64, 1 << 20
"""Number of pairs in the first portion, and of (pair, query) results listed at once, which bounds the memory."""


@dataclass(frozen=True)
class Check:
    """A condition that is checked on pairs: the position of its value among those of its side, and all its
    constants."""

    side: int
    column: int
    op: Operator
    constants: NDArray[np.generic]

    @property
    def is_number(self) -> bool:
        return self.constants.dtype == np.float64

    @cached_property
    def _texts(self) -> NDArray[np.generic]:
        return np.unique(self.constants)

    def of(self, values: Sequence[Values]) -> NDArray[np.generic]:
        """The value of each pair: a number, or the hash of a text."""
        column = np.ascontiguousarray(values[self.side][:, self.column])
        return column.view(np.float64) if self.is_number else column

    def coded(self, values: NDArray[np.generic]) -> Floats:
        """Numbers unchanged, texts as positions among the constants; NaN for a text that is not a constant."""
        if self.is_number:
            return values  # type: ignore[return-value]
        at = np.minimum(np.searchsorted(self._texts, values), len(self._texts) - 1)
        return np.where(self._texts[at] == values, at.astype(np.float64), np.nan)

    def holds(self, values: NDArray[np.generic], queries: Ints) -> NDArray[np.bool_]:
        kept: NDArray[np.bool_] = COMPARE[self.op](values, self.constants[queries])  # type: ignore[assignment]
        return kept & ~np.isnan(values) if self.is_number else kept


def checks_of(template: JoinTemplate, columns: Sequence[Column]) -> tuple[Check, ...]:
    """The conditions of both sides."""
    found, first = [], 0
    for side, own in enumerate(template.sides):
        for column, condition in enumerate(own.constants):
            values = columns[first + condition.slot]
            constants = values if isinstance(values, np.ndarray) else hash_texts(values)
            op: Operator = condition.op
            found.append(Check(side, column, op, constants))
        first += len(own.types)
    return tuple(found)


@dataclass(frozen=True)
class PairRegions:
    """The queries of a table for pairs of one order in time. `reaches` is the greatest distance that each query
    allows."""

    checks: tuple[Check, ...]
    reaches: Floats

    @cached_property
    def _axes(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.op != "!=")

    @cached_property
    def boxes(self) -> Boxes:
        count = len(self.reaches)
        low, high = (np.full((count, len(self._axes) + 1), end) for end in (-np.inf, np.inf))
        low_open, high_open = np.zeros_like(low, np.bool_), np.zeros_like(low, np.bool_)
        for axis, check in enumerate(self._axes):
            constants = check.coded(check.constants)
            if check.op in ("=", ">", ">="):
                low[:, axis], low_open[:, axis] = constants, check.op == ">"
            if check.op in ("=", "<", "<="):
                high[:, axis], high_open[:, axis] = constants, check.op == "<"
        low[:, -1], high[:, -1] = 0.0, self.reaches
        return Boxes.from_ranges(low, high, low_open, high_open)

    @cached_property
    def _index(self) -> Index:
        return choose(self.boxes).index

    def satisfied(self, values: Sequence[Values], far: Floats, result: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Yields portions of (pair, query) whose constants hold and whose windows reach. `values` are those of each
        side by pair and column. Pairs are ordered by `result`, and those of one result are in one portion."""
        points = np.column_stack([*(check.coded(check.of(values)) for check in self._axes), far])
        start, size = 0, FIRST
        while start < len(points):
            last = min(start + size, len(points)) - 1
            end = int(np.searchsorted(result, result[last], "right"))
            found = self._index.match(points[start:end])
            yield self._apart(values, start + found.tuple_numbers(), found.numbers.astype(np.int64))
            fitting = FOUND_AT_ONCE * (end - start) // max(1, len(found.numbers))
            start, size = end, max(1, min(fitting, 64 * size))

    def _apart(self, values: Sequence[Values], pairs: Ints, queries: Ints) -> tuple[Ints, Ints]:
        """The (pair, query) results whose `!=` conditions hold too. A value that is not a number satisfies no
        comparison."""
        for check in self.checks:
            if check.op == "!=":
                kept = check.holds(check.of(values)[pairs], queries)
                pairs, queries = pairs[kept], queries[kept]
        return pairs, queries
