"""Normal form: a shape without names, in canonical order, so that equivalent queries have one template.

In: a Shape over one source. Out: a Template, in which pattern nodes are numbers, conditions refer to nodes and constant
slots are renumbered; and the mapping back to the query (the node of each variable, the position of each constant). Two
queries with equal templates differ only in constants and output: they are rows of the same constant tables (NiagaraCQ
3.2.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar

from fishweir.algebra.formula import AtomOperator, Part
from fishweir.algebra.nodes import (
    MIRRORED,
    Absence,
    Block,
    Comparison,
    Operator,
    PatternNode,
    Shape,
    Slot,
    Source,
    Step,
    VariableOutput,
)
from fishweir.algebra.operators import constant_place, constant_type
from fishweir.records import dataclass

if TYPE_CHECKING:
    from fishweir.algebra.predicates import Predicate

PLACEHOLDER = {"string": "constant", "number": "number", "words": "words"}

ANY_ROOT = Step("*", "item")
"""The document element, whatever its name: conditions on items and tuples begin there."""


@dataclass(frozen=True, slots=True)
class TemplateNode:
    parent: int
    step: Step


@dataclass(frozen=True, slots=True)
class ConstantCondition:
    """`part(node) op constant`, where the constant is the query's value for `slot`."""

    node: int
    op: AtomOperator
    type: str
    slot: int
    part: Part = "value"


@dataclass(frozen=True, slots=True)
class NegatedCondition:
    """No node at the path satisfies the condition; the path begins at the document element."""

    path: tuple[Step, ...]
    op: AtomOperator
    type: str
    slot: int
    part: Part = "value"


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """`left op right` between two nodes of the same document, the lower number on the left."""

    left: int
    op: Operator
    right: int
    ordered_as_texts: bool = False

    @property
    def compares_texts(self) -> bool:
        """Whether values are compared as texts: equality always, order only if the columns are texts."""
        return self.ordered_as_texts or self.op in ("=", "!=")


@dataclass(frozen=True, slots=True)
class AbsentTemplate:
    """What must not exist below a node. The template has the nodes from the root down to that node, which is its
    output, and below it what must be absent. Its slots are those of the whole template from `first` on."""

    node: int
    template: Template
    first: int

    def shown(self, constants: Sequence[str] | None = None) -> str:
        """The absence as text, with the constants of the whole template or placeholders."""
        own, template = len(self.template.types), self.template
        given = None if constants is None else constants[self.first : self.first + own]
        compared = {c.node for c in template.constants} | {n for j in template.joins for n in (j.left, j.right)}
        parts = [template.shown(c, given[c.slot] if given else None) for c in template.constants]
        parts += [template.shown_join(join) for join in template.joins]
        (top,) = template.outputs
        parts += [f"exists {dotted(template.path(i))}" for i in template.leaves if i not in compared and i != top]
        parts += [absence.shown(given) for absence in template.absent]
        parts = parts or [f"is {dotted(template.path(top))}"]
        return f"not ({' and '.join(parts)})"


