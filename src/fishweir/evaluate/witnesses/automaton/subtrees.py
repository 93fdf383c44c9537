"""Extracts nodes of many documents for results, without building trees.

In: bodies of documents as received, and columns of texts, whose rows show nodes by document and preorder position. Out:
the columns, and which rows are left to libxml2: those with documents that are not ordinary (checking.py), and the few
that the kernels refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.byte_blocks import BLOCK
from fishweir.evaluate.witnesses.automaton.attribute_kernels import MOST_ATTRIBUTES, MOST_DECLARATIONS
from fishweir.evaluate.witnesses.automaton.check_kernels import DEEPEST
from fishweir.evaluate.witnesses.automaton.checking import check, scratch
from fishweir.evaluate.witnesses.automaton.piece_kernels import PIECE, most_pieces
from fishweir.evaluate.witnesses.automaton.subtree_kernels import (
    ADDRESS,
    AT,
    COLUMN,
    FIRST_ROW,
    GROWTH,
    NEXT,
    ROOM,
    SIZE,
    STOP,
    write_columns,
)

AT_FIRST = 1 << 16
"""The number of bytes of a column that are written before its size is estimated."""
NONE: Ints = np.empty(0, np.int64)
Taken = tuple[pa.StringArray, NDArray[np.bool_]]
"""The texts of all rows, one after the other, and whether a row is left to libxml2. Its texts are then empty."""


class Part(NamedTuple):
    """A part of the texts of a column: what it shows (subtree_kernels.py) of the node at a position, for each row.
    `text` is the name of an attribute, or a literal, which needs no positions. If the part `closes` a text, the next
    one begins another."""

    shows: int
    positions: Ints = NONE
    text: str = ""
    closes: bool = True


class Request(NamedTuple):
    """A column. Its rows ascend by document."""

    documents: Ints
    parts: Sequence[Part]

    @property
    def ends(self) -> int:
        """The number of texts per row."""
        return sum(part.closes for part in self.parts)


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

    def take(self, documents: Ints, positions: Ints, shows: int, attribute: str = "") -> Taken:
        """A column that shows one node in each row."""
        return self.take_all([Request(documents, [Part(shows, positions, attribute)])])[0]

    def take_all(self, requests: Sequence[Request]) -> list[Taken]:
        """The requested columns. Each document is checked and read once, and texts are written where they remain:
        memory that is used for the first time costs more than its content."""
        documents = np.concatenate([one.documents for one in requests])
        positions = np.concatenate([part.positions for one in requests for part in one.parts])
        names = b"".join(part.text.encode() for one in requests for part in one.parts)
        rows, ends = (
            list(accumulate(sizes, initial=0))
            for sizes in (
                (len(one.documents) for one in requests),
                (len(one.documents) * one.ends + 1 for one in requests),
            )
        )
        columns = _columns(requests, rows, ends)
        longest = int(np.diff(self.bounds)[documents].max(initial=0))
        needed = longest * GROWTH + SIZE + len(names)
        offsets, refused = np.zeros(ends[-1], np.int32), np.zeros(len(documents), np.bool_)
        given: list[Any] = [self.data, self.bounds, documents, columns, _parts(requests), positions]
        given += [np.frombuffer(names + bytes(BLOCK), np.uint8), *_scratch(longest), offsets, refused]
        texts = [_memory(AT_FIRST + needed) for _ in requests]
        while True:
            columns[:, ADDRESS] = [text.ctypes.data for text in texts]
            columns[:, ROOM] = [len(text) for text in texts]
            if write_columns(*given):
                break
            texts = [_with_room(*one, needed) for one in zip(texts, columns, strict=True)]
        sizes = columns[:, AT].tolist()
        return [
            (_texts(offsets[slice(*between)], text[:size]), refused[slice(*of)])
            for text, size, between, of in zip(texts, sizes, pairwise(ends), pairwise(rows), strict=True)
        ]


def _columns(requests: Sequence[Request], rows: list[int], ends: list[int]) -> Ints:
    """The fields of all columns (subtree_kernels.py)."""
    parts = list(accumulate((len(one.parts) for one in requests), initial=0))
    between = zip(requests, pairwise(rows), pairwise(parts), ends[:-1], strict=True)
    fields = [[*some, some[0], *of, end + 1, one.ends] for one, some, of, end in between]
    return np.pad(np.array(fields), [(0, 0), (0, COLUMN - len(fields[0]))])


def _parts(requests: Sequence[Request]) -> Ints:
    """The fields of the parts of all columns (subtree_kernels.py)."""
    parts = [part for one in requests for part in one.parts]
    positions = accumulate((len(part.positions) for part in parts), initial=0)
    names = pairwise(accumulate((len(part.text.encode()) for part in parts), initial=0))
    fields = zip(parts, positions, names, strict=False)
    return np.array([[part.shows, position, *name, part.closes] for part, position, name in fields])


def _scratch(longest: int) -> tuple[Ints | NDArray[np.uint8], ...]:
    """What the kernel needs for one document."""
    pieces = np.empty((most_pieces(longest), PIECE), np.int64)
    shown = np.empty((MOST_DECLARATIONS + MOST_ATTRIBUTES, 2), np.int64)
    levels, tag = (np.zeros(size, np.int64) for size in (DEEPEST + 2, 2))
    return *scratch(), pieces, levels, shown, tag, np.empty(longest + SIZE, np.uint8)


def _memory(size: int) -> NDArray[np.uint8]:
    """Memory of Arrow, which keeps what is freed for the next column, unlike the memory of large NumPy arrays."""
    return np.frombuffer(pa.allocate_buffer(size), np.uint8)


def _with_room(text: NDArray[np.uint8], column: Ints, needed: int) -> NDArray[np.uint8]:
    """A text that has room for all rows if the others are like those that are written, and for one more in any case.
    Memory that is not used costs nothing."""
    filled, written = int(column[AT]), int(column[NEXT] - column[FIRST_ROW])
    rows = int(column[STOP] - column[FIRST_ROW])
    grown = _memory(max(int(filled * rows / max(written, 1) * 1.1), len(text)) + needed)
    grown[:filled] = text[:filled]
    return grown


def _texts(offsets: NDArray[np.int32], text: NDArray[np.uint8]) -> pa.StringArray:
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text))
