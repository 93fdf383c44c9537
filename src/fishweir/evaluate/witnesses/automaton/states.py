"""The lazy deterministic automaton over the trie: one state for each set of trie nodes that occurs in documents.

In: the trie and tags. Out: states. `state[tag]` is the state of a child with that tag, or None if no path can match in
the child's subtree. It is computed on first use and is a dictionary lookup afterwards. Shared: a state serves all
elements, of all documents, that are at the same position with respect to all paths. There are at most as many states as
label paths in the data.

A state consists of the trie nodes whose paths end at the element (`nodes`) and those above it that have descendant
edges (`open`). New edges of the trie drop only the transitions that they can change. If paths are suspended (views.py),
the states of that view are separate and are dropped when the trie changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.witnesses.automaton.trie import KINDS, ROOT, Kind, NewEdge, Trie
from fishweir.evaluate.witnesses.automaton.views import View

Nodes = NDArray[np.int32]
NO_NODES = np.empty(0, np.int32)

PLACE, ABOVE = 32, 1 << 20
"""A row's state and position form one number. Positions above a document are negative, so all are shifted."""


class Open:
    """Nodes with descendant edges at or above an element, and the nodes that a tag leads to from them."""

    __slots__ = ("above", "added", "found", "nodes")

    def __init__(self, nodes: Nodes, above: Open | None, added: list[int]) -> None:
        self.nodes, self.above, self.added = nodes, above, added
        self.found: dict[tuple[bool, str], frozenset[int]] = {}

    def targets(self, trie: Trie, attribute: bool, tag: str) -> frozenset[int]:
        found = self.found.get((attribute, tag))
        if found is None:
            inherited = self.above.targets(trie, attribute, tag) if self.above else frozenset()
            own = reach(trie, Kind(True, attribute), self.added, tag)
            found = self.found[attribute, tag] = inherited | own if own else inherited
        return found


class Attributes(dict[str, "State | None"]):
    """Maps the name of an attribute to its state."""

    __slots__ = ("owner",)

    def __init__(self, owner: State) -> None:
        self.owner = owner

    def __missing__(self, name: str) -> State | None:
        self[name] = state = self.owner.states.step(self.owner, True, name)
        return state


class State(dict[str, "State | None"]):
    """Maps a tag to a state. `attributes` is None if no path reads any. `closed`: no path continues below."""

    __slots__ = (
        "attributes",
        "closed",
        "id",
        "matched",
        "nodes",
        "open",
        "place",
        "states",
        "valued",
        "view",
    )

    def __init__(self, states: States, id: int, nodes: Nodes, open_: Open, view: View | None) -> None:
        self.states, self.id, self.nodes, self.open, self.view = states, id, nodes, open_, view
        self.place = (id << PLACE) + ABOVE
        self.matched = bool(len(nodes))
        self.update_flags()

    def __missing__(self, tag: str) -> State | None:
        self[tag] = state = self.states.step(self, False, tag)
        return state

    def __hash__(self) -> int:  # type: ignore[override]
        return self.id

    def __eq__(self, other: object) -> bool:
        return self is other

    def update_flags(self) -> None:
        """Updates the flags from the trie."""
        own, open_ = self.nodes.tolist(), self.open.nodes.tolist()
        leaving = [(open_ if kind.deep else own, self.states.leaving(kind, self.view)) for kind in KINDS]
        child, key, deep, deep_key = (any(node in further for node in nodes) for nodes, further in leaving)
        self.closed = not (child or deep or deep_key)  # attributes below are reached through elements
        self.attributes = Attributes(self) if key or deep_key else None
        self.valued = not self.states.valued.keys().isdisjoint(self.nodes.tolist())


class NodesOfStates(NamedTuple):
    """State s ends at the nodes from `starts[s]` on. `by_node` and `states` have the same pairs, sorted by node."""

    starts: NDArray[np.int64]
    nodes: NDArray[np.int64]
    by_node: NDArray[np.int64]
    states: NDArray[np.int64]


