"""Joins in normal form: a template for each side, the edges between their nodes, the windows (MMQJP 4.1 and 4.2).

In: a Shape with several blocks. Out: a JoinTemplate, in which each side is the template of a selection, and the way
back. A side's outputs are the nodes that a result is over: those of the reduced join graph (the nodes of value
joins and the least common ancestors among them) and those that the output mentions. What else a block asks for
must only be there. Queries with equal join templates differ in constants, windows and output names only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

from fishweir.algebra.nodes import (
    MIRRORED,
    Comparison,
    Operator,
    PatternNode,
    Shape,
    SideWindow,
    Slot,
    Source,
    VariableOutput,
)
from fishweir.algebra.normal import Template, dotted, to_normal
from fishweir.algebra.predicates import Predicate, SlotPlace
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class Edge:
    """`left op right` between a node of one side's template and one of a later side's."""

    left_side: int
    left: int
    op: Operator
    right_side: int
    right: int

    @property
    def is_equality(self) -> bool:
        return self.op == "="


def edge(one: tuple[int, int], op: Operator, two: tuple[int, int]) -> Edge:
    """The edge between two (side, node), whichever side comes first."""
    return Edge(*one, op, *two) if one[0] < two[0] else Edge(*two, MIRRORED[op], *one)


@dataclass(frozen=True, slots=True)
class JoinTemplate:
    """A join without names and constants. The slots of the windows are places among the constants after those of the
    sides, in the order of the sides."""

    kind: ClassVar[str] = "joins"
    collects: ClassVar[bool] = False
    """Whether a result is a document with all that it joins, or one combination of documents."""

    sides: tuple[Template, ...]
    edges: tuple[Edge, ...]
    windows: tuple[SideWindow, ...]
    strict: bool = False
    turn: int = 0
    """Counts the conjunctions of one query that have the same edges and conditions on the same sides."""

    @property
    def left(self) -> Template:
        return self.sides[0]

    @property
    def right(self) -> Template:
        """The other side of a join of two."""
        _, right = self.sides
        return right

    @property
    def counts_rows(self) -> tuple[bool, ...]:
        """By side, whether its window counts rows."""
        return tuple(window.rows for window in self.windows)

    def shown(self, edge: Edge) -> str:
        """An edge as people read it: Quotes.Symbol = Companies.Symbol. More than two sides are numbered, since a source
        may be read several times."""
        ends = []
        for side, node in ((edge.left_side, edge.left), (edge.right_side, edge.right)):
            template = self.sides[side]
            number = f"{template.source}#{side + 1}." if len(self.sides) > 2 else ""
            ends.append(f"{number}{dotted(template.path(node))}")
        return f"{ends[0]} {edge.op} {ends[1]}"

    @property
    def signature(self) -> str:
        """The join signature (NiagaraCQ 3.5): the inputs and the comparisons between them."""
        edges = " and ".join(map(self.shown, self.edges)) or "true"
        return f"{edges} in {(' followed by ' if self.strict else ' join ').join(map(str, self.sources))}"

    @property
    def signatures(self) -> list[str]:
        return [self.signature]

    def __str__(self) -> str:
        return " || ".join([*map(str, self.sides), self.signature])

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(side.source for side in self.sides)

    @property
    def types(self) -> tuple[str, ...]:
        ends = {window.end.index: window.end.type for window in self.windows if window.end is not None}
        return (*(kind for side in self.sides for kind in side.types), *(ends[i] for i in sorted(ends)))


@dataclass(frozen=True, slots=True)
class JoinNormal:
    """A join template and the way back: side and node of each variable, index of the constant for each slot. Columns
    have no variables."""

    template: JoinTemplate
    variables: tuple[tuple[str, int, int], ...]
    slots: tuple[SlotPlace, ...]

    @property
    def places(self) -> tuple[tuple[str, int, int], ...]:
        return self.variables


@lru_cache(maxsize=100_000)
def to_join(shape: Shape) -> JoinNormal:
    """The normal form of a join of patterns."""
    blocks = tuple(replace(block, pattern=named(block.pattern, f"_n{i}")) for i, block in enumerate(shape.blocks))
    owner = {name: i for i, block in enumerate(blocks) for node in block.pattern.walk() for name in node.variables}
    between = [c for c in shape.conditions if isinstance(c.right, str) and owner[c.left] != owner[c.right]]
    normals = []
    for side, block in enumerate(blocks):
        own = tuple(c for c in shape.conditions if c not in between and owner[c.left] == side)
        outputs = tuple(VariableOutput(name) for name in row_variables(shape, side))
        normals.append(to_normal(Shape((block,), own, outputs, shape.slots)))
    places = {name: (owner[name], node) for normal in normals for name, node in normal.variables}
    edges = {_edge(condition, places) for condition in between}
    slots: list[SlotPlace] = [slot for normal in normals for slot in normal.slots]
    sides = tuple(_in_order(normal.template) for normal in normals)
    template = JoinTemplate(sides, in_order(edges), placed_windows(shape.windows, slots), shape.strict)
    return JoinNormal(template, tuple((name, *place) for name, place in places.items()), tuple(slots))


def in_order(edges: set[Edge]) -> tuple[Edge, ...]:
    return tuple(sorted(edges, key=lambda e: (e.left_side, e.right_side, e.left, e.op, e.right)))


def _in_order(template: Template | Predicate) -> Template:
    """A result refers to a set of nodes; their order in the text does not matter."""
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
        ends = [condition.left, condition.right]
        if isinstance(condition.right, str) and not any(own_names.issuperset(ends) for own_names in own):
            yield from (name for name in (condition.left, condition.right) if name in own[side])


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
        return PatternNode(node.step, node.variables or (own,), children, node.absent)

    return visit(pattern)


def _edge(condition: Comparison, places: dict[str, tuple[int, int]]) -> Edge:
    assert isinstance(condition.right, str)
    return edge(places[condition.left], condition.comparison, places[condition.right])


def placed_windows(windows: tuple[SideWindow, ...], slots: list[SlotPlace]) -> tuple[SideWindow, ...]:
    """The windows with their slots after those of the sides; equal windows share a slot."""
    first, found = len(slots), []
    for window in windows:
        if window.end is not None:
            if window.end.index not in slots[first:]:
                slots.append(window.end.index)
            end = Slot(first + slots[first:].index(window.end.index), window.end.type)
            window = replace(window, end=end)
        found.append(window)
    return tuple(found)
