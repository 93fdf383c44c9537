"""How conditions on texts are looked up: an index factory for each, by the condition's name.

In: the constants of all queries of one signature. Out: an order for them, and in that order an index that answers with
slices (constants.Slices). What a condition means is registered in `algebra/operators.py`; one that has no factory is
tried on every distinct pair of a value and a constant (scan.py).
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
    """A cheap test that most pairs of a value and a constant fail: the value must have the key of the constant."""

    keys: Callable[[Column], NDArray[np.uint64]]
    """The key of each constant; they are kept with the constants."""
    sift: Sift
    """Rows of the values, each with a slice of keys: of all that pass, the place of the row and the position."""


@dataclass(frozen=True, slots=True)
class IndexFactory:
    """How the constants of one condition are indexed."""

    order: Callable[[Column], Ints]
    """Their sort order; equal constants are adjacent."""
    build: Callable[[Column], Index]
    """The index of a column that is in that order. It must be cheap, or do its work at the first look-up."""
    unsure: Callable[[Column], Bools] | None = None
    """The constants for which a hit must be checked; None where the index is exact."""
    holds: Callable[[PathTable, Ints, Column], Bools] | None = None
    """The condition on rows of the values, each with its constant; where there is none, its meaning on each pair."""
    selectivities: Callable[[Column, PathStatistics], Floats] | None = None
    """The share of values that satisfy each constant; the condition's own estimate where there is none."""
    sieve: Sieve | None = None


_FACTORIES: dict[str, IndexFactory] = {}


def add_index(name: str, factory: IndexFactory) -> None:
    """Registers how the condition of this name is looked up."""
    _FACTORIES[name] = factory


def remove_index(name: str) -> None:
    _FACTORIES.pop(name, None)


def find_index(condition: Condition) -> IndexFactory | None:
    return _FACTORIES.get(condition.name)
