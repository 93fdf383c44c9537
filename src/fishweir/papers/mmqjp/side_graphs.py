"""Converts a join that the engine has normalised to a join graph, and assigns it to one of MMQJP's templates.

In: a JoinTemplate (algebra/joins.py). Out: its QueryTemplate, the variable at each node, and the columns of RoutT that
are the nodes of a result. A branch without an output is part of the definitions of the nodes above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.normal import Template
from fishweir.papers.mmqjp.join_graph import GraphNode, JoinGraph, Part, Variable, to_minor
from fishweir.papers.mmqjp.templates import QueryTemplate, reach_of, to_template


@dataclass(frozen=True, slots=True)
class PlacedTemplate:
    template: QueryTemplate
    variables: tuple[Variable, ...]
    outputs: tuple[str, ...]
    """The column of each node of a result: those of the left side, then those of the right."""


@lru_cache(maxsize=100_000)
def place_template(join: JoinTemplate) -> PlacedTemplate:
    minor = to_minor(JoinGraph(_tree(join.left), _tree(join.right), join.edges))
    template, order = to_template(minor, reach_of(join))
    nodes = (*minor.left, *minor.right)
    columns = {(int(at >= len(minor.left)), nodes[at].names[0]): f"node{i + 1}" for i, at in enumerate(order)}
    outputs = tuple(columns[side, str(node)] for side, own in enumerate(join.sides) for node in own.outputs)
    return PlacedTemplate(template, tuple(nodes[at].variable for at in order), outputs)


def _tree(side: Template) -> tuple[GraphNode, ...]:
    """One graph node for each node of the side, named by its number."""
    children: dict[int, list[int]] = {}
    for node, own in enumerate(side.nodes):
        children.setdefault(own.parent, []).append(node)

    def wanted(node: int) -> bool:
        return node in side.outputs or any(wanted(child) for child in children.get(node, ()))

    def part(node: int, branches: list[int]) -> Part:
        below = sorted({part(branch, children.get(branch, [])) for branch in branches}, key=str)
        return Part(side.nodes[node].step, (), tuple(below))

    parts = [part(n, [c for c in children.get(n, []) if not wanted(c)]) for n in range(len(side.nodes))]
    return tuple(
        GraphNode(
            own.parent,
            Variable(side.source, tuple(parts[n] for n in side.chain(node))),
            (str(node),),
            node in side.outputs,
        )
        for node, own in enumerate(side.nodes)
    )
