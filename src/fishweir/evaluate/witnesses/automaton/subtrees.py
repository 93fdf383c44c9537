"""Extracts nodes of many documents for results, without building trees.

In: bodies of documents as received, and nodes by document and preorder position. Out: a text for each node, and which
nodes are left to libxml2: those of documents that are not ordinary (checking.py), and the few that the kernels refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.witnesses.automaton.attribute_kernels import MOST_ATTRIBUTES, MOST_DECLARATIONS
from fishweir.evaluate.witnesses.automaton.check_kernels import DEEPEST
from fishweir.evaluate.witnesses.automaton.checking import check, scratch
from fishweir.evaluate.witnesses.automaton.piece_kernels import PIECE, most_pieces
from fishweir.evaluate.witnesses.automaton.subtree_kernels import GROWTH, ROOM, take_nodes

AT_ONCE = 1 << 18
"""The number of bytes of documents whose nodes are written together: few enough to stay in the processor's cache, in
memory that is used again for the next ones."""
NONE: Ints = np.empty(0, np.int64)
Taken = tuple[pa.StringArray, NDArray[np.bool_]]
"""A text for each node, and whether the node is left to libxml2. Its text is empty in that case."""


class Request(NamedTuple):
    """A part of nodes (subtree_kernels.py) that ascend by document and position; for attributes, with their name."""

    documents: Ints
    positions: Ints
    what: int
    attribute: str = ""


class Bodies:
    """Concatenated bodies, each the bytes between two bounds."""

    def __init__(self, data: NDArray[np.uint8], bounds: Ints) -> None:
        self.data, self.bounds = data, bounds

    @classmethod
    def of(cls, bodies: pa.LargeBinaryArray) -> Bodies:
        """The bodies of some log entries, without copying them. Entries without a body are empty."""
        _, offsets, held = bodies.buffers()
        bounds = np.frombuffer(offsets, np.int64)[bodies.offset : bodies.offset + len(bodies) + 1].copy()
        data = np.frombuffer(held if held is not None else b"", np.uint8)
        data.setflags(write=False)  # read-only like those of bytes, so that the kernels need only one type
        return cls(data, bounds)

    @cached_property
    def ordinary(self) -> NDArray[np.bool_]:
        return check(self.data, self.bounds)

    def take(self, documents: Ints, positions: Ints, what: int, attribute: str = "") -> Taken:
        return self.take_all([Request(documents, positions, what, attribute)])[0]

    def take_all(self, requests: Sequence[Request]) -> list[Taken]:
        """The requested parts of nodes. Each document is checked and read once."""
        asked = [one if one.attribute.isascii() else one._replace(documents=NONE, positions=NONE) for one in requests]
        found = []
        for request, one, (into, ends, left) in zip(requests, asked, self._taken(asked), strict=True):
            if one is not request:
                ends, left = (np.full(len(request.documents), fill) for fill in (0, True))
            offsets = np.append(np.int32(0), ends.astype(np.int32))
            found.append((pa.StringArray.from_buffers(len(left), pa.py_buffer(offsets), pa.py_buffer(into)), left))
        return found

    def _taken(self, requests: Sequence[Request]) -> list[tuple[NDArray[np.uint8], Ints, NDArray[np.bool_]]]:
        """For each request, the concatenated texts, their ends, and which nodes are left to libxml2."""
        documents = [one.documents for one in requests]
        starts = np.cumsum([0, *(len(some) for some in documents)])
        names = [one.attribute.encode() for one in requests]
        nodes = np.concatenate(documents), np.concatenate([one.positions for one in requests])
        arguments = (
            np.array([one.what for one in requests]),
            np.frombuffer(b"".join(names), np.uint8),
            np.cumsum([0, *map(len, names)]),
        )
        longest = max(int(np.diff(self.bounds)[some].max(initial=0)) for some in documents)
        pieces = np.empty((most_pieces(longest), PIECE), np.int64)
        shown = np.empty((MOST_DECLARATIONS + MOST_ATTRIBUTES, 2), np.int64)
        lists = *scratch(), pieces, np.zeros(DEEPEST + 2, np.int64), shown, np.zeros(2, np.int64)
        needed = longest * GROWTH + ROOM
        into: NDArray[np.uint8] = np.empty((len(requests), 2 * AT_ONCE + needed), np.uint8)
        ends, refused = np.zeros(starts[-1], np.int64), np.zeros(starts[-1], np.bool_)
        texts: list[NDArray[np.uint8]] = [np.empty(0, np.uint8)] * len(requests)
        written, nexts = np.zeros(len(requests), np.int64), starts[:-1].copy()
        for upto in self._cuts():
            begun, ats = nexts.copy(), np.zeros(len(requests), np.int64)
            stops = starts[:-1] + [np.searchsorted(some, upto) for some in documents]
            while not take_nodes(
                self.data, self.bounds, *nodes, nexts, stops, *arguments, *lists, into, ats, ends, refused
            ):
                into = np.append(into, np.empty((len(requests), into.shape[1] + needed), np.uint8), axis=1)
            for r, (filled, at) in enumerate(zip(written.tolist(), ats.tolist(), strict=True)):
                ends[begun[r] : stops[r]] += filled
                texts[r] = _with_room(texts[r], filled, at, upto / (len(self.bounds) - 1))
                texts[r][filled : filled + at] = into[r, :at]
            written += ats
        spans = [slice(*pair) for pair in pairwise(starts.tolist())]
        found = zip(texts, written.tolist(), spans, strict=True)
        return [(text[:size], ends[some], refused[some]) for text, size, some in found]

    def _cuts(self) -> Iterator[int]:
        """The ends of ranges of documents that have `AT_ONCE` bytes each, or one document that has more."""
        first, last = 0, len(self.bounds) - 1
        while first < last:
            full = int(np.searchsorted(self.bounds, self.bounds[first] + AT_ONCE, "right")) - 1
            first = max(full, first + 1)
            yield first


def _with_room(text: NDArray[np.uint8], filled: int, more: int, share: float) -> NDArray[np.uint8]:
    """A text that has room for some more bytes, and then for all, given the share of the documents that are written by
    then. Memory that is not used costs nothing, but copies cost much if they are the first to use their memory."""
    if filled + more <= len(text):
        return text
    grown = np.empty(int((filled + more) / share * 1.1), np.uint8)
    grown[:filled] = text[:filled]
    return grown
