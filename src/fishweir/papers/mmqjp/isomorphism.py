"""Canonical forms of small join graphs: equal if and only if the graphs are isomorphic.

In: two trees and the value joins between them, without names. Out: the same graph with its nodes in canonical order,
and that order. Colours are refined by neighbours until the partition is stable. If several nodes have the same colour,
each is tried as the first one, and the least graph is taken. Nodes whose first descent leads to the same graph are
images of each other, and only one of them is tried: a matching of twelve leaves, which has 12! symmetries, is therefore
cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from fishweir.algebra.nodes import MIRRORED, Operator

Colors = list[int]


@dataclass(frozen=True, slots=True, order=True)
class Structure:
    """Nodes are numbers, those of the left tree first; `parents` are nodes or -1; `marked` are the output nodes."""

    parents: tuple[int, ...]
    lefts: int
    edges: tuple[tuple[int, Operator, int], ...]
    marked: tuple[int, ...]


@lru_cache(maxsize=100_000)
def canonical(structure: Structure) -> tuple[Structure, tuple[int, ...]]:
    """The canonical form, and the node of the given structure for each of its nodes."""
    order = _descend(_Graph(structure), _start(structure))
    form, better = _least(_relabelled(structure, order))
    return form, tuple(order[i] for i in better)


@lru_cache(maxsize=100_000)
def _least(structure: Structure) -> tuple[Structure, tuple[int, ...]]:
    return _search(_Graph(structure), _start(structure))


class _Graph:
    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.neighbours: list[list[tuple[str, int]]] = [[] for _ in structure.parents]
        for node, parent in enumerate(structure.parents):
            if parent >= 0:
                self.neighbours[node].append(("above", parent))
                self.neighbours[parent].append(("below", node))
        for left, op, right in structure.edges:
            self.neighbours[left].append((op, right))
            self.neighbours[right].append((MIRRORED[op], left))

    def refine(self, colors: Colors) -> Colors:
        """Splits colours by the colours of the neighbours until nothing changes."""
        while True:
            keys = [
                (color, sorted((label, colors[other]) for label, other in self.neighbours[node]))
                for node, color in enumerate(colors)
            ]
            new = _ranks(keys)
            if len(set(new)) == len(set(colors)):
                return new
            colors = new

    def first(self, colors: Colors, node: int) -> Colors:
        """The colours when `node` comes before all others of its colour."""
        apart = [2 * color + 1 for color in colors]
        apart[node] -= 1
        return self.refine(apart)


def _ranks(keys: list[tuple[int, list[tuple[str, int]]]]) -> Colors:
    distinct: list[tuple[int, list[tuple[str, int]]]] = []
    for key in sorted(keys):
        if not distinct or distinct[-1] != key:
            distinct.append(key)
    return [distinct.index(key) for key in keys]


def _start(structure: Structure) -> Colors:
    """Initial colours by side, depth and mark: the left root comes first, parents before their children."""
    depths: list[int] = []
    for parent in structure.parents:
        depths.append(0 if parent < 0 else depths[parent] + 1)
    kinds = [(node >= structure.lefts, depth, node not in structure.marked) for node, depth in enumerate(depths)]
    ranks = {kind: i for i, kind in enumerate(sorted(set(kinds)))}
    return _Graph(structure).refine([ranks[kind] for kind in kinds])


def _first_cell(colors: Colors) -> list[int]:
    """The nodes of the least colour that several nodes have."""
    for color in range(len(colors)):
        cell = [node for node, own in enumerate(colors) if own == color]
        if len(cell) > 1:
            return cell
    return []


def _descend(graph: _Graph, colors: Colors) -> tuple[int, ...]:
    """One order, in which the first node of each cell comes first."""
    while cell := _first_cell(colors):
        colors = graph.first(colors, cell[0])
    return tuple(sorted(range(len(colors)), key=colors.__getitem__))


def _search(graph: _Graph, colors: Colors) -> tuple[Structure, tuple[int, ...]]:
    cell = _first_cell(colors)
    if not cell:
        order = tuple(sorted(range(len(colors)), key=colors.__getitem__))
        return _relabelled(graph.structure, order), order
    tried: dict[Structure, Colors] = {}
    for node in cell:
        below = graph.first(colors, node)
        tried.setdefault(_relabelled(graph.structure, _descend(graph, below)), below)
    return min((_search(graph, below) for below in tried.values()), key=lambda found: found[0])


def _relabelled(structure: Structure, order: tuple[int, ...]) -> Structure:
    """The structure with the node order[i] as node i."""
    number = {old: new for new, old in enumerate(order)}
    number[-1] = -1
    return Structure(
        tuple(number[structure.parents[old]] for old in order),
        structure.lefts,
        tuple(sorted((number[left], op, number[right]) for left, op, right in structure.edges)),
        tuple(sorted(number[node] for node in structure.marked)),
    )
