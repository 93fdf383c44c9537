"""Conjunctions over the columns of one source as templates, for SQL selections and for the sides of SQL joins.

In: a source and the conditions on its columns. Out: a template whose root is the document element, with a node for each
column that a positive atom reads. Negated atoms are kept separately, by path.
"""

from __future__ import annotations

from collections.abc import Sequence

from fishweir.algebra.formula import Clause, RelativePath
from fishweir.algebra.nodes import Slot, Source
from fishweir.algebra.normal import (
    ANY_ROOT,
    ConstantCondition,
    NegatedCondition,
    NodeCondition,
    Template,
    TemplateNode,
)
from fishweir.algebra.predicates import SlotPlace, order_of, place_of, type_of
from fishweir.errors import QueryError


class _Pattern:
    """The nodes of one conjunction. A column has one value, so its conditions share a node."""

    def __init__(self) -> None:
        self.nodes = [TemplateNode(-1, ANY_ROOT)]
        self.node_of: dict[RelativePath, int] = {(): 0}

    def node(self, path: RelativePath) -> int:
        if path not in self.node_of:
            parent = self.node(path[:-1])
            self.nodes.append(TemplateNode(parent, path[-1]))
            self.node_of[path] = len(self.nodes) - 1
        return self.node_of[path]


def column_template(
    source: Source, clause: Clause, joined: Sequence[RelativePath] = ()
) -> tuple[Template, tuple[SlotPlace, ...], list[int]]:
    """The template, the positions of its constants, and the nodes of the columns that a join compares (its outputs)."""
    positive = sorted((x.atom for x in clause if x.positive), key=order_of)
    negative = sorted((x.atom for x in clause if not x.positive), key=order_of)
    pattern = _Pattern()
    compared = [(pattern.node(a.path), a) for a in positive]
    constants = [(node, a) for node, a in compared if isinstance(a.right, Slot)]
    joins = tuple(
        NodeCondition(node, a.op, pattern.node(a.right), a.part == "text")  # type: ignore[arg-type]
        for node, a in compared
        if isinstance(a.right, tuple)
    )
    if any(isinstance(a.right, tuple) for a in negative):
        raise QueryError("a comparison of two attributes cannot be negated; write the opposite comparison")
    negated = tuple(
        NegatedCondition((ANY_ROOT, *a.path), a.op, type_of(a), len(constants) + i, a.part)
        for i, a in enumerate(negative)
    )
    conditions = tuple(
        ConstantCondition(node, a.op, type_of(a), slot, a.part) for slot, (node, a) in enumerate(constants)
    )
    ends = [pattern.node(path) for path in joined]
    outputs = tuple(dict.fromkeys(ends)) or (0,)
    template = Template(source, tuple(pattern.nodes), conditions, joins, outputs, negated, columns=True)
    return template, tuple(place_of(a) for a in (*(a for _, a in constants), *negative)), ends
