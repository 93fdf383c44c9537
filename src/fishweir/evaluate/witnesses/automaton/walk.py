"""The walk: one pass over each document of a batch, whatever the number of paths.

In: the states and parsed documents. Out: rows in preorder, one per element or attribute that some path ends or
passes: state and position (as one number), the row above, and the value where some path reads it. Which paths a state
stands for is left to the batch. Subtrees that no path can enter are passed over.

Documents are serialized and read again by a kernel (elements.py): together that takes about half as long as parsing,
while going over lxml's tree from Python, 3 to 5 µs an element, took several times as long as that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from lxml import etree
from numpy.typing import NDArray

from fishweir.algebra.documents import Element
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.witnesses.automaton.elements import Elements
from fishweir.evaluate.witnesses.automaton.states import ABOVE, PLACE
from fishweir.evaluate.witnesses.automaton.steps import Steps
from fishweir.evaluate.witnesses.automaton.walk_kernels import gather, walk_elements

AT_ONCE = 16 * 1024 * 1024
"""Bytes of documents that are read together: bounds the memory."""


@dataclass(frozen=True)
class Part:
    """The rows of some documents of a batch; `rows`: place, row above (within the part), name of an attribute.
    `elements` are kept where places among siblings are asked for."""

    rows: Ints
    firsts: Ints
    valued: Ints
    values: pa.LargeStringArray
    elements: Elements | None = None


class Walk:
    """Collects the rows of a batch. An attribute's row has its element's position, and a name."""

    def __init__(self, steps: Steps) -> None:
        self.states, self.steps = steps.states, steps
        self.keeps_elements = False
        self.documents: list[int] = []
        self.parts: list[Part] = []
        self.elements = self.skipped = 0
        self._waiting: list[bytes] = []
        self._contexts: list[int] = []
        self._size = 0
        self._above: dict[tuple[str, ...], int] = {}
        self._passed: list[tuple[Ints, int]] = []

    def add(self, document: int, root: Element, context: tuple[str, ...] = ()) -> None:
        """Walks a document. Paths may also begin at the elements that stood above it before a split."""
        body = etree.tostring(root, encoding="utf-8", xml_declaration=False, with_tail=False)
        self.documents.append(document)
        self._waiting.append(body)
        at = self._above.get(context)
        self._contexts.append(self._pass(context) if at is None else at)
        self._size += len(body)
        if self._size >= AT_ONCE:
            self.read()

    def _pass(self, context: tuple[str, ...]) -> int:
        """The states of the elements above, and the one that the document element is reached from, by number."""
        passed: list[tuple[int, bool]] = []
        above = self.states.start
        for position, name in enumerate(context, -len(context)):
            state = above[name]
            if state is not None and state.matched:
                passed.append((state.place + position, state.valued))
            above = self.states.restarted(state)
        self._above[context] = len(self._passed)
        self._passed.append((np.array(passed, np.int64).reshape(-1, 2), above.id))
        return self._above[context]

    def read(self) -> None:
        """Walks the documents that wait."""
        if not self._waiting:
            return
        found = self.steps.names.read(self._waiting)
        self.parts.append(self._part(found, np.array(self._contexts)))
        self._waiting, self._contexts, self._size = [], [], 0

    def _part(self, found: Elements, contexts: Ints) -> Part:
        passed = [self._passed[at][0] for at in contexts.tolist()]
        passed_starts = np.append(0, np.cumsum([len(some) for some in passed])).astype(np.int64)
        starts = np.array([above for _, above in self._passed], np.int64)[contexts]
        size = len(found.elements) - 1
        rows = np.empty((size + len(found.attributes) + int(passed_starts[-1]), 5), np.int64)
        row_firsts, reached, above = (np.zeros(length, np.int64) for length in (len(found.firsts), size, size))
        missing, totals, steps = np.zeros(3, np.int64), np.zeros(6, np.int64), self.steps
        above_all = np.concatenate(passed)
        while not walk_elements(
            found.elements,
            found.attributes,
            found.firsts,
            steps.names.locals,
            steps.keys,
            steps.targets,
            steps.flags,
            starts,
            above_all,
            passed_starts,
            reached,
            above,
            rows,
            row_firsts,
            missing,
            totals,
            PLACE,
            ABOVE,
        ):
            steps.learn(*missing.tolist())
        self.elements += size
        self.skipped += int(totals[3])
        rows = rows[: totals[2]]
        valued = np.flatnonzero(rows[:, 3] >= 0)
        kept = found if self.keeps_elements else None
        return Part(rows[:, :3], row_firsts, valued, _values(rows, valued, found), kept)


def _values(rows: Ints, valued: Ints, found: Elements) -> pa.LargeStringArray:
    offsets = np.append(0, np.cumsum(rows[valued, 4] - rows[valued, 3])).astype(np.int64)
    data: NDArray[np.uint8] = np.empty(int(offsets[-1]), np.uint8)
    gather(rows, valued, found.texts, found.values, offsets, data)
    return pa.LargeStringArray.from_buffers(len(valued), pa.py_buffer(offsets), pa.py_buffer(data))