@dataclass(frozen=True, slots=True)
class Template:
    """Nodes in preorder, the first being the pattern's root; `outputs` are nodes."""

    kind: ClassVar[str] = "selections"
    filters: ClassVar[tuple[()]] = ()
    """As a side of a join, it is not a feed and has no filters."""

    source: Source
    nodes: tuple[TemplateNode, ...]
    constants: tuple[ConstantCondition, ...]
    joins: tuple[NodeCondition, ...]
    outputs: tuple[int, ...]
    negated: tuple[NegatedCondition, ...] = ()
    columns: bool = False
    """Whether each path is a column: if a document has several nodes at a path, only the first counts."""
    absent: tuple[AbsentTemplate, ...] = ()

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.source,)

    @property
    def sides(self) -> tuple[Template, ...]:
        """A selection is a join with one side."""
        return (self,)

    def chain(self, node: int) -> tuple[int, ...]:
        """The nodes from the root down to `node`."""
        nodes: list[int] = []
        while node >= 0:
            nodes.append(node)
            node = self.nodes[node].parent
        return tuple(reversed(nodes))

    def path(self, node: int) -> tuple[Step, ...]:
        return tuple(self.nodes[i].step for i in self.chain(node))

    @property
    def names(self) -> list[str]:
        """The path of each node, as `dotted` formats it."""
        names: list[str] = []
        for node in self.nodes:
            above = names[node.parent] if node.parent >= 0 else ""
            own = "" if node.parent < 0 and node.step == ANY_ROOT else str(node.step)
            names.append(f"{above}.{own}" if above else own)
        return [name or "item" for name in names] if not names[0] else names

    def signature(self, *conditions: ConstantCondition) -> str:
        """An expression signature as in figure 3.2: `Quotes.Quote.Symbol = constant in quotes`."""
        return f"{' and '.join(self.shown(c) for c in conditions)} in {self.source}"

    @property
    def signatures(self) -> list[str]:
        names = self.names if self.constants else ()
        return [f"{self.shown(condition, names=names)} in {self.source}" for condition in self.constants]

    def shown(
        self,
        condition: ConstantCondition | NegatedCondition,
        constant: str | None = None,
        names: Sequence[str] | None = None,
    ) -> str:
        """A condition as text, with its constant or a placeholder; `names` are those of the nodes."""
        if isinstance(condition, NegatedCondition):
            left = dotted(condition.path)
        else:
            left = names[condition.node] if names else dotted(self.path(condition.node))
        left = left if condition.part == "value" else f"{condition.part}({left})"
        words = f"{left} {condition.op} {PLACEHOLDER[condition.type] if constant is None else constant}"
        words = f"exists {left}" if condition.op == "exists" else words
        return f"not {words}" if isinstance(condition, NegatedCondition) else words

    def shown_join(self, join: NodeCondition) -> str:
        return f"{dotted(self.path(join.left))} {join.op} {dotted(self.path(join.right))}"

    @property
    def referred(self) -> frozenset[int]:
        """Nodes that an output, a condition, an absence or several nodes below refer to."""
        parents = [node.parent for node in self.nodes]
        compared = {c.node for c in self.constants} | {n for j in self.joins for n in (j.left, j.right)}
        below = {absence.node for absence in self.absent}
        return frozenset({*self.outputs, *compared, *below, *(p for p in parents if parents.count(p) > 1)})

    @property
    def types(self) -> tuple[str, ...]:
        """The type of each slot's constants."""
        return tuple(c.type for c in self.conditions)

    @property
    def conditions(self) -> tuple[ConstantCondition | NegatedCondition, ...]:
        """All conditions with a constant, in the order of the slots."""
        return (*self.constants, *self.negated, *(c for absence in self.absent for c in absence.template.conditions))

    @property
    def leaves(self) -> tuple[int, ...]:
        """Nodes without children: their chains cover the pattern."""
        parents = {node.parent for node in self.nodes}
        return tuple(i for i in range(len(self.nodes)) if i not in parents)

    def __str__(self) -> str:
        names = self.names
        conditions = [self.shown(c, names=names) for c in self.constants]
        conditions += [self.shown(c) for c in self.negated]
        conditions += [self.shown_join(join) for join in self.joins]
        conditions += [absence.shown() for absence in self.absent]
        paths = [names[i] for i in self.leaves]
        outputs = ", ".join([names[i] if i >= 0 else "absent" for i in self.outputs]) or "-"
        where = " and ".join(conditions) or "true"
        return f"{self.source}: {', '.join(paths)} | {where} | {outputs}"


@dataclass(frozen=True, slots=True)
class Normal:
    """A template or predicate, and the mapping back: node of each variable, index of each slot's constant."""

    template: Template | Predicate
    variables: tuple[tuple[str, int], ...]
    slots: tuple[int | tuple[int, int], ...]

    @property
    def places(self) -> tuple[tuple[str, int, int], ...]:
        """The side and node of each variable."""
        return tuple((name, 0, node) for name, node in self.variables)


def dotted(path: tuple[Step, ...]) -> str:
    """A path in NiagaraCQ's notation: Quotes.Quote.Symbol, `..` for any depth. Paths of items omit the root."""
    shown = path[1:] if path[0] == ANY_ROOT else path
    return ".".join(str(step) for step in shown) or "item"


@lru_cache(maxsize=100_000)
def to_normal(shape: Shape) -> Normal:
    """The normal form of a selection."""
    return normal_form(shape)


def normal_form(shape: Shape) -> Normal:
    """The same as `to_normal` without a cache, for nodes that cache it themselves."""
    (block,) = shape.blocks
    order: list[PatternNode] = []
    parents: list[int] = []
    _flatten(block.pattern, -1, _Reading(shape), order, parents)
    node_of = {name: i for i, node in enumerate(order) for name in node.variables}
    constants, slots = _constants(shape, node_of)
    joins = {_join(c, node_of) for c in shape.conditions if isinstance(c.right, str)}
    absent, absent_slots = _absent(block.source, order, parents, len(slots))
    template = Template(
        block.source,
        tuple([TemplateNode(parent, node.step) for parent, node in zip(parents, order, strict=True)]),
        constants,
        tuple(sorted(joins, key=lambda j: (j.left, j.op, j.right))),
        tuple(dict.fromkeys([node_of[name] for name in shape.output_variables if name in node_of])),
        absent=absent,
    )
    return Normal(template, tuple(node_of.items()), (*slots, *absent_slots))


def _constants(
    shape: Shape, node_of: dict[str, int]
) -> tuple[tuple[ConstantCondition, ...], tuple[int | tuple[int, int], ...]]:
    found = sorted(
        (node_of[c.left], c.op, constant_type(c.op, c.right.type), c.right.index)
        for c in shape.conditions
        if isinstance(c.right, Slot)
    )
    conditions = tuple(ConstantCondition(node, op, kind, slot) for slot, (node, op, kind, _) in enumerate(found))
    return conditions, tuple(constant_place(op, index) for _, op, _, index in found)