class States:
    """All states so far. `valued` maps the nodes whose values are read to the number of readers."""

    def __init__(self, trie: Trie) -> None:
        self.trie = trie
        self.valued: dict[int, int] = {}
        self.newly_valued: set[int] = set()
        self.entered = self._unfolded = self._node_tokens = np.zeros(0, np.int64)
        self.clear()

    def clear(self) -> None:
        """Drops all states. Their counts are kept by trie node."""
        self.fold()
        self.entered = self._unfolded
        self.all: list[State | None] = []
        self._by_key: dict[tuple[bytes, int, View | None], State] = {}
        self._opens: dict[bytes, Open] = {}
        self._nothing = self._open_of([], None)
        self._starts: dict[View | None, State] = {}
        self._ended: tuple[tuple[int, int], NodesOfStates] | None = None
        self.killed = self.trie.released = 0
        self.trie.new_edges.clear()
        self.newly_valued.clear()

    @property
    def start(self) -> State:
        return self.start_of(None)

    def start_of(self, view: View | None) -> State:
        """The start state of documents that are walked with a view."""
        if view not in self._starts:
            start = self._state({ROOT}, self._nothing, view)
            assert start is not None
            self._starts[view] = start
        return self._starts[view]

    def restarted(self, state: State | None, view: View | None = None) -> State:
        """The state joined with the start state, because paths may also begin below this element."""
        nodes = {ROOT} if state is None else {ROOT, *state.nodes.tolist()}
        joined = self._state(nodes, self.start_of(view).open if state is None else state.open, view)
        assert joined is not None
        return joined

    def leaving(self, kind: Kind, view: View | None) -> Collection[int]:
        """The nodes that have outgoing edges of a kind."""
        return self.trie.edges[kind] if view is None else view.leaving[kind]

    def step(self, state: State, attribute: bool, tag: str) -> State | None:
        if not isinstance(tag, str):
            return None  # a comment, a processing instruction or an entity
        found = reach(self.trie, Kind(False, attribute), state.nodes.tolist(), tag)
        found |= state.open.targets(self.trie, attribute, tag)
        if state.view is not None:
            found &= state.view.nodes
        return self._state(found, self._nothing if attribute else state.open, state.view)

    def _state(self, found: set[int], above: Open, view: View | None) -> State | None:
        opened = [n for n in found if any(n in self.leaving(kind, view) for kind in KINDS if kind.deep)]
        below = self._open_of(opened, above) if opened else above
        if not found and not len(below.nodes):
            return None
        nodes = np.fromiter(sorted(found), np.int32, len(found))
        key = (nodes.tobytes(), id(below), view)
        state = self._by_key.get(key)
        if state is None:
            state = self._by_key[key] = State(self, len(self.all), nodes, below, view)
            self.all.append(state)
        return state

    def _open_of(self, opened: list[int], above: Open | None) -> Open:
        inherited = above.nodes.tolist() if above else []
        added = sorted(set(opened).difference(inherited))
        if above and not added:
            return above
        nodes = np.array(sorted([*inherited, *added]), np.int32)
        return self._opens.setdefault(nodes.tobytes(), Open(nodes, above, added))

    def refresh(self) -> bool:
        """Updates the states for new edges of the trie and newly read values. Returns whether anything changed."""
        edges, valued = self.trie.new_edges, self.newly_valued
        if self.killed + self.trie.released + len(edges) > 1000 + (self.trie.live + len(self.all)) // 4:
            self.clear()  # renewing one by one would cost more, and dead states accumulate
        elif (edges or valued) and self.all:
            self._renew(edges, valued)
        changed = bool(edges or valued) or not self.all
        edges.clear()
        valued.clear()
        return changed

    def drop_views(self) -> None:
        """Drops the states of all views, because the paths have changed."""
        self._kill({state for state in self._by_key.values() if state.view is not None})

    def _renew(self, edges: list[NewEdge], valued: set[int]) -> None:
        by_node: dict[int, list[NewEdge]] = {}
        for edge in edges:
            by_node.setdefault(edge.node, []).append(edge)
        touched = np.zeros(len(self.trie), np.bool_)
        touched[[*by_node, *valued]] = True
        stale_open = {}
        for open_ in self._opens.values():
            hit = open_.nodes[touched[open_.nodes]].tolist()
            stale = {edge.test for node in hit for edge in by_node.get(node, ()) if edge.kind.deep}
            if stale:
                stale_open[id(open_)] = stale
                for attribute, tag in [k for k in open_.found if not stale.isdisjoint(self.trie.tests_of(*k))]:
                    del open_.found[attribute, tag]
        killed = {
            s for s in self._by_key.values() if self._change(s, touched, by_node, stale_open.get(id(s.open), set()))
        }
        self._kill(killed)

    def _change(
        self, state: State, touched: NDArray[np.bool_], by_node: dict[int, list[NewEdge]], stale: set[int]
    ) -> bool:
        """Drops the transitions that new edges change. Returns True if the state itself is no longer valid."""
        hit = state.nodes[touched[state.nodes]].tolist()
        if not hit and not stale:
            return False
        new = [edge for node in hit for edge in by_node.get(node, ())]
        if any(edge.opens for edge in new):
            return True
        stale = stale.union(edge.test for edge in new)
        for tag in [t for t in state if isinstance(t, str) and not stale.isdisjoint(self.trie.tests_of(False, t))]:
            del state[tag]
        state.update_flags()
        return False

    def _kill(self, killed: set[State]) -> None:
        if not killed:
            return
        self.fold()
        self._by_key = {key: s for key, s in self._by_key.items() if s not in killed}
        self.killed += len(killed)
        for state in killed:
            self.all[state.id] = None
        for state in self._by_key.values():
            for tag in [t for t, below in state.items() if below in killed]:
                del state[tag]
        self._starts = {view: state for view, state in self._starts.items() if state not in killed}

    def ended(self) -> NodesOfStates:
        """The nodes of all states, rebuilt if the states have changed."""
        now = (len(self.all), self.killed)
        if self._ended is None or self._ended[0] != now:
            lists = [state.nodes if state is not None else NO_NODES for state in self.all]
            starts = np.cumsum([0, *map(len, lists)])
            nodes = np.concatenate([NO_NODES, *lists]).astype(np.int64)
            order = np.argsort(nodes, kind="stable")
            states = np.repeat(np.arange(len(lists)), np.diff(starts))
            self._ended = now, NodesOfStates(starts, nodes, nodes[order], states[order])
        return self._ended[1]

    def count(self, states: NDArray[np.int64]) -> None:
        """Counts the states that a batch entered."""
        counted = np.bincount(states, minlength=len(self.all))
        self.entered = _grown(self.entered, len(counted)) + counted
        self._unfolded = _grown(self._unfolded, len(counted)) + counted

    def fold(self) -> None:
        """Moves the counts of the states to their trie nodes."""
        if not len(self._unfolded):
            return
        self._node_tokens = _grown(self._node_tokens, len(self.trie))
        for i in np.flatnonzero(self._unfolded).tolist():
            state = self.all[i]
            assert state is not None
            self._node_tokens[state.nodes] += self._unfolded[i]
        self._unfolded = np.zeros(0, np.int64)

    def tokens(self, node: int) -> int:
        """The number of elements or attributes that have reached a trie node."""
        self.fold()
        return int(self._node_tokens[node]) if node < len(self._node_tokens) else 0


def reach(trie: Trie, kind: Kind, nodes: Iterable[int], tag: str) -> set[int]:
    """The nodes that a tag leads to from some nodes by edges of one kind."""
    edges, tests = trie.edges[kind], trie.tests_of(kind.attribute, tag)
    if not tests:
        return set()
    leaving = [found for node in nodes if (found := edges.get(node))]
    return {found[test] for found in leaving for test in tests if test in found}


def _grown(counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return np.append(counts, np.zeros(size - len(counts), np.int64))
