"""Extracts nodes of many documents for results, without building trees.

In: bodies of documents as received, and nodes by document and preorder position. Out: a text for each node, and which
nodes are left to libxml2: those of documents that are not ordinary (checking.py), and the few that the kernels refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, distinct
from fishweir.evaluate.witnesses.automaton.check_kernels import DEEPEST, MOST_ATTRIBUTES, MOST_DECLARATIONS
from fishweir.evaluate.witnesses.automaton.checking import check
from fishweir.evaluate.witnesses.automaton.subtree_kernels import GROWTH, ROOM, take_nodes

Taken = tuple[pa.StringArray, NDArray[np.bool_]]
"""A text for each node, and whether the node is left to libxml2. Its text is empty in that case."""


class Request(NamedTuple):
    """A part of nodes (subtree_kernels.py) that ascend by document and position; for attributes, with their name."""

    documents: Ints
    positions: Ints
    what: int
    attribute: str = ""


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
        return self.take_all([Request(documents, positions, what, attribute)])[0]

    def take_all(self, requests: Sequence[Request]) -> list[Taken]:
        """The requested parts of nodes, in one pass over each document."""
        refused = [~self.ordinary[one.documents] | (not one.attribute.isascii()) for one in requests]
        chosen = [np.flatnonzero(~some) for some in refused]
        lists = [(one.documents[some], one.positions[some]) for one, some in zip(requests, chosen, strict=True)]
        taken = self._taken([own for own, _ in lists], [at for _, at in lists], requests)
        found = []
        for some, left, (into, ends, is_left) in zip(chosen, refused, taken, strict=True):
            left[some] = is_left
            lengths = np.zeros(len(left) + 1, np.int64)
            lengths[some + 1] = np.diff(ends, prepend=0)
            offsets = np.cumsum(lengths).astype(np.int32)
            found.append((pa.StringArray.from_buffers(len(left), pa.py_buffer(offsets), pa.py_buffer(into)), left))
        return found

    def _taken(
        self, documents: list[Ints], positions: list[Ints], requests: Sequence[Request]
    ) -> list[tuple[NDArray[np.uint8], Ints, NDArray[np.bool_]]]:
        """For each request, the concatenated texts, their ends, and which nodes are left to libxml2."""
        found, declared = (np.empty((size + 2, 4), np.int64) for size in (MOST_ATTRIBUTES, MOST_DECLARATIONS))
        shown = np.empty((MOST_DECLARATIONS + MOST_ATTRIBUTES, 2), np.int64)
        levels, tag = np.zeros(DEEPEST + 2, np.int64), np.zeros(2, np.int64)
        stops = np.cumsum([len(some) for some in documents])
        nexts, size = np.append(0, stops[:-1]), int(stops[-1])
        names = [one.attribute.encode() if one.attribute.isascii() else b"" for one in requests]
        name_bounds = np.cumsum([0, *map(len, names)])
        ends, refused = np.zeros(size, np.int64), np.zeros(size, np.bool_)
        sizes, ats = np.diff(self.bounds), np.zeros(len(requests), np.int64)
        needed = max(int(sizes[some].max(initial=0)) for some in documents) * GROWTH + ROOM
        room = max(int(sizes[distinct(some)[0]].sum()) for some in documents)
        into: NDArray[np.uint8] = np.empty((len(requests), 2 * room + needed), np.uint8)
        nodes = np.concatenate(documents), np.concatenate(positions), nexts, stops
        arguments = np.array([one.what for one in requests]), np.frombuffer(b"".join(names), np.uint8), name_bounds
        lists = found, declared, levels, shown, tag
        while not take_nodes(self.data, self.bounds, *nodes, *arguments, *lists, into, ats, ends, refused):
            into = np.append(into, np.empty((len(requests), into.shape[1] + needed), np.uint8), axis=1)
        starts = np.append(0, stops[:-1]).tolist()
        spans = [slice(start, stop) for start, stop in zip(starts, stops.tolist(), strict=True)]
        return [(into[r, : ats[r]], ends[some], refused[some]) for r, some in enumerate(spans)]
