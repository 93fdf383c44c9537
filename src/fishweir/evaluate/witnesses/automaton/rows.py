"""The rows of a batch as arrays, with lookup of the rows of a trie node.

In: the rows collected by a walk. Out: for each trie node, the rows that end there, in preorder. The subtree of a row is
an interval of rows, so that ancestors and descendants are joined by binary search.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.nodes import Operator
from fishweir.algebra.values import to_number
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.witnesses.automaton.states import ABOVE, PLACE, NodesOfStates
from fishweir.evaluate.witnesses.automaton.walk import Walk

NONE = np.empty(0, np.int64)


class Rows:
    """Row i has the document, the position, the row above, and the state. `values` belong to the rows `valued`.

    The batch has `states` states, numbered from 0. State s ends at the trie `nodes` from `node_starts[s]` on.
    `states_of_nodes` has trie nodes in ascending order, each with a state that ends there.
    """

    def __init__(self, walk: Walk, ended: NodesOfStates) -> None:
        starts = np.cumsum([0, *(len(part.rows) for part in walk.parts)]).tolist()
        rows = np.concatenate([np.empty((0, 4), np.int64), *(part.rows for part in walk.parts)])
        places, self.parents = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1])
        for start, part in zip(starts[1:], walk.parts[1:], strict=False):
            own = self.parents[start : start + len(part.rows)]
            own[own >= 0] += start
        lengths = np.concatenate([NONE, *(np.diff(part.firsts) for part in walk.parts)])
        self.documents: Ints = np.repeat(np.array(walk.documents, np.int64), lengths)
        self.positions: Ints = (places & ((1 << PLACE) - 1)) - ABOVE
        self.valued: Ints = np.concatenate([NONE, *(p.valued + at for p, at in zip(walk.parts, starts, strict=False))])
        self.values = pa.concat_arrays([pa.array([], pa.large_string()), *(part.values for part in walk.parts)])
        self._attributes, self._names = rows[:, 2], walk.steps.names.names
        self.elements_above: Ints = rows[:, 3]
        """The position of the element above each element; -1 if there is none."""
        self.state_ids: Ints = places >> PLACE
        present = np.zeros(len(ended.starts) - 1, np.bool_)
        present[self.state_ids] = True
        used, number = np.flatnonzero(present), np.cumsum(present) - 1
        self.states = len(used)
        self.activity: Ints = walk.activity[used, 1:]
        """By state, the total elements and bytes below the elements that entered it."""
        self.state = number[self.state_ids]
        self.node_starts = np.append(0, np.cumsum(np.diff(ended.starts)[used])).astype(np.int64)
        self.nodes: Ints = ended.nodes[expand(ended.starts[used], ended.starts[used + 1])[1]]
        here = present[ended.states]
        self.states_of_nodes: tuple[Ints, Ints] = ended.by_node[here], number[ended.states[here]]
        self._found: dict[int, Ints] = {}
        self._by_number: dict[int, tuple[NDArray[np.float64], Ints]] = {}

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def by_state(self) -> tuple[Ints, Ints]:
        """Rows ordered by state, and the offset of each state's rows."""
        order = np.argsort(self.state, kind="stable")
        return order, np.searchsorted(self.state[order], np.arange(self.states + 1))

    @cached_property
    def ends(self) -> Ints:
        """The row after each row's subtree."""
        sizes = np.ones(len(self), np.int64)
        above = self.parents[self.parents >= 0]
        while len(above):
            sizes += np.bincount(above, minlength=len(self))
            above = self.parents[above]
            above = above[above >= 0]
        return np.arange(len(self)) + sizes

    def present(self, nodes: Collection[int]) -> list[int]:
        """The given trie nodes that have rows."""
        return np.intersect1d(np.fromiter(nodes, np.int64, len(nodes)), self.states_of_nodes[0]).tolist()

    def of(self, node: int) -> Ints:
        """The rows that end at a trie node, in preorder."""
        rows = self._found.get(node)
        if rows is None:
            nodes, states = self.states_of_nodes
            lo, hi = np.searchsorted(nodes, [node, node + 1])
            order, starts = self.by_state
            found = states[lo:hi]
            slices = [order[starts[s] : starts[s + 1]] for s in found.tolist()]
            rows = slices[0] if len(slices) == 1 else np.sort(np.concatenate([NONE, *slices]))
            self._found[node] = rows
        return rows

    def texts_of(self, rows: Ints) -> list[str]:
        """The values of rows. They are available only if some path reads them."""
        return self.values_of(rows).to_pylist()

    def values_of(self, rows: Ints) -> pa.LargeStringArray:
        """The values of rows as an Arrow array, like `texts_of`."""
        return self.values.take(pa.array(np.searchsorted(self.valued, rows)))

    def name_of(self, row: int) -> str | None:
        """The name of an attribute; None for an element."""
        name = int(self._attributes[row])
        return self._names[name] if name >= 0 else None

    @cached_property
    def by_text(self) -> dict[str, list[int]]:
        """All rows with values, by value."""
        found: dict[str, list[int]] = {}
        for row, text in zip(self.valued.tolist(), self.values.to_pylist(), strict=True):
            found.setdefault(text, []).append(row)
        return found

    def with_text(self, node: int, text: str) -> Ints:
        """The rows of a node with this value, in preorder."""
        rows = self.by_text.get(text)
        if rows is None:
            return NONE
        equal = np.array(rows, np.int64)
        return equal[contained(equal, self.of(node))]

    def with_number(self, node: int, op: Operator, constant: float) -> Ints:
        """The rows of a node whose value is a number that satisfies the comparison, in preorder."""
        if node not in self._by_number:
            rows = self.of(node)
            given = [to_number(text) for text in self.texts_of(rows)]
            numbers = np.array([np.nan if n is None else n for n in given], np.float64)
            order = np.argsort(numbers, kind="stable")[: np.count_nonzero(~np.isnan(numbers))]
            self._by_number[node] = numbers[order], rows[order]
        numbers, rows = self._by_number[node]
        lo, hi = np.searchsorted(numbers, constant, "left"), np.searchsorted(numbers, constant, "right")
        parts = {
            "=": (rows[lo:hi],),
            "!=": (rows[:lo], rows[hi:]),
            "<": (rows[:lo],),
            "<=": (rows[:hi],),
            ">": (rows[hi:],),
            ">=": (rows[lo:],),
        }[op]
        return np.sort(np.concatenate(parts))

    # Joins over one step. All lists of rows are sorted.

    def below(self, above: Ints, rows: Ints, deep: bool) -> tuple[Ints, Ints]:
        """All pairs (index of `above`, row of `rows`) in which the row is a child (or descendant) of the former."""
        if deep:
            lo, hi = np.searchsorted(rows, above + 1), np.searchsorted(rows, self.ends[above])
            index, at = expand(lo, hi)
            return index, rows[at]
        parents = self.parents[rows]
        order = np.argsort(above, kind="stable")
        lo = np.searchsorted(above[order], parents, "left")
        hi = np.searchsorted(above[order], parents, "right")
        source, at = expand(lo, hi)
        return order[at], rows[source]

    def having(self, above: Ints, rows: Ints, deep: bool) -> Ints:
        """The rows of `above` that have one of `rows` as a child (or descendant)."""
        if deep:
            counts = np.searchsorted(rows, self.ends[above]) - np.searchsorted(rows, above + 1)
            return above[counts > 0]
        parents = np.unique(self.parents[rows])
        return parents[contained(parents, above)]

    def under(self, above: Ints, rows: Ints, deep: bool) -> Ints:
        """The rows of `rows` that are a child (or descendant) of one of `above`."""
        if not deep and len(above) * 8 > len(rows):
            return rows[contained(self.parents[rows], above)]
        ends = self.ends[above]
        if deep:  # the outermost subtrees contain the others
            outer = above >= np.append(0, np.maximum.accumulate(ends)[:-1])[: len(above)]
            above, ends = above[outer], ends[outer]
        source, at = expand(np.searchsorted(rows, above + 1), np.searchsorted(rows, ends))
        return rows[at] if deep else np.sort(rows[at[self.parents[rows[at]] == above[source]]])


def contained(values: Ints, among: Ints) -> NDArray[np.bool_]:
    """Whether each value is in a sorted list."""
    if not len(among):
        return np.zeros(len(values), np.bool_)
    return among[np.minimum(np.searchsorted(among, values), len(among) - 1)] == values
