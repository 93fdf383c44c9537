"""Evaluates conditions on rows of a path, each row with its own constant, on whole arrays.

In: a condition, the values at its path, rows of that path, and one constant per row. Out: for each row, whether the
condition holds.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.nodes import Operator
from fishweir.algebra.normal import ConstantCondition, NegatedCondition
from fishweir.algebra.operators import find_condition
from fishweir.evaluate.arrays import Column, Ints, expand, take
from fishweir.evaluate.index.indexes import texts_hold
from fishweir.evaluate.select.bindings import compare
from fishweir.evaluate.witnesses.path_tables import Path, PathTable, suspended_documents


def holds(
    condition: ConstantCondition | NegatedCondition, values: PathTable, rows: Ints, constants: Column
) -> NDArray[np.bool_]:
    """Whether a condition holds on rows of a path, each with its own constant."""
    on_texts = find_condition(condition.op)
    if on_texts is not None:
        return texts_hold(on_texts, values, rows, constants)
    op: Operator = condition.op  # type: ignore[assignment]
    if condition.type == "number":
        return compare(values.part(condition.part)[rows], op, constants)
    return compare(take(values.texts, rows), op, constants)


def holds_anywhere(
    condition: NegatedCondition, witnesses: Mapping[Path, PathTable], documents: Ints, constants: Column
) -> NDArray[np.bool_]:
    """For each (document, constant), whether some node at the path satisfies the condition. True if the path was
    suspended, because the result is unknown."""
    found = np.isin(documents, suspended_documents(witnesses, [condition.path]))
    values = witnesses.get(condition.path)
    if values is None:
        return found
    order = np.argsort(values.documents, kind="stable")
    starts, ends = (np.searchsorted(values.documents[order], documents, side) for side in ("left", "right"))
    candidate, at = expand(starts, ends)
    if condition.op == "exists":
        found[candidate] = True
        return found
    found[candidate[holds(condition, values, order[at], take(constants, candidate))]] = True
    return found
