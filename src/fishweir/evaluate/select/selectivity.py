"""Selectivities of atoms: the share of a source's values that satisfies each constant of a group.

In: the constants of one signature and the statistics of the path's values. Out: one number per constant. The
selectivity of equality is 1 divided by the number of distinct values. That of order comparisons is taken from the
sample. Conditions on texts are estimated by their index. Without statistics, the operator decides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.operators import Condition, find_condition
from fishweir.algebra.predicates import AtomSignature
from fishweir.algebra.texts import date_part
from fishweir.algebra.values import to_number
from fishweir.evaluate.arrays import Column
from fishweir.evaluate.index.indexes import find_index
from fishweir.evaluate.statistics import EVERY_OPERATOR, PathStatistics

Floats = NDArray[np.float64]
LEAST = 1e-6


def selectivities(signature: AtomSignature, column: Column, known: PathStatistics) -> Floats:
    if signature.op == "exists":
        return np.full(len(column), 1.0)
    condition = find_condition(signature.op)
    if condition is not None:
        return of_condition(condition, column, known)
    if not known.sample:
        return np.full(len(column), EVERY_OPERATOR[signature.op])
    if signature.op == "=":
        return np.full(len(column), 1 / known.distinct if signature.part == "value" else 0.05)
    if isinstance(column, np.ndarray):
        return _of_numbers(signature, column, known)
    ordered = np.sort(np.array(known.sample, dtype=object))
    return _share(signature.op, ordered, np.array(column.to_pylist(), dtype=object))


def of_condition(condition: Condition, column: Column, known: PathStatistics) -> Floats:
    """The estimate of the condition's index, which may use the statistics; otherwise the condition's own estimate."""
    factory = find_index(condition)
    if factory is None or factory.selectivities is None:
        return np.full(len(column), condition.selectivity)
    return np.clip(factory.selectivities(column, known), LEAST, 1.0)


def _of_numbers(signature: AtomSignature, column: Floats, known: PathStatistics) -> Floats:
    part = signature.part
    values = [to_number(text) if part == "value" else date_part(text, part) for text in known.sample]
    ordered = np.sort(np.array([value for value in values if value is not None], dtype=np.float64))
    return _share(signature.op, ordered, column) * (len(ordered) / len(values))


def _share(op: str, ordered: NDArray[np.generic], constants: NDArray[np.generic]) -> Floats:
    """The share of sorted values for which `value op constant` holds."""
    below, upto = np.searchsorted(ordered, constants, "left"), np.searchsorted(ordered, constants, "right")
    size = len(ordered)
    hits = {">": size - upto, ">=": size - below, "<": below, "<=": upto, "=": upto - below}
    return np.asarray((hits.get(op, size - upto + below) + 0.5) / (size + 1))
