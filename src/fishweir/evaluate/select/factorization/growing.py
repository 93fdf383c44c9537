"""Expand and Reduce: the two changes that VCA makes to its tree (RoSeS, algorithm 1, lines 12 to 26).

In: a tree that starts as the naive plan, a candidate and the children of `true` it subsumes. Out: the
same tree, changed. VCA with the subsumption graph and VCA with VCB share it; they differ in how they
find the next candidate only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fishweir.evaluate.select.factorization.cost import TRUE, Predicate, Selectivity, benefit, benefit_of_existing


class GrowingTree:
    """Parent and children by conjunction; the children of `true` are the border."""

    def __init__(self, required: Iterable[Predicate], selectivity: Selectivity) -> None:
        self.required = frozenset(required)
        self.selectivity = selectivity
        self.parents: dict[Predicate, Predicate] = dict.fromkeys(self.required, TRUE)
        self.children: dict[Predicate, set[Predicate]] = {TRUE: set(self.required)}

    def gain(self, candidate: Predicate, factorized: Collection[Predicate]) -> float:
        """What the plan gains if the candidate takes over these children of `true` (itself not among them)."""
        inner = self.selectivity(candidate)
        if candidate in self.children[TRUE]:
            return benefit_of_existing(len(factorized), 1.0, inner)
        return benefit(len(factorized), 1.0, inner)

    def expand(self, candidate: Predicate, factorized: Iterable[Predicate]) -> None:
        """The candidate becomes a child of `true` and takes over the factorized ones."""
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
        """Leaves out a node that the candidate above it has made useless; its children go to the candidate."""
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
