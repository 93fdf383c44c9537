"""SQL's joins of three and more streams in normal form: a template for each stream, and the edges between any two.

In: a Shape with a formula over several blocks, whose paths begin with a step that says which block they read, and a
window for each block. Out: one join for each conjunction of the disjunctive normal form; a combination of tuples is one
result, however many of them hold. Within a conjunction, comparisons between blocks are edges, all else belongs to its
side. Queries with equal templates differ in constants and windows only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from fishweir.algebra.column_joins import block_of, is_between, own_clause
from fishweir.algebra.columns import column_template
from fishweir.algebra.formula import Atom, Clause, RelativePath, to_dnf
from fishweir.algebra.nodes import MIRRORED, BlockWindow, Operator, Shape, Slot, Source
from fishweir.algebra.normal import Template, dotted
from fishweir.algebra.predicates import Place


@dataclass(frozen=True, slots=True)
class ManyEdge:
    """`left op right` between a node of one side's template and one of a later side's."""

    left_side: int
    left: int
    op: Operator
    right_side: int
    right: int


@dataclass(frozen=True, slots=True)
class ManyTemplate:
    """A join without names and constants. The slots of the windows are places among the constants after those of the
    sides."""

    sides: tuple[Template, ...]
    edges: tuple[ManyEdge, ...]
    windows: tuple[BlockWindow, ...]
    turn: int = 0
    """Counts the conjunctions of one query that have the same template otherwise: each is in a table of its own."""

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(side.source for side in self.sides)

    def shown(self, edge: ManyEdge) -> str:
        """An edge as people read it; the sides are counted, since a stream may come twice."""
        left, right = self.sides[edge.left_side], self.sides[edge.right_side]
        one = f"{left.source}#{edge.left_side + 1}.{dotted(left.path(edge.left))}"
        return f"{one} {edge.op} {right.source}#{edge.right_side + 1}.{dotted(right.path(edge.right))}"

    @property
    def signature(self) -> str:
        """The join signature (NiagaraCQ 3.5): the inputs and the comparisons between them."""
        edges = " and ".join(map(self.shown, self.edges)) or "true"
        return f"{edges} in {' join '.join(map(str, self.sources))}"

    def __str__(self) -> str:
        return " || ".join([*map(str, self.sides), self.signature])

    @property
    def types(self) -> tuple[str, ...]:
        ends = {window.end.index: window.end.type for window in self.windows}
        return (*(kind for side in self.sides for kind in side.types), *(ends[i] for i in sorted(ends)))


@dataclass(frozen=True, slots=True)
class ManyNormal:
    """A template and the index of the constant for each slot; columns have no variables."""

    template: ManyTemplate
    variables: tuple[()]
    slots: tuple[Place, ...]


def to_many_joins(shape: Shape) -> tuple[ManyNormal, ...]:
    """The joins of a query. Of several with the same template each has its turn, so that a query is in a table once."""
    assert shape.formula is not None, "SQL's joins have a formula"
    turns: Counter[ManyTemplate] = Counter()
    found = []
    for clause in to_dnf(shape.formula):
        normal = _normal(shape, clause)
        turn = turns[normal.template]
        turns[normal.template] += 1
        found.append(replace(normal, template=replace(normal.template, turn=turn)))
    return tuple(dict.fromkeys(found))


End = tuple[int, RelativePath]


def _normal(shape: Shape, clause: Clause) -> ManyNormal:
    edges = sorted({_edge(x.atom) for x in clause if is_between(x.atom)}, key=str)
    sides: list[Template] = []
    slots: list[Place] = []
    nodes: list[dict[RelativePath, int]] = []
    for side, block in enumerate(shape.blocks):
        ends = list(dict.fromkeys(path for edge in edges for own, path in (edge[0], edge[2]) if own == side))
        template, places, found = column_template(block.source, own_clause(clause, side), ends)
        sides.append(template)
        slots += places
        nodes.append(dict(zip(ends, found, strict=True)))
    between = {ManyEdge(a, nodes[a][one], op, b, nodes[b][two]) for (a, one), op, (b, two) in edges}
    ordered = sorted(between, key=lambda e: (e.left_side, e.right_side, e.left, e.op, e.right))
    return ManyNormal(ManyTemplate(tuple(sides), tuple(ordered), _placed(shape.windows, slots)), (), tuple(slots))


def _edge(atom: Atom) -> tuple[End, Operator, End]:
    assert isinstance(atom.right, tuple)
    op: Operator = atom.op  # type: ignore[assignment]
    one, two = ((block_of(path), path[1:]) for path in (atom.path, atom.right))
    return (one, op, two) if one[0] < two[0] else (two, MIRRORED[op], one)


def _placed(windows: tuple[BlockWindow, ...], slots: list[Place]) -> tuple[BlockWindow, ...]:
    """The windows with their slots behind those of the sides; equal ends share one."""
    first, found = len(slots), []
    for window in windows:
        if window.end.index not in slots[first:]:
            slots.append(window.end.index)
        found.append(replace(window, end=Slot(first + slots[first:].index(window.end.index), window.end.type)))
    return tuple(found)
