"""Expand and Reduce: the two changes that VCA makes to its tree (RoSeS, algorithm 1, lines 12 to 26).

In: a tree that starts as the naive plan, a candidate, and the children of `true` that it subsumes. Out: the same tree,
modified. VCA with the subsumption graph and VCA with VCB share this code; they differ only in how they find the next
candidate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fishweir.evaluate.select.factorization.cost import TRUE, Predicate, Selectivity, benefit, benefit_of_existing


class GrowingTree:
    """Parent and children by conjunction. The children of `true` are the border."""

    def __init__(self, required: Iterable[Predicate], selectivity: Selectivity) -> None:
        self.required = frozenset(required)
        self.selectivity = selectivity
        self.parents: dict[Predicate, Predicate] = dict.fromkeys(self.required, TRUE)
        self.children: dict[Predicate, set[Predicate]] = {TRUE: set(self.required)}

    def gain(self, candidate: Predicate, factorized: Collection[Predicate]) -> float:
        """The gain of the plan if the candidate takes over these children of `true` (not including itself)."""
        inner = self.selectivity(candidate)
        if candidate in self.children[TRUE]:
            return benefit_of_existing(len(factorized), 1.0, inner)
        return benefit(len(factorized), 1.0, inner)

    def expand(self, candidate: Predicate, factorized: Iterable[Predicate]) -> None:
        """Makes the candidate a child of `true` that takes over the factorized nodes."""
        border = self.children[TRUE]
        border.add(candidate)
        self.parents[candidate] = TRUE
        below = self.children.setdefault(candidate, set())
        for fact in factorized:
            border.discard(fact)
            if not self.reduce(fact, candidate):
                self.parents[fact] = candidate
                below.add(fact)

    def reduce(self, fact: Predicate, candidate: Predicate) -> bool:
        """Removes a node that the candidate above it has made useless; its children move to the candidate. Returns
        whether it did."""
        if fact in self.required:
            return False
        children = self.children[fact]
        if benefit(len(children), self.selectivity(candidate), self.selectivity(fact)) >= 0:
            return False
        for child in children:
            self.parents[child] = candidate
        self.children[candidate] |= children
        del self.children[fact], self.parents[fact]
        return True
