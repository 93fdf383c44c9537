"""The predicate subsumption graph (RoSeS, section 4.3, figure 5).

In: the predicates of one source and a selectivity function. Out: all their sub-expressions down to `true`, with an edge
p -> q for each q whose atoms contain p's, including transitive edges. The weight of an edge is the selectivity of its
origin. Equal predicates share a node, so the graph is acyclic, and it is closed under subsumption. A predicate of n
atoms adds 2**n nodes: the graph is for STA and VCA on small inputs; VCB never builds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from fishweir.evaluate.select.factorization.cost import TRUE, Predicate, Selectivity, order_key

LONGEST = 12
"""Maximum number of atoms of a predicate: 12 atoms have 4,096 sub-expressions. Longer predicates are refused."""


@dataclass(frozen=True)
class SubsumptionGraph:
    """Nodes from the most selective to `true`, and their edges in both directions."""

    required: frozenset[Predicate]
    nodes: tuple[Predicate, ...]
    weight: dict[Predicate, float]
    rank: dict[Predicate, int]
    subsuming: dict[Predicate, tuple[Predicate, ...]]
    subsumed: dict[Predicate, tuple[Predicate, ...]]

    def edges(self) -> Iterator[tuple[Predicate, Predicate, float]]:
        for origin in self.nodes:
            for target in self.subsumed[origin]:
                yield origin, target, self.weight[origin]


def subsumption_graph(predicates: Iterable[Predicate], selectivity: Selectivity) -> SubsumptionGraph:
    required = frozenset(predicates) - {TRUE}
    longest = max(map(len, required), default=0)
    if longest > LONGEST:
        raise ValueError(f"a predicate of {longest} atoms has 2**{longest} sub-expressions; use vcb")
    every = {TRUE, *required}.union(*(proper_subsets(p) for p in required))
    nodes = tuple(sorted(every, key=lambda p: order_key(p, selectivity)))
    subsuming = {p: tuple(proper_subsets(p)) for p in nodes}
    subsumed: dict[Predicate, list[Predicate]] = {p: [] for p in nodes}
    for q in nodes:
        for p in subsuming[q]:
            subsumed[p].append(q)
    return SubsumptionGraph(
        required,
        nodes,
        {p: selectivity(p) for p in nodes},
        {p: i for i, p in enumerate(nodes)},
        subsuming,
        {p: tuple(below) for p, below in subsumed.items()},
    )


def proper_subsets(predicate: Predicate) -> Iterator[Predicate]:
    """All sub-expressions except the predicate itself, `true` first."""
    atoms = sorted(predicate)
    for size in range(len(atoms)):
        yield from map(frozenset, combinations(atoms, size))
