"""The registry of indexes for conditions on texts: one index factory per condition name.

In: the constants of all queries with one signature. Out: their sort order, and an index over the sorted constants that
answers with slices (constants.Slices). The meaning of a condition is registered in `algebra/operators.py`. A condition
without a factory is evaluated on every distinct pair of a value and a constant (scan.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.operators import Condition
from fishweir.evaluate.arrays import Column, Ints
from fishweir.evaluate.index.constants import Slices
from fishweir.evaluate.statistics import PathStatistics
from fishweir.evaluate.witnesses.path_tables import PathTable

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


Sift = Callable[[PathTable, Ints, Ints, Ints, NDArray[np.uint64]], tuple[Ints, Ints]]


class Index(Protocol):
    """Constants that are looked up together."""

    def look_up(self, values: PathTable) -> Slices:
        """For rows of the values, the positions of the constants that they satisfy, or may satisfy."""


@dataclass(frozen=True, slots=True)
class Sieve:
    """A cheap test that most pairs of a value and a constant fail: the value must have the constant's key."""

    keys: Callable[[Column], NDArray[np.uint64]]
    """The keys of the constants, stored together with the constants."""
    sift: Sift
    """Takes rows of the values, each with a slice of keys. Returns the passing pairs of row index and key position."""


@dataclass(frozen=True, slots=True)
class IndexFactory:
    """How the constants of a condition are indexed."""

    order: Callable[[Column], Ints]
    """The sort order of the constants. Equal constants are adjacent."""
    build: Callable[[Column], Index]
    """The index over a column in that order. Building must be cheap, or be deferred to the first lookup."""
    unsure: Callable[[Column], Bools] | None = None
    """The constants whose hits must be checked; None if the index is exact."""
    holds: Callable[[PathTable, Ints, Column], Bools] | None = None
    """Evaluates the condition on rows of the values and their constants; if None, each pair is evaluated
    individually."""
    selectivities: Callable[[Column, PathStatistics], Floats] | None = None
    """The share of values that satisfy each constant; if None, the condition's own estimate is used."""
    sieve: Sieve | None = None


_FACTORIES: dict[str, IndexFactory] = {}


def add_index(name: str, factory: IndexFactory) -> None:
    """Registers the index factory of the condition with this name."""
    _FACTORIES[name] = factory


def remove_index(name: str) -> None:
    _FACTORIES.pop(name, None)


def find_index(condition: Condition) -> IndexFactory | None:
    return _FACTORIES.get(condition.name)
