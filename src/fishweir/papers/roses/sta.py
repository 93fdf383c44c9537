"""STA, the general Steiner tree approximation on directed acyclic graphs (RoSeS, appendix A, algorithm 2).

In: the predicates of one source and a selectivity function. Out: a filter plan. From a root, all trees over one
successor that cover 1, 2, ... k of the terminals are built recursively. The tree of least density (weight per covered
terminal) is taken, until all k are covered. The algorithm is exhaustive: it is for small inputs, as the reference with
which VCA's costs are compared.

Shared: a sub-tree depends only on its root, the terminals still missing below it and their number, so each is built
once. The union of the trees taken may reach a node twice; the node keeps its cheapest parent. Ties: the first found,
successors from the most selective on, fewer terminals first.
"""

from __future__ import annotations

from collections.abc import Sequence

from fishweir.evaluate.select.factorization.cost import TRUE, Predicate, Selectivity
from fishweir.evaluate.select.factorization.plan import FilterPlan, plan_of
from fishweir.papers.roses.subsumption import SubsumptionGraph, subsumption_graph

Edge = tuple[Predicate, Predicate]
Edges = frozenset[Edge]


def sta(predicates: Sequence[Predicate], selectivity: Selectivity) -> FilterPlan:
    graph = subsumption_graph(predicates, selectivity)
    edges = SteinerTrees(graph).tree(TRUE, graph.required, len(graph.required))
    return plan_of(cheapest_parents(graph, edges), predicates)


class SteinerTrees:
    """The trees of one graph, cached by (root, terminals, k)."""

    def __init__(self, graph: SubsumptionGraph) -> None:
        self.weight = graph.weight
        self.successors = graph.subsumed
        self.terminals = {p: graph.required & {p, *graph.subsumed[p]} for p in graph.nodes}
        self.known: dict[tuple[Predicate, frozenset[Predicate], int], tuple[Edges, float]] = {}

    def tree(self, root: Predicate, wanted: frozenset[Predicate], k: int) -> Edges:
        """A tree below the root that covers k of the wanted terminals, including the root if it is one."""
        return self._tree(root, wanted, k)[0]

    def _tree(self, root: Predicate, wanted: frozenset[Predicate], k: int) -> tuple[Edges, float]:
        key = (root, wanted, k)
        if key not in self.known:
            self.known[key] = self._build(root, wanted - {root}, k - (root in wanted))
        return self.known[key]

    def _build(self, root: Predicate, wanted: frozenset[Predicate], k: int) -> tuple[Edges, float]:
        edges: Edges = frozenset()
        while k > 0:
            best = self._least_dense(root, wanted, k)
            covered = wanted & {target for _, target in best}
            edges |= best
            wanted -= covered
            k -= len(covered)
        return edges, sum(self.weight[origin] for origin, _ in edges)

    def _least_dense(self, root: Predicate, wanted: frozenset[Predicate], k: int) -> Edges:
        best: tuple[float, Predicate, Edges] | None = None
        for vertex in self.successors[root]:
            below = wanted & self.terminals[vertex]
            for some in range(1, min(k, len(below)) + 1):
                edges, weight = self._tree(vertex, below, some)
                density = (weight + self.weight[root]) / some
                if best is None or density < best[0]:
                    best = density, vertex, edges
        assert best is not None, "there are at least k terminals below the root"
        return best[2] | {(root, best[1])}


def cheapest_parents(graph: SubsumptionGraph, edges: Edges) -> dict[Predicate, Predicate]:
    """The most selective parent of each node, without the nodes that no longer lead to a terminal."""
    parents: dict[Predicate, Predicate] = {}
    for origin, target in edges:
        if target not in parents or graph.rank[origin] < graph.rank[parents[target]]:
            parents[target] = origin
    for node in sorted(parents, key=len, reverse=True):
        if node not in graph.required and node not in parents.values():
            del parents[node]
    return parents
