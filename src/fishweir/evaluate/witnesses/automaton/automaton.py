"""The shared path automaton of a stream: it holds every distinct path once and walks each document once.

In: patterns, which can be added and removed between batches, and batches of parsed documents. Out: a Batch. Shared:
equal patterns have one path id, equal prefixes one trie node, and equal positions in documents one state. A step costs
one lookup, regardless of the number of paths (YFilter's shared NFA, run as a lazily built DFA). The automaton
corresponds to the XPath Evaluator of MMQJP section 3. Some paths may be suspended per document (views.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from fishweir.algebra.documents import Element
from fishweir.evaluate.witnesses.automaton.batch import Batch
from fishweir.evaluate.witnesses.automaton.compiled import CompiledPattern, compile_pattern
from fishweir.evaluate.witnesses.automaton.pattern import Pattern
from fishweir.evaluate.witnesses.automaton.rows import Rows
from fishweir.evaluate.witnesses.automaton.states import States
from fishweir.evaluate.witnesses.automaton.steps import Steps
from fishweir.evaluate.witnesses.automaton.trie import Trie
from fishweir.evaluate.witnesses.automaton.views import View, view_without
from fishweir.evaluate.witnesses.automaton.walk import Walk

NAMES = 1_000_000
"""Number of distinct names after which all names are dropped, because documents may keep introducing new ones."""


@dataclass(frozen=True, slots=True)
class Counters:
    """The size of the automaton and its counters. `entered` is by state, in order of first occurrence."""

    paths: int
    trie_nodes: int
    states: int
    transitions: int
    documents: int
    elements: int
    skipped: int
    entered: tuple[int, ...]


class PathAutomaton:
    """All paths of a stream."""

    def __init__(self) -> None:
        self.trie = Trie()
        self.states = States(self.trie)
        self.steps = Steps(self.states)
        self.paths: dict[int, CompiledPattern] = {}
        self._ids: dict[Pattern, int] = {}
        self._uses: dict[int, list[int]] = {}
        self._since: dict[int, int] = {}
        self._path_at = np.full(1024, -1, np.int32)
        self._anchors: dict[int, dict[str | None, dict[int, None]]] = {}
        self._views: dict[frozenset[int], View] = {}
        self._views_hold = True
        self._next = 0
        self._documents = self._elements = self._skipped = 0

    def add(self, pattern: Pattern, values: bool = False) -> int:
        """Adds a pattern. Returns its id, the same for equal patterns. `values`: the texts of its nodes are read."""
        path = self._ids.get(pattern)
        if path is None:
            path = self._ids[pattern] = self._next
            self._next += 1
            self._insert(path, compile_pattern(self.trie, pattern))
        uses = self._uses[path]
        uses[0] += 1
        if values:
            uses[1] += 1
            self._value(self.paths[path].trunk.last, 1)
        return path

    def remove(self, path: int, values: bool = False) -> None:
        """Undoes one `add` with the same `values`. The last call removes the path."""
        uses = self._uses[path]
        if values:
            uses[1] -= 1
            self._value(self.paths[path].trunk.last, -1)
        uses[0] -= 1
        if not uses[0]:
            self._delete(path)

    def _insert(self, path: int, compiled: CompiledPattern) -> None:
        self.paths[path], self._uses[path] = compiled, [0, 0]
        self._views_hold = False
        node = compiled.trunk.last
        if len(self.trie) > len(self._path_at):
            more = np.full(len(self.trie), -1, np.int32)
            self._path_at = np.append(self._path_at, more)
        seen = self.states.tokens(node) if self._documents else 0
        if seen:
            self._since[path] = seen
        for compared in compiled.compared:
            self._value(compared, 1)
        if compiled.conditional:
            anchor, text = compiled.anchor
            self._anchors.setdefault(anchor, {}).setdefault(text, {})[path] = None
            return
        self._path_at[node] = path

    def _delete(self, path: int) -> None:
        compiled = self.paths.pop(path)
        self._views_hold = False
        del self._ids[compiled.pattern], self._uses[path]
        self._since.pop(path, None)
        for compared in compiled.compared:
            self._value(compared, -1)
        if compiled.conditional:
            anchor, text = compiled.anchor
            del self._anchors[anchor][text][path]
            if not self._anchors[anchor][text]:
                del self._anchors[anchor][text]
            if not self._anchors[anchor]:
                del self._anchors[anchor]
        else:
            self._path_at[compiled.trunk.last] = -1
        self.trie.release(compiled.uses)

    def _value(self, node: int, change: int) -> None:
        """Updates the number of readers of the values at a trie node."""
        valued = self.states.valued
        if change > 0 and node not in valued:
            self.states.newly_valued.add(node)
        valued[node] = valued.get(node, 0) + change
        if not valued[node]:
            del valued[node]

    def start(self) -> Walk:
        """Starts a walk, to which documents are added one by one. `finish` turns it into a batch."""
        if len(self.steps.names.names) > NAMES:
            self.states.clear()
            self.steps = Steps(self.states)
        if self.states.refresh():
            self.steps.clear()
            self._views_hold = False
        if not self._views_hold:
            self.states.drop_views()
            self._views, self._views_hold = {}, True
        return Walk(self.steps)

    def view(self, suspended: Collection[int]) -> View | None:
        """The view for walking documents while some paths are suspended, for the walk that was started last."""
        wanted = frozenset(suspended)
        if wanted and wanted not in self._views:
            self._views[wanted] = view_without(self.trie, self.paths, wanted)
        return self._views.get(wanted)

    def finish(self, walk: Walk) -> Batch:
        walk.read()
        rows = Rows(walk, self.states.ended())
        self.states.count(rows.state_ids)
        self._documents += len(walk.documents)
        self._elements += walk.elements
        self._skipped += walk.skipped
        return Batch(rows, self.paths, self._path_at[rows.nodes], self._anchors, walk)

    def run(self, documents: Iterable[Element | bytes], contexts: Iterable[tuple[str, ...]] | None = None) -> Batch:
        """The batch of some documents, given as trees or ordinary bytes, numbered from 0."""
        walk = self.start()
        if contexts is None:
            for i, root in enumerate(documents):
                walk.add(i, root)
        else:
            for i, (root, context) in enumerate(zip(documents, contexts, strict=True)):
                walk.add(i, root, context)
        return self.finish(walk)

    def is_valued(self, path: int) -> bool:
        """Whether the texts of a path's nodes are read."""
        return self._uses[path][1] > 0

    def tokens(self, path: int) -> int:
        """The number of nodes that have reached a path's end since it was added, ignoring predicates."""
        return self.states.tokens(self.paths[path].trunk.last) - self._since.get(path, 0)

    def counters(self) -> Counters:
        states = [state for state in self.states.all if state is not None]
        return Counters(
            len(self.paths),
            self.trie.live,
            len(states),
            sum(map(len, states)),
            self._documents,
            self._elements,
            self._skipped,
            tuple(self.states.entered.tolist()),
        )
