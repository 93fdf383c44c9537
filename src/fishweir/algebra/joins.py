"""Joins in normal form: a template for each side, the edges between their nodes, the windows (MMQJP 4.1 and 4.2).

In: a Shape with several blocks. Out: a JoinTemplate, in which each side is the template of a selection, and the mapping
back to the query. A side's outputs are the nodes of a result: those of the reduced join graph (the nodes of value joins
and the least common ancestors among them) and those that the output mentions. Other nodes of a block must only exist.
Queries with equal join templates differ only in constants, windows and output names. Joins of feeds have the same
template (annotations.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, cast

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
    """`left op right` between a value of one side and one of a later side, or its negation. A value is that of a tree
    pattern's node; of a feed item, any value at a path may match. `share` is the position of the threshold of `similar`
    among the constants, -1 for the default."""

    left_side: int
    left: int
    op: str
    right_side: int
    right: int
    share: int = -1
    positive: bool = True

    @property
    def comparison(self) -> Operator:
        """The operator of an edge between nodes, which is never a condition on texts."""
        return cast(Operator, self.op)

    @property
    def is_equality(self) -> bool:
        return self.op == "="


def edge(one: tuple[int, int], op: Operator, two: tuple[int, int]) -> Edge:
    """The edge between two (side, node) pairs, in either order."""
    return Edge(*one, op, *two) if one[0] < two[0] else Edge(*two, MIRRORED[op], *one)


@dataclass(frozen=True, slots=True)
class JoinTemplate:
    """A join without names and constants. The constants are ordered: those of the sides, those of the windows in the
    order of the sides, those of the edges.

    A result is a combination of documents, one of each side. For a semi-join that collects, it is a document of the
    first side with everything it joins in the others."""

    kind: ClassVar[str] = "joins"

    sides: tuple[Any, ...]
    """Tree patterns (Template); for a semi-join that collects, feeds (annotations.Feed)."""
    edges: tuple[Edge, ...]
    windows: tuple[SideWindow, ...]
    strict: bool = False
    turn: int = 0
    """Numbers the conjunctions of one query that have the same edges and conditions on the same sides."""
    collects: tuple[int, ...] = ()
    """For a semi-join that collects, the query's join that each side after the first belongs to."""

    @property
    def is_of_two(self) -> bool:
        """Whether its results are pairs of documents."""
        return len(self.sides) == 2 and not self.collects

    @property
    def left(self) -> Template:
        left: Template = self.sides[0]
        return left

    @property
    def right(self) -> Template:
        """The other side of a join of two."""
        right: Template
        _, right = self.sides
        return right

    @property
    def counts_rows(self) -> tuple[bool, ...]:
        """For each side, whether its window counts rows."""
        return tuple(window.rows for window in self.windows)

    def edges_of(self, side: int) -> list[Edge]:
        """The edges between a side and earlier ones."""
        return [edge for edge in self.edges if edge.right_side == side]

    def shown(self, edge: Edge) -> str:
        """An edge as text: Quotes.Symbol = Companies.Symbol, or title = window.title. More than two sides are numbered,
        since a source may be read several times."""
        ends = ((edge.left_side, edge.left), (edge.right_side, edge.right))
        left, right = (f"{self._name(side)}{dotted(self.sides[side].path(node))}" for side, node in ends)
        return f"{'' if edge.positive else 'not '}{left} {edge.op} {right}"

    def _name(self, side: int) -> str:
        many = len(self.sides) > 2
        if self.collects:
            return f"window{side if many else ''}." if side else ""
        return f"{self.sides[side].source}#{side + 1}." if many else ""

    @property
    def signature(self) -> str:
        """The join signature (NiagaraCQ 3.5): the inputs and the comparisons between them."""
        inputs = [" | ".join(map(str, side.sources)) for side in self.sides]
        return f"{self._compared()} in {(' followed by ' if self.strict else ' join ').join(inputs)}"

    def _compared(self) -> str:
        """All edges as text. In a semi-join that collects, a document must match in one side of each join."""
        ways: dict[int, list[list[Edge]]] = {0: [list(self.edges)]} if not self.collects else {}
        for side, join in enumerate(self.collects, 1):
            ways.setdefault(join, []).append(self.edges_of(side))
        shown = [[" and ".join(map(self.shown, edges)) or "true" for edges in some] for some in ways.values()]
        return " and ".join(some[0] if len(some) == 1 else f"({' or '.join(some)})" for some in shown)

    @property
    def signatures(self) -> list[str]:
        return [self.signature]

    def __str__(self) -> str:
        return " || ".join([*map(str, self.sides), self.signature])

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(source for side in self.sides for source in side.sources)

    def awaited(self, side: int) -> Iterator[Source]:
        """The sources whose documents the documents of a side wait for. Items of a semi-join that collects do not wait:
        they join what is present when they arrive."""
        if self.collects:
            yield from self.sides[0].matching_sources(side)
        else:
            yield from (source for i, other in enumerate(self.sides) if i != side for source in other.sources)

    @property
    def matched(self) -> int:
        """How many constants, from the first on, belong to feeds, whose filters are matched separately."""
        return sum(len(side.types) for side in self.sides if side.filters)

    @property
    def types(self) -> tuple[str, ...]:
        own = {window.end.index: window.end.type for window in self.windows if window.end is not None}
        own |= {edge.share: "number" for edge in self.edges if edge.share >= 0}
        return (*(kind for side in self.sides for kind in side.types), *(own[i] for i in sorted(own)))


@dataclass(frozen=True, slots=True)
class JoinNormal:
    """A join template and the mapping back to the query: side and node of each variable, index of the constant for each
    slot. Columns have no variables."""

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
    """The template with sorted outputs: the order of a result's nodes in the text is irrelevant."""
    assert isinstance(template, Template)
    return replace(template, outputs=tuple(sorted(template.outputs)))


def row_variables(shape: Shape, side: int) -> tuple[str, ...]:
    """One variable for each node of a side in the result, in preorder."""
    block = named(shape.blocks[side].pattern, f"_n{side}")
    names = {*edge_variables(shape, side), *shape.output_variables}
    chosen = reduced(block, nodes_named(block, set(edge_variables(shape, side))))
    return tuple(node.variables[0] for node in block.walk() if id(node) in chosen or names.intersection(node.variables))


def edge_variables(shape: Shape, side: int) -> Iterator[str]:
    """The variables of a side that value joins compare."""
    own = [{name for node in block.pattern.walk() for name in node.variables} for block in shape.blocks]
    for condition in shape.conditions:
        ends = [condition.left, condition.right]
        if isinstance(condition.right, str) and not any(own_names.issuperset(ends) for own_names in own):
            yield from (name for name in (condition.left, condition.right) if name in own[side])


def nodes_named(pattern: PatternNode, names: set[str]) -> set[int]:
    return {id(node) for node in pattern.walk() if names.intersection(node.variables)}


def reduced(pattern: PatternNode, joined: set[int]) -> set[int]:
    """The nodes of the graph minor: those of value joins and the least common ancestors among them. This applies the
    three rules of section 4.2 at once: no other leaf, no node above all of these and no node with a single child
    remains."""
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
    """The windows, with slots numbered after those of the sides. Equal windows share a slot."""
    first, found = len(slots), []
    for window in windows:
        if window.end is not None:
            if window.end.index not in slots[first:]:
                slots.append(window.end.index)
            end = Slot(first + slots[first:].index(window.end.index), window.end.type)
            window = replace(window, end=end)
        found.append(window)
    return tuple(found)
