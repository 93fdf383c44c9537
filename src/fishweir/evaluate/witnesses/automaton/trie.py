"""The nondeterministic automaton: a trie of steps, in which all paths share equal prefixes.

A node represents a prefix of steps. Its only incoming edge is a child or a descendant edge with a name test. Nodes are
reference-counted by paths. Edges are stored by kind, so that a state directly finds those that an element or an
attribute can take. This is YFilter's NFA; the self-loop of a `//` is the set of nodes with descendant edges that a
state passes on (see states.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fishweir.evaluate.witnesses.automaton.pattern import NameTest, PathStep

ROOT = 0
"""The document itself, above its element."""


class Kind(NamedTuple):
    deep: bool
    attribute: bool


KINDS = tuple(Kind(deep, attribute) for deep in (False, True) for attribute in (False, True))


class NewEdge(NamedTuple):
    """An edge that the existing states do not know yet. `opens`: it is the first descendant edge of its node."""

    node: int
    kind: Kind
    test: int
    opens: bool


class Trie:
    """Nodes are numbers that are never reused. `new_edges` are the edges added since the states were last updated."""

    def __init__(self) -> None:
        self.edges: dict[Kind, dict[int, dict[int, int]]] = {kind: {} for kind in KINDS}
        self.steps: list[tuple[int, Kind, int]] = [(-1, KINDS[0], -1)]
        self.uses = [1]
        self.live, self.released = 1, 0
        self.new_edges: list[NewEdge] = []
        self._tests: dict[tuple[bool, NameTest], int] = {}
        self._tests_of: dict[tuple[bool, str], tuple[int, ...]] = {}

    def __len__(self) -> int:
        """The number of nodes ever created."""
        return len(self.steps)

    def acquire(self, node: int, steps: Sequence[PathStep]) -> list[int]:
        """The nodes of some steps below a node. Increments their use counts."""
        nodes = []
        for step in steps:
            node = self._below(node, Kind(step.deep, step.attribute), self._test(step.attribute, step.test))
            self.uses[node] += 1
            nodes.append(node)
        return nodes

    def release(self, nodes: Sequence[int]) -> None:
        """Decrements the use counts of nodes, and removes those that are no longer used."""
        for node in reversed(nodes):
            self.uses[node] -= 1
            if not self.uses[node]:
                above, kind, test = self.steps[node]
                edges = self.edges[kind][above]
                del edges[test]
                if not edges:
                    del self.edges[kind][above]
                self.live, self.released = self.live - 1, self.released + 1

    def is_deep(self, node: int) -> bool:
        """Whether the node has an outgoing descendant edge."""
        return node in self.edges[Kind(True, False)] or node in self.edges[Kind(True, True)]

    def tests_of(self, attribute: bool, tag: str) -> tuple[int, ...]:
        """The tests in use that a tag passes, at most four."""
        tests = self._tests_of.get((attribute, tag))
        if tests is None:
            space, _, local = tag[1:].rpartition("}") if tag[0] == "{" else ("", "", tag)
            passed = [NameTest(name, uri) for name in (local, None) for uri in (space, None)]
            found = (self._tests.get((attribute, test)) for test in passed)
            tests = self._tests_of[attribute, tag] = tuple(t for t in found if t is not None)
        return tests

    def _below(self, node: int, kind: Kind, test: int) -> int:
        below = self.edges[kind].get(node, {}).get(test)
        if below is None:
            below = len(self.steps)
            self.new_edges.append(NewEdge(node, kind, test, kind.deep and not self.is_deep(node)))
            self.edges[kind].setdefault(node, {})[test] = below
            self.steps.append((node, kind, test))
            self.uses.append(0)
            self.live += 1
        return below

    def _test(self, attribute: bool, test: NameTest) -> int:
        number = self._tests.get((attribute, test))
        if number is None:
            number = self._tests[attribute, test] = len(self._tests)
            self._tests_of.clear()
        return number
