"""Results of joins of patterns: from the nodes of a row to bindings and output.

In: a join's shape, its documents and the element of each node that the result is over. Out: what each variable is bound
to, and the output. Joins of two and of more sources make their results here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fishweir.algebra.construct import Bound, construct, value_of
from fishweir.algebra.joins import to_join
from fishweir.algebra.nodes import Shape
from fishweir.pipeline.taken import TakenDocument

JoinedResult = tuple[list[str], dict[str, dict[str, Any]], str | dict[str, Any]]
"""Documents in time order, bindings and output."""

Places = dict[tuple[int, int], int]
"""Element of each (side, node of its template) that a result is over."""


def bound_result(shape: Shape, taken: Sequence[TakenDocument], places: Places) -> tuple[dict[str, dict[str, Any]], str]:
    """The bindings and the output of a result over some nodes."""
    normal = to_join(shape)
    bound: dict[str, Bound] = {}
    bindings = {}
    for name, side, node in normal.variables:
        if (side, node) not in places:
            continue
        step, position = normal.template.sides[side].nodes[node].step, places[side, node]
        attribute = f"{{{step.namespace}}}{step.name}" if step.namespace else step.name
        bound[name] = (taken[side].nodes[position], attribute if step.is_attribute else None)
        if name[0] != "_":
            shown = f"{position}@{step.name}" if step.is_attribute else position
            bindings[name] = {"document": taken[side].id, "node": shown, "value": value_of(bound[name])}
    return bindings, construct(shape.output, bound)


def over(shape: Shape) -> list[tuple[int, int]]:
    """The (side, node) that a result is over, in the order of its row."""
    sides = enumerate(to_join(shape).template.sides)
    return [(side, node) for side, template in sides for node in template.outputs]
