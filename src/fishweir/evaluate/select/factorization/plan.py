"""A filter plan: a tree of conjunctions rooted at `true` (RoSeS, section 4.3).

In: a parent for each conjunction, and the predicates by number. Out: parallel lists over nodes (node 0 is `true`), so
that a plan can be stored directly in arrays (see layout.py). An edge checks only the atoms that the child has in
addition to its parent.

Predicates are added and removed individually, without moving the others: a new predicate is attached below the deepest
node that subsumes it. This is correct because any tree in which each node contains its parent's atoms is a valid plan.
It only costs more than a new plan; replanning takes care of that.

Shared: equal predicates are one node with several numbers in `ends`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from fishweir.evaluate.select.factorization.cost import TRUE, Predicate, Selectivity

ROOT = 0
REMOVED = -2


class FilterPlan:
    """Parent, atoms, children and ends by node. The number of a removed node is kept until it is reused."""

    def __init__(self) -> None:
        self.parent: list[int] = [-1]
        self.atoms: list[Predicate] = [TRUE]
        self.children: list[set[int]] = [set()]
        self.ends: list[set[int]] = [set()]
        self.node_of: dict[Predicate, int] = {TRUE: ROOT}
        self.end_of: dict[int, int] = {}
        self._access: list[int] = [-1]
        self._by_access: defaultdict[int, set[int]] = defaultdict(set)
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.node_of)

    def nodes(self) -> Iterator[int]:
        """All nodes except the removed ones, including the root."""
        return (node for node, parent in enumerate(self.parent) if parent != REMOVED)

    def extra(self, node: int) -> Predicate:
        """The atoms checked on the edge from the node's parent."""
        return self.atoms[node] if node == ROOT else self.atoms[node] - self.atoms[self.parent[node]]

    def add(self, number: int, predicate: Predicate, selectivity: Selectivity | None = None) -> int:
        """Adds a predicate under a new number. Returns the node at which it ends."""
        if number in self.end_of:
            raise ValueError(f"predicate {number} is already in the plan")
        node = self.node_of.get(predicate)
        if node is None:
            node = self.hang(predicate, self.deepest_subsuming(predicate, selectivity))
        self.ends[node].add(number)
        self.end_of[number] = node
        return node

    def remove(self, number: int) -> None:
        """Removes a predicate, and the nodes that are no longer needed."""
        if number not in self.end_of:
            raise ValueError(f"predicate {number} is not in the plan")
        node = self.end_of.pop(number)
        self.ends[node].discard(number)
        while node != ROOT and not self.ends[node] and len(self.children[node]) < 2:
            parent = self.parent[node]
            for child in self.children[node]:
                self.parent[child] = parent
                self.children[parent].add(child)
            self._drop(node)
            node = parent

    def deepest_subsuming(self, predicate: Predicate, selectivity: Selectivity | None = None) -> int:
        """The node with the most atoms among those contained in the predicate; the lower number on a tie.

        With a selectivity function, it is the most selective node, which is the cheapest parent. Each node is listed
        under one of its atoms, the one with the fewest nodes at that time, so only the nodes of rare atoms of this
        predicate are checked.
        """
        found = [node for atom in predicate for node in self._by_access.get(atom, ()) if self.atoms[node] < predicate]
        if selectivity is None:
            return min(found, key=lambda n: (-len(self.atoms[n]), n), default=ROOT)
        return min(found, key=lambda n: (selectivity(self.atoms[n]), -len(self.atoms[n]), n), default=ROOT)

    def hang(self, predicate: Predicate, parent: int) -> int:
        """Adds a node below `parent`, at which no predicate ends yet. Returns the node."""
        if self._free:
            node = self._free.pop()
            self.parent[node], self.atoms[node] = parent, predicate
        else:
            node = len(self.parent)
            self.parent.append(parent)
            self.atoms.append(predicate)
            self.children.append(set())
            self.ends.append(set())
            self._access.append(-1)
        self.children[parent].add(node)
        self.node_of[predicate] = node
        access = min(predicate, key=lambda a: (len(self._by_access[a]), a))
        self._access[node] = access
        self._by_access[access].add(node)
        return node

    def _drop(self, node: int) -> None:
        self.children[self.parent[node]].discard(node)
        self._by_access[self._access[node]].discard(node)
        del self.node_of[self.atoms[node]]
        self.parent[node], self.atoms[node], self.children[node] = REMOVED, TRUE, set()
        self._free.append(node)

    def check(self, predicates: Mapping[int, Predicate] | Sequence[Predicate]) -> None:
        """Raises ValueError unless the plan is a tree that covers exactly the given predicates."""
        given = dict(predicates) if isinstance(predicates, Mapping) else dict(enumerate(predicates))
        for node in self.nodes():
            parent = self.parent[node]
            if node != ROOT and (parent < 0 or not self.atoms[parent] < self.atoms[node]):
                raise ValueError(f"node {node} does not contain the atoms of its parent {parent}")
            if any(self.parent[child] != node for child in self.children[node]):
                raise ValueError(f"a child of node {node} has another parent")
            if node != ROOT and (node not in self.children[parent] or self.node_of.get(self.atoms[node]) != node):
                raise ValueError(f"node {node} cannot be reached")
            if node != ROOT and not self.ends[node] and not self.children[node]:
                raise ValueError(f"node {node} serves no predicate")
        found = {number: self.atoms[node] for node in self.nodes() for number in self.ends[node]}
        if found != given or set(self.end_of) != set(given):
            wrong = {n for n in given.keys() | found.keys() if found.get(n) != given.get(n)}
            raise ValueError(f"predicates that the plan does not represent: {sorted(wrong)[:10]}")


def plan_of(parents: Mapping[Predicate, Predicate], predicates: Iterable[Predicate]) -> FilterPlan:
    """A plan from the parent of each conjunction. Predicates are numbered in the given order."""
    plan = FilterPlan()
    for conjunction in sorted(parents, key=len):
        plan.hang(conjunction, plan.node_of[parents[conjunction]])
    for number, predicate in enumerate(predicates):
        plan.add(number, predicate)
    return plan


def evaluate(plan: FilterPlan, atoms_true: AbstractSet[int]) -> set[int]:
    """The numbers of the predicates that hold, found by walking down from the root; for tests."""
    found: set[int] = set()
    reached = [ROOT]
    while reached:
        node = reached.pop()
        found |= plan.ends[node]
        reached += [child for child in plan.children[node] if plan.extra(child) <= atoms_true]
    return found
