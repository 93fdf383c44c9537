"""Conditions on rows of a path, each row with a constant of its own: all at once.

In: a condition, the values at its path, rows of it and as many constants. Out: for each row whether it holds.
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
from fishweir.evaluate.witnesses.path_tables import Path, PathTable, not_sought


def holds(
    condition: ConstantCondition | NegatedCondition, values: PathTable, rows: Ints, constants: Column
) -> NDArray[np.bool_]:
    """A condition on rows of a path, each with its constant."""
    on_texts = find_condition(condition.op)
    if on_texts is not None:
        return texts_hold(on_texts, values, rows, constants)
    op: Operator = condition.op  # type: ignore[assignment]
    if condition.type == "number":
        return compare(values.part(condition.part)[rows], op, constants)
    return compare(take(values.texts, rows), op, constants)


def somewhere(
    condition: NegatedCondition, witnesses: Mapping[Path, PathTable], documents: Ints, constants: Column
) -> NDArray[np.bool_]:
    """For each (document, constant): whether any node at the path satisfies the condition, or may if that was not
    looked for."""
    found = np.isin(documents, not_sought(witnesses, [condition.path]))
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
