"""Chooses the index for a condition.

In: a condition's operator, type and part, and a column of constants. Out: the order in which the constants must be
sorted, and the index over the sorted constants. All indexes answer with slices (constants.Slices). The indexes of
comparisons are here. The indexes of conditions on texts are in the registry, which the built-in modules fill when they
are imported.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.operators import Condition, find_condition
from fishweir.evaluate.arrays import Column, Ints, take
from fishweir.evaluate.index import links, patterns, similarity, words
from fishweir.evaluate.index.constants import Equal, Everything, Sorted
from fishweir.evaluate.index.registry import Index, IndexFactory, Sieve, find_index
from fishweir.evaluate.index.scan import Scan, pairs_hold
from fishweir.evaluate.witnesses.path_tables import PathTable

__all__ = ["Index", "find_index", "index_for", "is_exact", "order_for", "sieve_for", "texts_hold", "unsure"]

BUILT_IN = (links, patterns, similarity, words)
"""The modules that register the indexes of built-in conditions."""


def order_for(op: str, type: str, column: Column) -> Ints:
    """The sort order of the constants that the index of such a condition requires."""
    condition = find_condition(op)
    if condition is not None:
        factory = find_index(condition)
        return Scan.order(column) if factory is None else factory.order(column)
    if op == "exists":
        return Everything.order(len(column))
    if op == "=" and type == "string":
        return Equal.order(column)
    return Sorted.order(column)


def index_for(op: str, type: str, part: str, column: Column) -> Index:
    """The index of a condition with a constant; `column` is in the order of `order_for`."""
    condition = find_condition(op)
    if condition is not None:
        factory = find_index(condition)
        return Scan(condition.meaning, column) if factory is None else factory.build(column)
    if op == "exists":
        return Everything(len(column))
    if op == "=" and type == "string":
        return Equal.build(column)
    return Sorted(op, column, part)


def is_exact(index: Index) -> bool:
    """Whether hits need no further check. `contains` with several words, for example, looks up only one of them."""
    return bool(getattr(index, "is_exact", True))


def unsure(op: str, column: Column) -> NDArray[np.bool_] | None:
    """The constants whose hits must be checked; None if there are none."""
    factory = _factory(op)
    if factory is None or factory.unsure is None:
        return None
    found = factory.unsure(column)
    return found if found.any() else None


def sieve_for(op: str) -> Sieve | None:
    """The test that most pairs fail, if the condition has one."""
    factory = _factory(op)
    return None if factory is None else factory.sieve


def texts_hold(condition: Condition, values: PathTable, rows: Ints, constants: Column) -> NDArray[np.bool_]:
    """Evaluates a condition on texts for rows of a path, each with its own constant."""
    factory = find_index(condition)
    if factory is not None and factory.holds is not None:
        return factory.holds(values, rows, constants)
    return pairs_hold(condition.meaning, take(values.texts, rows), constants)


def _factory(op: str) -> IndexFactory | None:
    condition = find_condition(op)
    return None if condition is None else find_index(condition)
