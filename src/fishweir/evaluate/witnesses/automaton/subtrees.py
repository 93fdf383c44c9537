"""Extracts nodes of many documents for results, without building trees.

In: bodies of documents as received, and nodes by document and preorder position. Out: a text for each node, and which
nodes are left to libxml2: those of documents that are not ordinary (checking.py), and the few that the kernels refuse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, distinct
from fishweir.evaluate.witnesses.automaton.check_kernels import DEEPEST, MOST_ATTRIBUTES, MOST_DECLARATIONS
from fishweir.evaluate.witnesses.automaton.checking import check
from fishweir.evaluate.witnesses.automaton.subtree_kernels import ATTRIBUTE, GROWTH, ROOM, take_nodes

Taken = tuple[pa.StringArray, NDArray[np.bool_]]
"""A text for each node, and whether the node is left to libxml2. Its text is empty in that case."""


@dataclass(frozen=True)
class Bodies:
    """Concatenated bodies, and whether each is ordinary."""

    data: NDArray[np.uint8]
    bounds: Ints
    ordinary: NDArray[np.bool_]

    @classmethod
    def of(cls, bodies: pa.LargeBinaryArray, ordinary: NDArray[np.bool_] | None = None) -> Bodies:
        """The bodies of some log entries, without copying them. Entries without a body are not ordinary."""
        _, offsets, held = bodies.buffers()
        bounds = np.frombuffer(offsets, np.int64)[bodies.offset : bodies.offset + len(bodies) + 1].copy()
        data = np.frombuffer(held if held is not None else b"", np.uint8)
        data.setflags(write=False)  # read-only like those of bytes, so that the kernels need only one type
        return cls(data, bounds, check(data, bounds) if ordinary is None else ordinary)

    def take(self, documents: Ints, positions: Ints, what: int, attribute: str = "") -> Taken:
        """The requested part (subtree_kernels.py) of nodes that ascend by document and position."""
        refused = ~self.ordinary[documents]
        chosen = np.flatnonzero(~refused)
        own, at = documents[chosen], positions[chosen]
        if what == ATTRIBUTE and not attribute.isascii():
            refused[:] = True
            own, at, chosen = own[:0], at[:0], chosen[:0]
        ends, left = np.zeros(len(own), np.int64), np.zeros(len(own), np.bool_)
        into = self._taken(own, at, what, np.frombuffer(attribute.encode(), np.uint8), ends, left)
        refused[chosen] = left
        lengths = np.zeros(len(documents), np.int64)
        lengths[chosen] = np.diff(ends, prepend=0)
        offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
        texts = pa.StringArray.from_buffers(len(documents), pa.py_buffer(offsets), pa.py_buffer(into))
        return texts, refused

    def _taken(
        self,
        documents: Ints,
        positions: Ints,
        what: int,
        name: NDArray[np.uint8],
        ends: Ints,
        refused: NDArray[np.bool_],
    ) -> NDArray[np.uint8]:
        found, declared = (np.empty((size + 2, 4), np.int64) for size in (MOST_ATTRIBUTES, MOST_DECLARATIONS))
        shown = np.empty((MOST_DECLARATIONS + MOST_ATTRIBUTES, 2), np.int64)
        levels, tag = np.zeros(DEEPEST + 2, np.int64), np.zeros(2, np.int64)
        sizes = np.diff(self.bounds)
        needed = int(sizes[documents].max(initial=0)) * GROWTH + ROOM
        into: NDArray[np.uint8] = np.empty(2 * int(sizes[distinct(documents)[0]].sum()) + needed, np.uint8)
        node = at = 0
        while True:
            lists = found, declared, levels, shown, tag
            node = take_nodes(
                self.data, self.bounds, documents, positions, what, name, *lists, into, ends, refused, node, at
            )
            at = int(ends[node - 1]) if node else 0
            if node == len(documents):
                return into[:at]
            into = np.append(into, np.empty(len(into) + needed, np.uint8))
