"""VCA with the Very Clever Border (RoSeS, section 5, figure 6).

In: the predicates of one source and a selectivity function. Out: the filter plan that VCA returns, without a
subsumption graph and without searching for candidates again.

Each border node has a list of its candidates, most selective first, and its best candidate: the first one that still
subsumes two border nodes. The best candidates of all nodes form a heap. This is correct because a candidate never
subsumes more of the border than before: an expansion replaces two or more nodes by one that only has fewer atoms. A
list is therefore traversed once, forward. A candidate that does not pay will never pay, and a candidate is chosen at
most once.

Shared: the paper's sibling lists (by node, the nodes whose best candidate subsumes it) are stored once per best
candidate, as its `fans`, because all nodes below the candidate share them. Heap entries of candidates that have lost
their nodes stay in the heap and are skipped when they are popped.

Ties: more atoms first, then the smaller atom ids (cost.order_key). A candidate is identified by its rank in that order.
Long conjunctions: see the bound in candidates.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from fishweir.evaluate.select.factorization.candidates import WIDTH, find_candidates
from fishweir.evaluate.select.factorization.cost import Predicate, Selectivity
from fishweir.evaluate.select.factorization.growing import GrowingTree
from fishweir.evaluate.select.factorization.plan import FilterPlan, plan_of


def vcb(predicates: Sequence[Predicate], selectivity: Selectivity, width: int = WIDTH) -> FilterPlan:
    border = VeryCleverBorder(predicates, selectivity, width)
    while border.step() is not None:
        pass
    return plan_of(border.tree.parents, predicates)


class VeryCleverBorder:
    """Border nodes by number: first the distinct predicates, then the inserted conjunctions."""

    def __init__(self, predicates: Iterable[Predicate], selectivity: Selectivity, width: int = WIDTH) -> None:
        self.nodes = [p for p in dict.fromkeys(predicates) if p]
        self.number = {p: i for i, p in enumerate(self.nodes)}
        candidates = find_candidates(self.nodes, selectivity, width)
        self.sets, self.lists, self.below = candidates.sets, candidates.lists, candidates.below
        known = dict(zip(candidates.sets, candidates.selectivity, strict=True))
        self.tree = GrowingTree(self.nodes, known.__getitem__)
        self.in_border = [True] * len(self.nodes)
        self.count = [len(rows) for rows in self.below]
        self.at = [0] * len(self.nodes)
        self.fans: defaultdict[int, list[int]] = defaultdict(list)
        self.heap: list[int] = []
        for node in range(len(self.nodes)):
            self._find_best(node)

    def best_candidate(self, predicate: Predicate) -> Predicate | None:
        """The most selective conjunction that subsumes this border predicate and another one."""
        node = self.number[predicate]
        return self.sets[self.lists[node][self.at[node]]] if self.at[node] < len(self.lists[node]) else None

    def siblings(self, predicate: Predicate) -> set[Predicate]:
        """The border predicates whose best candidate subsumes this one, including itself."""
        ranks = self.lists[self.number[predicate]]
        return {self.nodes[n] for rank in ranks for n in self.fans.get(rank, ()) if self.in_border[n]}

    def step(self) -> Predicate | None:
        """Expands the tree by the best candidate that pays. Returns it, or None if there is none."""
        while self.heap:
            rank = heappop(self.heap)
            if self.count[rank] < 2:
                continue
            candidate = self.sets[rank]
            itself = self.number.get(candidate)
            members = [n for n in self.below[rank] if self.in_border[n] and n != itself]
            factorized = [self.nodes[n] for n in members]
            if self.tree.gain(candidate, factorized) > 0:
                self.tree.expand(candidate, factorized)
                self._replace(rank, members)
                return candidate
            self.count[rank] = 0
            self._notify(rank)
        return None

    def _replace(self, rank: int, members: list[int]) -> None:
        """Removes the members from the border, and adds the candidate if it is not in it yet."""
        new = None if self.sets[rank] in self.number else self._add(rank, members[0])
        alone = []
        for node in members:
            self.in_border[node] = False
            for other in self.lists[node][self.at[node] :]:
                self.count[other] -= 1
                if self.count[other] == 1:
                    alone.append(other)
        for other in alone:
            self._notify(other)
        if new is not None:
            self._find_best(new)

    def _add(self, rank: int, member: int) -> int:
        """Adds a border node and returns its number. Its candidates are those of any node below that subsume it."""
        candidate, node = self.sets[rank], len(self.nodes)
        ranks = self.lists[member][self.at[member] :]
        ranks = [other for other in ranks if self.count[other] > 1 and self.sets[other] <= candidate]
        for other in ranks:
            self.count[other] += 1
            self.below[other].append(node)
        self.nodes.append(candidate)
        self.number[candidate] = node
        self.lists.append(ranks)
        self.at.append(0)
        self.in_border.append(True)
        return node

    def _notify(self, rank: int) -> None:
        """Finds new best candidates for the nodes whose best candidate this was."""
        for node in self.fans.pop(rank, ()):
            if self.in_border[node]:
                self._find_best(node)

    def _find_best(self, node: int) -> None:
        ranks, at, count = self.lists[node], self.at[node], self.count
        while at < len(ranks) and count[ranks[at]] < 2:
            at += 1
        self.at[node] = at
        if at < len(ranks):
            fans = self.fans[ranks[at]]
            if not fans:
                heappush(self.heap, ranks[at])
            fans.append(node)
