"""Normal form: a shape without names, in canonical order, so that equal questions are one template.

In: a Shape over one source. Out: a Template, in which pattern nodes are numbers, conditions refer to
nodes and constant slots are renumbered; and the way back (which variable is which node, which of the
query's constants goes where). Two queries with equal templates differ in constants and output only:
they are rows of the same constant tables (NiagaraCQ 3.2.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from fishweir.algebra.nodes import MIRRORED, Comparison, Operator, PatternNode, Shape, Slot, Source, Step

PLACEHOLDER = {"string": "constant", "number": "number"}


@dataclass(frozen=True, slots=True)
class TemplateNode:
    parent: int
    step: Step


@dataclass(frozen=True, slots=True)
class ConstantCondition:
    """`node op constant`, the constant being the query's value for `slot`."""

    node: int
    op: Operator
    type: str
    slot: int


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """`left op right` between two nodes of the same document, the lower number on the left."""

    left: int
    op: Operator
    right: int


@dataclass(frozen=True, slots=True)
class Template:
    """Nodes in preorder, the first being the pattern's root; `outputs` are nodes."""

    source: Source
    nodes: tuple[TemplateNode, ...]
    constants: tuple[ConstantCondition, ...]
    joins: tuple[NodeCondition, ...]
    outputs: tuple[int, ...]

    def chain(self, node: int) -> tuple[int, ...]:
        """The nodes from the root down to `node`."""
        nodes: list[int] = []
        while node >= 0:
            nodes.append(node)
            node = self.nodes[node].parent
        return tuple(reversed(nodes))

    def path(self, node: int) -> tuple[Step, ...]:
        return tuple(self.nodes[i].step for i in self.chain(node))

    def signature(self, *conditions: ConstantCondition) -> str:
        """An expression signature as in figure 3.2: `Quotes.Quote.Symbol = constant in quotes`."""
        parts = [f"{dotted(self.path(c.node))} {c.op} {PLACEHOLDER[c.type]}" for c in conditions]
        return f"{' and '.join(parts)} in {self.source}"

    @property
    def leaves(self) -> tuple[int, ...]:
        """Nodes without children: their chains cover the pattern."""
        parents = {node.parent for node in self.nodes}
        return tuple(i for i in range(len(self.nodes)) if i not in parents)

    def __str__(self) -> str:
        conditions = [f"{dotted(self.path(c.node))} {c.op} {PLACEHOLDER[c.type]}" for c in self.constants]
        conditions += [f"{dotted(self.path(j.left))} {j.op} {dotted(self.path(j.right))}" for j in self.joins]
        paths = [dotted(self.path(i)) for i in self.leaves]
        outputs = ", ".join(dotted(self.path(i)) for i in self.outputs) or "-"
        where = " and ".join(conditions) or "true"
        return f"{self.source}: {', '.join(paths)} | {where} | {outputs}"


@dataclass(frozen=True, slots=True)
class Normal:
    """A template and the way back: node of each variable, index of the constant for each slot."""

    template: Template
    variables: tuple[tuple[str, int], ...]
    slots: tuple[int, ...]


def dotted(path: tuple[Step, ...]) -> str:
    """A path as NiagaraCQ writes it: Quotes.Quote.Symbol."""
    return ".".join(str(step) for step in path)


@lru_cache(maxsize=100_000)
def to_normal(shape: Shape) -> Normal:
    """The normal form of a selection."""
    (block,) = shape.blocks
    order: list[PatternNode] = []
    parents: list[int] = []
    _flatten(block.pattern, -1, shape, order, parents)
    node_of = {name: i for i, node in enumerate(order) for name in node.variables}
    constants, slots = _constants(shape, node_of)
    joins = {_join(c, node_of) for c in shape.conditions if isinstance(c.right, str)}
    template = Template(
        block.source,
        tuple(TemplateNode(parent, node.step) for parent, node in zip(parents, order, strict=True)),
        constants,
        tuple(sorted(joins, key=lambda j: (j.left, j.op, j.right))),
        tuple(dict.fromkeys(node_of[name] for name in shape.output_variables)),
    )
    return Normal(template, tuple(node_of.items()), slots)


def _constants(
    shape: Shape, node_of: dict[str, int]
) -> tuple[tuple[ConstantCondition, ...], tuple[int, ...]]:
    found = sorted(
        (node_of[c.left], c.op, c.right.type, c.right.index)
        for c in shape.conditions
        if isinstance(c.right, Slot)
    )
    conditions = tuple(
        ConstantCondition(node, op, kind, slot) for slot, (node, op, kind, _) in enumerate(found)
    )
    return conditions, tuple(index for *_, index in found)


def _join(condition: Comparison, node_of: dict[str, int]) -> NodeCondition:
    assert isinstance(condition.right, str)
    left, right = node_of[condition.left], node_of[condition.right]
    if left > right:
        return NodeCondition(right, MIRRORED[condition.op], left)
    return NodeCondition(left, condition.op, right)


def _flatten(
    node: PatternNode, parent: int, shape: Shape, order: list[PatternNode], parents: list[int]
) -> None:
    index = len(order)
    order.append(node)
    parents.append(parent)
    for child in sorted(node.children, key=lambda c: _key(c, shape)):
        _flatten(child, index, shape, order, parents)


def _key(node: PatternNode, shape: Shape) -> tuple[object, ...]:
    """Orders siblings by structure and conditions, never by the names a user chose."""
    conditions = [
        (c.op, c.right.type if isinstance(c.right, Slot) else "")
        for c in shape.conditions
        if c.left in node.variables
    ]
    conditions += [(MIRRORED[c.op], "") for c in shape.conditions if c.right in node.variables]
    outputs = sorted(shape.output_variables.index(v) for v in node.variables if v in shape.output_variables)
    return (str(node.step), sorted(conditions), outputs, sorted(_key(child, shape) for child in node.children))
