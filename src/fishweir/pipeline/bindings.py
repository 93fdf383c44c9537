"""Results of joins of patterns: from the nodes of a row to bindings and output.

In: a join's shape, its documents and the element of each node that the result is over. Out: what each variable is bound
to, and the output. Joins of two and of more sources make their results here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fishweir.algebra.alternatives import steps_of
from fishweir.algebra.construct import Bound, construct, value_of
from fishweir.algebra.documents import Document
from fishweir.algebra.join_oracle import join_results
from fishweir.algebra.joins import to_join
from fishweir.algebra.nodes import Constant, Shape
from fishweir.pipeline.taken import TakenDocument

JoinedResult = tuple[list[str], dict[str, dict[str, Any]], str | dict[str, Any]]
"""Documents in time order, bindings and output."""

Places = dict[str, int]
"""Element of each variable that a result is over."""


def bound_result(shape: Shape, taken: Sequence[TakenDocument], places: Places) -> tuple[dict[str, dict[str, Any]], str]:
    """The bindings and the output of a result over some nodes."""
    bound: dict[str, Bound] = {}
    bindings = {}
    for name, (side, step) in steps_of(shape).items():
        if name not in places:
            continue
        position = places[name]
        attribute = f"{{{step.namespace}}}{step.name}" if step.namespace else step.name
        bound[name] = (taken[side].nodes[position], attribute if step.is_attribute else None)
        if name[0] != "_":
            shown = f"{position}@{step.name}" if step.is_attribute else position
            bindings[name] = {"document": taken[side].id, "node": shown, "value": value_of(bound[name])}
    return bindings, construct(shape.output, bound)


def places_of(
    shape: Shape, constants: Sequence[Constant], nodes: Sequence[int] | None, taken: Sequence[TakenDocument]
) -> Iterator[Places]:
    """The bindings of a row. Which alternative of a query a row is of is not known: the documents of one are looked at
    as a whole, and once."""
    if nodes is not None and not shape.alternatives:
        normal = to_join(shape)
        sides = enumerate(normal.template.sides)
        over = [(side, node) for side, template in sides for node in template.outputs]
        elements = dict(zip(over, nodes, strict=True))
        yield {name: elements[side, node] for name, side, node in normal.variables if (side, node) in elements}
        return
    documents = [Document(one.id, 0.0, one.nodes[0], one.context) for one in taken]
    for result in join_results(shape, constants, documents):
        yield {name: int(node.id.partition("@")[0]) for name, node in result.binding.items()}
