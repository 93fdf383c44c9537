"""Selections in normal form: what of each filter the shared plan sees.

In: a Selection. Out: its normals; the query fires where any of them does. A filter on feed items becomes
a predicate (predicates.py). Of SQL's conditions each conjunction of the disjunctive normal form becomes a
template: its pattern has the document element as its root and a node for each column that a positive
atom reads; what must not hold is kept apart, by path.
"""

from __future__ import annotations

from functools import lru_cache

from fishweir.algebra.annotations import AnnotationNormal, to_annotation
from fishweir.algebra.feeds import Filter, Selection
from fishweir.algebra.formula import Clause, RelativePath, to_dnf
from fishweir.algebra.joins import JoinNormal, to_join
from fishweir.algebra.nodes import Constant, Shape, Slot
from fishweir.algebra.normal import (
    ANY_ROOT,
    ConstantCondition,
    NegatedCondition,
    NodeCondition,
    Normal,
    Template,
    TemplateNode,
    to_normal,
)
from fishweir.algebra.predicates import constant_at, order_of, place_of, to_predicates, type_of
from fishweir.errors import QueryError

AnyNormal = Normal | JoinNormal | AnnotationNormal


@lru_cache(maxsize=100_000)
def to_normals(shape: Shape | Selection) -> tuple[AnyNormal, ...]:
    """The normal forms of a query; a tree pattern or a join has one."""
    if isinstance(shape, Shape):
        return (to_normal(shape) if shape.window is None else to_join(shape),)
    if shape.joins:
        return (to_annotation(shape),)
    if shape.language == "sql":
        found = [_normal(f, clause) for f in shape.filters for clause in to_dnf(f.formula)]
    else:
        found = [
            Normal(predicate, (), places)
            for f in shape.filters
            for predicate, places in to_predicates(f.source, f.formula)
        ]
    return tuple(dict.fromkeys(found))


def constants_of(normal: AnyNormal, constants: tuple[Constant, ...]) -> list[Constant]:
    """A query's constants in the order of a template; a share and its text become one."""
    return [constant_at(place, constants) for place in normal.slots]


class _Pattern:
    """The nodes of one conjunction. A column has one value, so its conditions share a node."""

    def __init__(self) -> None:
        self.nodes = [TemplateNode(-1, ANY_ROOT)]
        self.known: dict[RelativePath, int] = {(): 0}

    def node(self, path: RelativePath) -> int:
        if path not in self.known:
            parent = self.node(path[:-1])
            self.nodes.append(TemplateNode(parent, path[-1]))
            self.known[path] = len(self.nodes) - 1
        return self.known[path]


def _normal(part: Filter, clause: Clause) -> Normal:
    positive = sorted((x.atom for x in clause if x.positive), key=order_of)
    negative = sorted((x.atom for x in clause if not x.positive), key=order_of)
    pattern = _Pattern()
    compared = [(pattern.node(a.path), a) for a in positive]
    constants = [(node, a) for node, a in compared if isinstance(a.right, Slot)]
    joins = tuple(
        NodeCondition(node, a.op, pattern.node(a.right))  # type: ignore[arg-type]
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
    template = Template(part.source, tuple(pattern.nodes), conditions, joins, (0,), negated, columns=True)
    slots = tuple(place_of(a) for a in (*(a for _, a in constants), *negative))
    return Normal(template, (), slots)
