"""Positions among siblings: the rank of a node among those children of its parent that pass a step's test.

In: the rows of a batch, the step's trie node, and nodes. Out: which of the nodes are at the position. The children of
one element that pass the test all end at the step's trie node, so only its rows are needed. Shared: positions are
computed once per trie node, by one sort by parent, without a loop over elements.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.nodes import LAST
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.witnesses.automaton.rows import Rows
from fishweir.evaluate.witnesses.path_tables import node_keys


class Siblings:
    """The elements of a batch by parent."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._positions: dict[int, tuple[Ints, Ints, NDArray[np.bool_]]] = {}

    def at_position(self, node: int, position: int, documents: Ints, nodes: Ints) -> NDArray[np.bool_]:
        """Whether nodes that end at a trie node are at a position. A node above a split counts as an only child."""
        keys, places, lasts = self._places(node)
        at = np.searchsorted(keys, node_keys(documents, nodes))
        alone = nodes < 0
        if position == LAST:
            return alone | lasts[at]
        return np.where(alone, position == 1, places[at] == position)

    def _places(self, node: int) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """Sorted keys of the elements, their positions among their siblings from 1, and whether each is the last."""
        if node not in self._positions:
            rows = self._rows.of(node)
            keys = node_keys(self._rows.documents[rows], self._rows.positions[rows])
            order = np.argsort(keys, kind="stable")
            rows, keys = rows[order], keys[order]
            parents = node_keys(self._rows.documents[rows], self._rows.elements_above[rows])
            ordered = np.argsort(parents, kind="stable")
            begins = np.append(True, np.diff(parents[ordered]) != 0)[: len(ordered)]
            starts = np.flatnonzero(begins)
            counts = np.diff(np.append(starts, len(ordered)))
            places, lasts = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
            places[ordered] = np.arange(len(ordered)) - np.repeat(starts, counts) + 1
            lasts[ordered] = np.append(begins[1:], True)[: len(ordered)]
            self._positions[node] = keys, places, lasts
        return self._positions[node]
