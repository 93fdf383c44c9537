"""SQL joins in normal form: a formula over the columns of several streams, as joins of templates.

In: a Shape with a formula, whose paths begin with a step that names the block they read. Out: one join for each
conjunction of the disjunctive normal form; a combination of tuples is one result, however many conjunctions hold.
Within a conjunction, comparisons between blocks are edges; everything else belongs to its side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

from fishweir.algebra.columns import column_template
from fishweir.algebra.formula import Atom, Clause, Literal, RelativePath, to_dnf
from fishweir.algebra.joins import JoinNormal, JoinTemplate, edge, in_order, placed_windows
from fishweir.algebra.nodes import MIRRORED, Operator, Shape, Step
from fishweir.algebra.normal import Template
from fishweir.algebra.predicates import SlotPlace

End = tuple[int, RelativePath]
"""Block and path of a column of a join."""


def in_block(block: int, path: RelativePath) -> RelativePath:
    """The path of a column, prefixed with a step that names the block it reads."""
    return (Step(str(block), "item"), *path)


def block_of(path: RelativePath) -> int:
    return int(path[0].name)


def is_between(atom: Atom) -> bool:
    """Whether an atom compares columns of two streams."""
    return isinstance(atom.right, tuple) and block_of(atom.path) != block_of(atom.right)


def to_column_joins(shape: Shape) -> tuple[JoinNormal, ...]:
    """The joins of a query. Joins with the same edges and conditions on the same sides are evaluated together, by lists
    of queries. If one query has several such joins, they are numbered (`turn`), so that the query occurs once in such a
    list."""
    assert shape.formula is not None, "SQL's joins have a formula"
    turns: Counter[Hashable] = Counter()
    found = []
    for clause in to_dnf(shape.formula):
        normal = _normal(shape, clause)
        edges = frozenset(_edge(x.atom) for x in clause if is_between(x.atom))
        together = edges, tuple(None if side.conditions else side for side in normal.template.sides)
        turn = turns[together]
        turns[together] += 1
        found.append(replace(normal, template=replace(normal.template, turn=turn)))
    return tuple(dict.fromkeys(found))


def _normal(shape: Shape, clause: Clause) -> JoinNormal:
    between = sorted({_edge(x.atom) for x in clause if is_between(x.atom)}, key=str)
    sides: list[Template] = []
    slots: list[SlotPlace] = []
    nodes: dict[End, int] = {}
    for side, block in enumerate(shape.blocks):
        ends = list(dict.fromkeys(path for one, _, two in between for own, path in (one, two) if own == side))
        template, places, found = column_template(block.source, own_clause(clause, side), ends)
        sides.append(template)
        slots += places
        nodes |= {(side, path): node for path, node in zip(ends, found, strict=True)}
    edges = {edge((one[0], nodes[one]), op, (two[0], nodes[two])) for one, op, two in between}
    windows = placed_windows(shape.windows, slots)
    return JoinNormal(JoinTemplate(tuple(sides), in_order(edges), windows, shape.strict), (), tuple(slots))


def _edge(atom: Atom) -> tuple[End, Operator, End]:
    assert isinstance(atom.right, tuple)
    op: Operator = atom.op  # type: ignore[assignment]
    one, two = ((block_of(path), path[1:]) for path in (atom.path, atom.right))
    return (one, op, two) if one[0] < two[0] else (two, MIRRORED[op], one)


def own_clause(clause: Clause, side: int) -> Clause:
    """The conditions on one side, with paths that do not name the block."""
    return frozenset(
        Literal(stripped(x.atom), x.positive)
        for x in clause
        if not is_between(x.atom) and block_of(x.atom.path) == side
    )


def stripped(atom: Atom) -> Atom:
    """The atom with paths that do not name the block."""
    right = atom.right[1:] if isinstance(atom.right, tuple) else atom.right
    return replace(atom, path=atom.path[1:], right=right)
