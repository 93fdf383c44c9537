"""Plain paths: queries that select the nodes of a path and nothing else, answered by the states of the walk.

In: tables of such queries, and a batch as the automaton found it. Out: Matches that refer to named sets. The state of a
node determines the queries that it satisfies. The queries of a state therefore form one set, created when the state
first occurs, and a node takes one row with the name of its set, regardless of the number of queries. A node has several
rows in the walk if queries select its attributes, or if it represents elements above a split. Its set is then the union
of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.matches import Matches, QuerySet
from fishweir.evaluate.select.constant_tables import Table
from fishweir.evaluate.witnesses.automaton.rows import Rows
from fishweir.evaluate.witnesses.shared_paths import SharedPaths

MOST = 100_000
"""Number of cached sets after which the cache is cleared."""


def is_plain(table: Table) -> bool:
    """For a twig, whether the output is the end of its only path and nothing is compared."""
    template = table.template
    return not template.constants and list(template.outputs) == list(template.leaves)


class PlainPaths:
    """Queries by the trie node at which their path ends."""

    def __init__(self, tables: Sequence[Table], shared: SharedPaths) -> None:
        paths, automaton = [table.template.path(table.template.outputs[0]) for table in tables], shared.automaton
        ends = [automaton.paths[shared.ids[path]].trunk.last for path in paths]
        nodes = np.repeat(np.array(ends, np.int64), [table.size for table in tables])
        order = np.argsort(nodes, kind="stable")
        self._nodes = nodes[order]
        self._numbers = np.concatenate([np.empty(0, np.int64), *(table.numbers for table in tables)])[order]
        self._sets: dict[bytes, QuerySet] = {}

    def match(self, rows: Rows) -> Matches | None:
        if not len(rows):
            return None
        positions = np.maximum(rows.positions, 0)  # attributes, and elements above a split, count as the element
        differ = (np.diff(rows.documents) != 0) | (np.diff(positions) != 0)
        firsts = np.flatnonzero(np.append(True, differ))
        kinds, examples = _kinds(rows.state, firsts)
        sets = [self._set(_nodes(rows, states)) for states in examples]
        held = np.flatnonzero(np.array([len(some.members) > 0 for some in sets])[kinds])
        if not len(held):
            return None
        none, of = np.zeros(len(held) + 1, np.int64), firsts[held]
        documents, nodes = rows.documents[of], positions[of][:, None]
        return Matches(documents, nodes, none, none[:0], none, none[:0], sets=tuple(sets), set_of=kinds[held])

    def _set(self, nodes: Ints) -> QuerySet:
        """The queries whose paths end at one of the given nodes."""
        key = nodes.tobytes()
        if key not in self._sets:
            if len(self._sets) >= MOST:
                self._sets.clear()
            _, at = expand(*(np.searchsorted(self._nodes, nodes, side) for side in ("left", "right")))
            self._sets[key] = QuerySet.of(np.unique(self._numbers[at]))
        return self._sets[key]


def _kinds(states: Ints, firsts: Ints) -> tuple[Ints, list[Ints]]:
    """Classifies the groups of rows that begin at `firsts`: groups with the same states are of one kind. Returns the
    kind of each group, and the states of each kind."""
    sizes = np.diff(np.append(firsts, len(states)))
    kinds, examples = np.empty(len(firsts), np.int64), list[Ints]()
    for size in np.unique(sizes).tolist():
        groups = np.flatnonzero(sizes == size)
        rows = firsts[groups, None] + np.arange(size)
        codes = np.zeros(len(groups), np.int64)
        for column in range(size):
            _, codes = np.unique(codes * (states.max() + 1) + states[rows[:, column]], return_inverse=True)
        _, places = np.unique(codes, return_index=True)
        kinds[groups] = codes + len(examples)
        examples += list(states[rows[places]])
    return kinds, examples


def _nodes(rows: Rows, states: Ints) -> Ints:
    _, at = expand(rows.node_starts[states], rows.node_starts[states + 1])
    return np.unique(rows.nodes[at])
