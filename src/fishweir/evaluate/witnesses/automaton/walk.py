"""The walk: one pass over the bytes of each document of a batch, regardless of the number of paths.

In: the states and documents. Out: rows in preorder, one for each element or attribute at which some path ends or
through which it passes. A row has the state and position (as one number), the row above, and the value if some path
reads it. The batch determines the paths of each state. Subtrees that no path can enter are skipped.

A document is given either as bytes, if they are known to be ordinary (checking.py), or as a tree, which libxml2
serializes first; its output is ordinary. Encodings, DTDs and entities therefore need no second implementation, and
documents without them do not need libxml2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from lxml import etree
from numpy.typing import NDArray

from fishweir.algebra.documents import Element
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.witnesses.automaton.states import ABOVE, PLACE
from fishweir.evaluate.witnesses.automaton.step_kernels import NOWHERE
from fishweir.evaluate.witnesses.automaton.steps import Steps
from fishweir.evaluate.witnesses.automaton.views import View
from fishweir.evaluate.witnesses.automaton.walk_kernels import (
    DONE,
    ELEMENTS,
    LEFT_OUT,
    LEVEL,
    NO_NAMES,
    NO_ROOM,
    ROW,
    SIZE,
    SKIPPED,
    gather,
    walk_documents,
)

AT_ONCE = 16 * 1024 * 1024
"""Bytes of documents that are read together, to bound memory."""


@dataclass(frozen=True)
class Part:
    """The rows of some documents of a batch. The columns of `rows` are the place, the row above (within the part), the
    name of an attribute, and the position of the element above."""

    rows: Ints
    firsts: Ints
    valued: Ints
    values: pa.LargeStringArray


class Walk:
    """Collects the rows of a batch. An attribute's row has the position of its element, and a name."""

    def __init__(self, steps: Steps) -> None:
        self.states, self.steps = steps.states, steps
        self.documents: list[int] = []
        self.parts: list[Part] = []
        self.elements = self.skipped = self.bytes = 0
        self.activity: Ints = np.zeros((0, 3), np.int64)
        """By state, how often it was entered, and the elements and bytes below."""
        self._waiting: list[bytes] = []
        self._contexts: list[int] = []
        self._size = 0
        self._above: dict[tuple[tuple[str, ...], View | None], int] = {}
        self._passed: list[tuple[Ints, int]] = []
        self.left_out = 0
        """The number of elements left out by their turn."""
        self._numbers: list[int] = []
        self._ends = np.zeros(0, np.int64)
        self._switch: Ints = np.array([-1, NOWHERE])

    def switch(self, unit: Sequence[str], views: Sequence[View | None], ends: Sequence[int]) -> None:
        """Makes the walk switch views by turn (turns.py) at each element on the path `unit`."""
        states = [self._at(unit, view) for view in (None, *views)]
        self._switch = np.array([len(unit) - 1, *states], np.int64)
        self._ends = np.array(ends, np.int64)
        self.steps.update_flags()

    def _at(self, names: Sequence[str], view: View | None) -> int:
        """The state at a path; NOWHERE if nothing is evaluated there."""
        state = self.states.start_of(view)
        for name in names:
            found = state[name]
            if found is None:
                return NOWHERE
            state = found
        return state.id

    def add(
        self,
        document: int,
        content: Element | bytes,
        context: tuple[str, ...] = (),
        view: View | None = None,
        number: int = -1,
    ) -> None:
        """Walks a document, given as a tree or as ordinary bytes. Paths may also begin at the elements above it before
        a split. A `view` excludes the suspended paths. If the document's `number` in the stream is given, its elements
        take turns."""
        body = content if isinstance(content, bytes) else _serialized(content)
        self.documents.append(document)
        self._waiting.append(body)
        self._numbers.append(number)
        at = self._above.get((context, view))
        self._contexts.append(self._pass(context, view) if at is None else at)
        self._size += len(body)
        if self._size >= AT_ONCE:
            self.read()

    def add_all(self, documents: Sequence[int], data: NDArray[np.uint8], bounds: Ints) -> None:
        """Walks concatenated ordinary documents, none of them from a split."""
        self.read()
        self.documents.extend(documents)
        above = self._above.get(((), None))
        above = self._pass((), None) if above is None else above
        first = 0
        while first < len(documents):
            last = max(int(np.searchsorted(bounds, bounds[first] + AT_ONCE, "right")) - 1, first + 1)
            some = bounds[first : last + 1]
            given = np.full(last - first, above), np.full(last - first, -1)
            self.parts.append(self._part(data[some[0] : some[-1]], some - some[0], *given))
            first = last

    def _pass(self, context: tuple[str, ...], view: View | None) -> int:
        """Adds the states of the elements above, and the state from which the document element is reached. Returns
        their number."""
        passed: list[tuple[int, bool]] = []
        above = self.states.start_of(view)
        for position, name in enumerate(context, -len(context)):
            state = above[name]
            if state is not None and state.matched:
                passed.append((state.place + position, state.valued))
            above = self.states.restarted(state, view)
        self._above[context, view] = len(self._passed)
        self._passed.append((np.array(passed, np.int64).reshape(-1, 2), above.id))
        return self._above[context, view]

    def read(self) -> None:
        """Walks the pending documents."""
        if not self._waiting:
            return
        bounds = np.append(0, np.cumsum([len(body) for body in self._waiting])).astype(np.int64)
        data = np.frombuffer(b"".join(self._waiting), np.uint8)
        self.parts.append(self._part(data, bounds, np.array(self._contexts), np.array(self._numbers, np.int64)))
        self._waiting, self._contexts, self._numbers, self._size = [], [], [], 0

    def _part(self, data: NDArray[np.uint8], bounds: Ints, contexts: Ints, numbers: Ints) -> Part:
        ends = np.cumsum([0, *(len(some) for some, _ in self._passed)])
        passed_starts = np.append(0, np.cumsum(np.diff(ends)[contexts]))
        starts = np.array([above for _, above in self._passed], np.int64)[contexts]
        above_all = np.concatenate([some for some, _ in self._passed])[expand(ends[contexts], ends[contexts + 1])[1]]
        stack, declared, found, rows = _room(64, LEVEL), _room(64, 4), _room(64, 6), _room(1024 + len(data) // 16, 6)
        row_firsts, missing, now = (np.zeros(size, np.int64) for size in (len(bounds), 7, SIZE))
        texts, values = np.empty(len(data), np.uint8), np.empty(len(data), np.uint8)
        steps, names = self.steps, self.steps.names
        while True:
            self.activity = _grown(self.activity, max(len(steps.flags), len(self.states.all)))
            ended = walk_documents(
                data,
                bounds,
                names.slots,
                names.hashes,
                names.known,
                names.arena,
                names.used,
                names.locals,
                steps.keys,
                steps.targets,
                steps.flags,
                starts,
                above_all,
                passed_starts,
                stack,
                declared,
                found,
                rows,
                row_firsts,
                texts,
                values,
                self.activity,
                missing,
                now,
                numbers,
                self._ends,
                self._switch,
                PLACE,
                ABOVE,
            )
            if ended == DONE:
                break
            if ended == NO_ROOM:
                stack, declared, found, rows = (
                    np.append(list_, np.empty_like(list_), 0) for list_ in (stack, declared, found, rows)
                )
            elif ended == NO_NAMES:
                names.grow()
            else:
                steps.add_transition(*missing[:3].tolist())
        names.resolve()
        self.elements += int(now[ELEMENTS])
        self.skipped += int(now[SKIPPED])
        self.left_out += int(now[LEFT_OUT])
        self.bytes += len(data)
        rows = rows[: now[ROW]]
        valued = np.flatnonzero(rows[:, 3] >= 0)
        return Part(rows[:, [0, 1, 2, 5]], row_firsts, valued, _values(rows, valued, texts, values))


def _serialized(root: Element) -> bytes:
    return etree.tostring(root, encoding="utf-8", xml_declaration=False, with_tail=False)


def _room(size: int, columns: int) -> Ints:
    return np.empty((size, columns), np.int64)


def _grown(lines: Ints, size: int) -> Ints:
    return np.append(lines, np.zeros((size - len(lines), lines.shape[1]), np.int64), 0)


def _doubled(lines: Ints) -> Ints:
    return np.append(lines, np.empty_like(lines), 0)


def _values(rows: Ints, valued: Ints, texts: NDArray[np.uint8], values: NDArray[np.uint8]) -> pa.LargeStringArray:
    offsets = np.append(0, np.cumsum(rows[valued, 4] - rows[valued, 3])).astype(np.int64)
    data: NDArray[np.uint8] = np.empty(int(offsets[-1]), np.uint8)
    gather(rows, valued, texts, values, offsets, data)
    return pa.LargeStringArray.from_buffers(len(valued), pa.py_buffer(offsets), pa.py_buffer(data))
