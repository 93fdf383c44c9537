"""Joins in normal form: two templates, the edges between their nodes, the window (MMQJP 4.1 and 4.2).

In: a Shape with two blocks. Out: a JoinTemplate, in which each side is the template of a selection, and the way
back. A side's outputs are the nodes that a result is over: those of the reduced join graph (the nodes of value
joins and the least common ancestors among them) and those that the output mentions. What else a block asks for
must only be there. Queries with equal join templates differ in constants, windows and output names only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from fishweir.algebra.nodes import (
    MIRRORED,
    Comparison,
    Operator,
    PatternNode,
    Shape,
    Slot,
    Source,
    VariableOutput,
    Window,
)
from fishweir.algebra.normal import Template, dotted, to_normal
from fishweir.algebra.predicates import Predicate


@dataclass(frozen=True, slots=True)
class JoinEdge:
    """`left op right` between a node of the left template and one of the right."""

    left: int
    op: Operator
    right: int

    @property
    def is_equality(self) -> bool:
        return self.op == "="


@dataclass(frozen=True, slots=True)
class JoinTemplate:
    """A join without names and constants. The window's slots are places among the constants after those of the
    left and of the right template."""

    left: Template
    right: Template
    edges: tuple[JoinEdge, ...]
    window: Window
    turn: int = 0
    """Counts the conjunctions of one query that have the same edges and conditions on the same sides."""

    @property
    def sides(self) -> tuple[Template, Template]:
        return self.left, self.right

    def shown(self, edge: JoinEdge) -> str:
        """An edge as people read it: Quotes.Symbol = Companies.Symbol."""
        return f"{dotted(self.left.path(edge.left))} {edge.op} {dotted(self.right.path(edge.right))}"

    @property
    def signature(self) -> str:
        """The join signature (NiagaraCQ 3.5): the inputs and the comparisons between them."""
        edges = " and ".join(map(self.shown, self.edges)) or "true"
        return f"{edges} in {self.left.source} {'followed by' if self.window.strict else 'join'} {self.right.source}"

    def __str__(self) -> str:
        return f"{self.left} || {self.right} || {self.signature}"

    @property
    def sources(self) -> tuple[Source, Source]:
        return self.left.source, self.right.source

    @property
    def types(self) -> tuple[str, ...]:
        ends = {slot.index: slot.type for slot in (self.window.left, self.window.right) if slot is not None}
        return (*self.left.types, *self.right.types, *(ends[i] for i in sorted(ends)))


@dataclass(frozen=True, slots=True)
class JoinNormal:
    """A join template and the way back: side and node of each variable, index of the constant for each slot."""

    template: JoinTemplate
    variables: tuple[tuple[str, int, int], ...]
    slots: tuple[int | tuple[int, int], ...]


@lru_cache(maxsize=100_000)
def to_join(shape: Shape) -> JoinNormal:
    """The normal form of a join of two blocks."""
    assert shape.window is not None, "a join has a window"
    blocks = tuple(replace(block, pattern=named(block.pattern, f"_n{i}")) for i, block in enumerate(shape.blocks))
    owner = {name: i for i, block in enumerate(blocks) for node in block.pattern.walk() for name in node.variables}
    between = [c for c in shape.conditions if isinstance(c.right, str) and owner[c.left] != owner[c.right]]
    normals = []
    for side, block in enumerate(blocks):
        own = tuple(c for c in shape.conditions if c not in between and owner[c.left] == side)
        outputs = tuple(VariableOutput(name) for name in row_variables(shape, side))
        normals.append(to_normal(Shape((block,), own, outputs, shape.slots, shape.language)))
    left, right = normals
    nodes = [dict(normal.variables) for normal in normals]
    edges = {_edge(c, owner, nodes) for c in between}
    slots = [*left.slots, *right.slots]
    window = placed_window(shape.window, slots)
    ordered = tuple(sorted(edges, key=lambda e: (e.left, e.op, e.right)))
    template = JoinTemplate(_in_order(left.template), _in_order(right.template), ordered, window)
    variables = tuple((name, side, node) for side in (0, 1) for name, node in nodes[side].items())
    return JoinNormal(template, variables, tuple(slots))


def _in_order(template: Template | Predicate) -> Template:
    """A result is over a set of nodes: in which order a text names them makes no difference."""
    assert isinstance(template, Template)
    return replace(template, outputs=tuple(sorted(template.outputs)))


def row_variables(shape: Shape, side: int) -> tuple[str, ...]:
    """One variable for each node of a side that a result is over, in preorder."""
    block = named(shape.blocks[side].pattern, f"_n{side}")
    wanted = {*edge_variables(shape, side), *shape.output_variables}
    chosen = reduced(block, wanted_nodes(block, set(edge_variables(shape, side))))
    return tuple(
        node.variables[0] for node in block.walk() if id(node) in chosen or wanted.intersection(node.variables)
    )


def edge_variables(shape: Shape, side: int) -> Iterator[str]:
    """The variables of a side that value joins compare."""
    own = [{name for node in block.pattern.walk() for name in node.variables} for block in shape.blocks]
    for condition in shape.conditions:
        ends = {condition.left, condition.right}
        if isinstance(condition.right, str) and not any(ends <= names for names in own):
            yield condition.left if condition.left in own[side] else condition.right


def wanted_nodes(pattern: PatternNode, names: set[str]) -> set[int]:
    return {id(node) for node in pattern.walk() if names.intersection(node.variables)}


def reduced(pattern: PatternNode, joined: set[int]) -> set[int]:
    """The nodes of the graph minor: those of value joins and the least common ancestors among them. The three
    rules of section 4.2 at once: of all others no leaf, no node above them all and none with a single child is left."""
    kept: set[int] = set()

    def visit(node: PatternNode) -> bool:
        below = sum([visit(child) for child in node.children])
        if id(node) in joined or below > 1:
            kept.add(id(node))
        return id(node) in joined or below > 0

    visit(pattern)
    return kept


def named(pattern: PatternNode, prefix: str) -> PatternNode:
    """The pattern with a variable on every node."""
    numbers = iter(range(1 << 30))

    def visit(node: PatternNode) -> PatternNode:
        own = f"{prefix}_{next(numbers)}"
        children = tuple(visit(child) for child in node.children)
        return replace(node, variables=node.variables or (own,), children=children)

    return visit(pattern)


def _edge(condition: Comparison, owner: dict[str, int], nodes: list[dict[str, int]]) -> JoinEdge:
    assert isinstance(condition.right, str)
    if owner[condition.left] == 0:
        return JoinEdge(nodes[0][condition.left], condition.op, nodes[1][condition.right])
    return JoinEdge(nodes[0][condition.right], MIRRORED[condition.op], nodes[1][condition.left])


def placed_window(window: Window, slots: list[int | tuple[int, int]]) -> Window:
    """The window with its slots behind those of the sides; equal ends share one."""

    def placed(slot: Slot | None) -> Slot | None:
        if slot is None:
            return None
        if slot.index not in slots[first:]:
            slots.append(slot.index)
        return Slot(first + slots[first:].index(slot.index), slot.type)

    first = len(slots)
    return replace(window, left=placed(window.left), right=placed(window.right))


def admits(window: Window, left: float | None, right: float | None, earlier: float, later: float) -> bool:
    """Whether a left document of time `earlier` and a right one of time `later` meet; the ends in seconds."""
    apart = later - earlier
    if apart == 0:
        return not window.strict
    reach = left if apart > 0 else right
    return reach is not None and abs(apart) <= reach