def _absent(
    source: Source, order: Sequence[PatternNode], parents: Sequence[int], first: int
) -> tuple[tuple[AbsentTemplate, ...], list[int | tuple[int, int]]]:
    """The absences of all nodes, ordered by structure, and the positions of the constants for their slots."""
    found: list[AbsentTemplate] = []
    slots: list[int | tuple[int, int]] = []
    for node, pattern in enumerate(order):
        if not pattern.absent:
            continue
        chain = [node]
        while parents[chain[-1]] >= 0:
            chain.append(parents[chain[-1]])
        normals = [_absence(source, [order[i] for i in chain], absence) for absence in pattern.absent]
        for normal in sorted(normals, key=lambda normal: str(normal.template)):
            assert isinstance(normal.template, Template)
            found.append(AbsentTemplate(node, normal.template, first + len(slots)))
            slots += normal.slots
    return tuple(found), slots


def _absence(source: Source, chain: Sequence[PatternNode], absence: Absence) -> Normal:
    """An absence as a separate pattern: the steps to its node, and below it what must be absent."""
    own, step = chain[0].variables[0] if chain[0].variables else "_above", chain[0].step
    if absence.test is not None:
        step = replace(step, name=absence.test.name, namespace=absence.test.namespace, position=0)
    pattern = PatternNode(step, (own, *chain[0].variables[1:]), absence.children)
    for above in chain[1:]:
        pattern = PatternNode(above.step, (), (pattern,))
    return to_normal(Shape((Block(source, pattern),), absence.conditions, (VariableOutput(own),)))


def _join(condition: Comparison, node_of: dict[str, int]) -> NodeCondition:
    assert isinstance(condition.right, str)
    left, right = node_of[condition.left], node_of[condition.right]
    if left > right:
        return NodeCondition(right, MIRRORED[condition.comparison], left)
    return NodeCondition(left, condition.comparison, right)


class _Reading:
    """The conditions and outputs of a shape by variable, for comparing siblings."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    @cached_property
    def conditions(self) -> dict[str, list[tuple[str, str]]]:
        """The conditions by variable: the operator, with the variable on the left, and the type of the constant."""
        found: dict[str, list[tuple[str, str]]] = {}
        for c in self.shape.conditions:
            found.setdefault(c.left, []).append((c.op, c.right.type if isinstance(c.right, Slot) else ""))
            if isinstance(c.right, str):
                found.setdefault(c.right, []).append((MIRRORED[c.comparison], ""))
        return found

    @cached_property
    def outputs(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.shape.output_variables)}

    def reads(self, node: PatternNode) -> bool:
        return any(name in self.conditions or name in self.outputs for name in node.variables)


def _flatten(node: PatternNode, parent: int, reading: _Reading, order: list[PatternNode], parents: list[int]) -> None:
    index = len(order)
    order.append(node)
    parents.append(parent)
    children: Sequence[PatternNode] = node.children
    if len(children) > 1:
        children = sorted(_needed(node.children, reading), key=lambda c: _key(c, reading))
    for child in children:
        _flatten(child, index, reading, order, parents)


def _needed(children: tuple[PatternNode, ...], reading: _Reading) -> list[PatternNode]:
    """The children, without those whose existence is implied by another child."""
    needed = list(children)
    for child in children:
        if any(other is not child and _implied(child, other, reading) for other in needed):
            del needed[next(i for i, one in enumerate(needed) if one is child)]
    return needed


def _implied(node: PatternNode, other: PatternNode, reading: _Reading) -> bool:
    """Whether a binding of a sibling implies one of the node, which nothing reads."""
    return (
        _covers(node.step, other.step)
        and not node.absent
        and not reading.reads(node)
        and all(any(_implied(child, below, reading) for below in other.children) for child in node.children)
    )


def _covers(step: Step, other: Step) -> bool:
    if step.position:
        return step == other
    near = other.axis == step.axis or (step.is_deep and step.is_attribute == other.is_attribute)
    return near and step.name in ("*", other.name) and step.namespace in (None, other.namespace)


def _key(node: PatternNode, reading: _Reading) -> tuple[object, ...]:
    """A sort key of siblings: structure and conditions, never the names that users chose."""
    conditions = sorted([one for name in node.variables for one in reading.conditions.get(name, ())])
    outputs = sorted([reading.outputs[name] for name in node.variables if name in reading.outputs])
    below = sorted([_key(child, reading) for child in node.children])
    absent = sorted([_absence_key(absence) for absence in node.absent])
    return (str(node.step), conditions, outputs, below, absent)


def _absence_key(absence: Absence) -> tuple[object, ...]:
    inner = _Reading(Shape((), absence.conditions, ()))
    own = sorted((c.op, c.right.type if isinstance(c.right, Slot) else "") for c in absence.conditions)
    return (str(absence.test), own, sorted(_key(child, inner) for child in absence.children))
