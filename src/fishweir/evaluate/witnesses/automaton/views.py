"""Views: the automaton without its suspended paths.

In: the paths of the automaton and the suspended ones. Out: a View with the trie nodes that the other paths use. The
states of a view contain only these nodes (states.py), so a subtree that only suspended paths need is skipped like one
that no path needs. This implements the disabling of transitions of utility-driven shedding, section 6.1; the walk
itself is unchanged. To walk a document with a view, the walk begins at the view's start state, so switching costs
nothing (6.3).

A suspended path that ends on the way of another path stays in the view, because finding it costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from fishweir.evaluate.witnesses.automaton.compiled import CompiledPattern
from fishweir.evaluate.witnesses.automaton.trie import KINDS, ROOT, Kind, Trie


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """The nodes that are still evaluated, and by kind of edge the nodes that have such an edge to one of them."""

    nodes: frozenset[int]
    leaving: Mapping[Kind, frozenset[int]]

    def evaluates(self, compiled: CompiledPattern) -> bool:
        """Whether the end of a path is still evaluated."""
        return compiled.trunk.last in self.nodes


def view_without(trie: Trie, paths: Mapping[int, CompiledPattern], suspended: Collection[int]) -> View:
    """The view of all paths except the suspended ones."""
    nodes = {ROOT}
    for path, compiled in paths.items():
        if path not in suspended:
            nodes.update(compiled.uses)
    leaving: dict[Kind, set[int]] = {kind: set() for kind in KINDS}
    for node in nodes - {ROOT}:
        above, kind, _ = trie.steps[node]
        leaving[kind].add(above)
    return View(frozenset(nodes), {kind: frozenset(found) for kind, found in leaving.items()})
