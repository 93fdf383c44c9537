"""Selections in normal form: each filter's formula as conjunctions, each conjunction a template.

In: a Selection. Out: one Normal per conjunction of the disjunctive normal form of each filter. The
pattern of a conjunction has the document element as its root and a node for each path that a positive
atom reads; what must not hold is kept apart, by path. The query fires where any of its normals does.
"""

from __future__ import annotations

from functools import lru_cache

from fishweir.algebra.feeds import Filter, Selection
from fishweir.algebra.formula import Atom, Clause, RelativePath, to_dnf
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
from fishweir.algebra.texts import SIMILAR
from fishweir.errors import QueryError

WORDS = ("contains",)
"""Operators whose constants are words."""


@lru_cache(maxsize=100_000)
def to_normals(shape: Shape | Selection) -> tuple[Normal, ...]:
    """The normal forms of a query; a tree pattern has one."""
    if isinstance(shape, Shape):
        return (to_normal(shape),)
    alone = shape.language == "sql"
    found = [_normal(f, clause, alone) for f in shape.filters for clause in to_dnf(f.formula)]
    return tuple(dict.fromkeys(found))


def constants_of(normal: Normal, constants: tuple[Constant, ...]) -> list[Constant]:
    """A query's constants in the order of a template; a share and its text become one."""
    return [_constant(place, constants) for place in normal.slots]


def _constant(place: int | tuple[int, int], constants: tuple[Constant, ...]) -> Constant:
    if isinstance(place, int):
        return constants[place] if place >= 0 else ""
    share, text = place
    return f"{constants[share] if share >= 0 else SIMILAR}\t{constants[text]}"


class _Pattern:
    """The nodes of one conjunction. A column has one value, so its conditions share a node (`alone`);
    an element may come several times, and each atom finds its own."""

    def __init__(self, alone: bool) -> None:
        self.alone = alone
        self.nodes = [TemplateNode(-1, ANY_ROOT)]
        self.known: dict[RelativePath, int] = {(): 0}

    def node(self, path: RelativePath) -> int:
        if path in self.known and (self.alone or not path):
            return self.known[path]
        parent = self.node(path[:-1])
        self.nodes.append(TemplateNode(parent, path[-1]))
        self.known[path] = len(self.nodes) - 1
        return self.known[path]


def _normal(part: Filter, clause: Clause, alone: bool) -> Normal:
    positive = sorted((x.atom for x in clause if x.positive), key=_order)
    negative = sorted((x.atom for x in clause if not x.positive), key=_order)
    pattern = _Pattern(alone)
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
        NegatedCondition((ANY_ROOT, *a.path), a.op, _type(a), len(constants) + i, a.part)
        for i, a in enumerate(negative)
    )
    conditions = tuple(
        ConstantCondition(node, a.op, _type(a), slot, a.part) for slot, (node, a) in enumerate(constants)
    )
    template = Template(part.source, tuple(pattern.nodes), conditions, joins, (0,), negated)
    slots = tuple(_place(a) for a in (*(a for _, a in constants), *negative))
    return Normal(template, (), slots)


def _type(atom: Atom) -> str:
    if atom.op in WORDS:
        return "words"
    return atom.right.type if isinstance(atom.right, Slot) else "string"


def _place(atom: Atom) -> int | tuple[int, int]:
    """Where a condition's constant stands among the query's; -1 for `exists`, which has none."""
    if not isinstance(atom.right, Slot):
        return -1
    if atom.op != "similar":
        return atom.right.index
    return (-1 if atom.threshold is None else atom.threshold.index, atom.right.index)


def _order(atom: Atom) -> tuple[str, str, int]:
    """By structure first, so that queries that differ in their constants get one template."""
    return (str(atom), _type(atom), atom.right.index if isinstance(atom.right, Slot) else -1)

