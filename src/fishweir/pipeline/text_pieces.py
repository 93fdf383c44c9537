"""Texts of results in columns, joined from pieces: each byte is copied once.

In: pieces, which are texts that are the same in all rows, or texts of a column with the place of each row's text. Out:
a column with the pieces of each row joined, or one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.jit import lean_kernel, put_word, word_at

LONGEST = np.iinfo(np.int32).max
"""The maximum number of bytes of a column."""


class Texts(NamedTuple):
    """For each row, the text of `column` at the row's place, or an empty text if the place is -1. No text is null."""

    column: pa.StringArray
    places: Ints

    def lengths(self) -> Ints:
        return np.append(np.diff(_offsets(self.column)), 0)[self.places]

    def at(self, places: Ints) -> Texts:
        """The texts of the rows at some places, which may be -1."""
        return Texts(self.column, np.append(self.places, -1)[places])


Piece = str | Texts


def of_rows(column: pa.StringArray) -> Texts:
    """A column with one text for each row."""
    return Texts(column, np.arange(len(column)))


def either(first: str, second: str, is_second: NDArray[np.bool_]) -> Piece:
    """The first of two texts, or the second in some rows."""
    if not is_second.any():
        return first
    return Texts(pa.array([first, second], pa.string()), is_second.astype(np.int64))


def are_empty(pieces: Sequence[Piece], size: int) -> NDArray[np.bool_]:
    """Whether all pieces of a row are empty."""
    if any(isinstance(piece, str) and piece for piece in pieces):
        return np.zeros(size, np.bool_)
    found = np.ones(size, np.bool_)
    for piece in pieces:
        if not isinstance(piece, str):
            found &= piece.lengths() == 0
    return found


def joined(pieces: Sequence[Piece], size: int) -> pa.StringArray:
    """The pieces of each row as one text."""
    merged: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    if len(merged) == 1 and isinstance(merged[0], Texts):
        column, places = merged[0]
        if size == len(column) and (places == np.arange(size)).all():
            return column
    offsets, content = _interleaved(merged, size)
    return _column(offsets[:: len(merged)] if merged else np.zeros(size + 1, np.int64), content)


def interleaved(pieces: Sequence[Texts], there: NDArray[np.bool_]) -> pa.StringArray:
    """The pieces of the first row that are `there`, then those of the second, and so on. The others are empty."""
    bounds, content = _interleaved(pieces, len(there))
    return _column(bounds if there.all() else np.append(bounds[:-1][there.ravel()], bounds[-1]), content)


def _interleaved(pieces: Sequence[Piece], size: int) -> tuple[Ints, NDArray[np.uint8]]:
    """The bounds of the pieces, row by row, and their bytes."""
    each, bounds = [], np.zeros(size * len(pieces) + 1, np.int64)
    for number, piece in enumerate(pieces):
        column, places = (pa.array([piece], pa.string()), np.zeros(size, np.int64)) if isinstance(piece, str) else piece
        each.append((_bytes(column), _offsets(column), places))
        _measure_texts(each[-1][1], places, number, len(pieces), bounds)
    np.cumsum(bounds, out=bounds)
    into = np.empty(bounds[-1], np.uint8)
    for number, (data, offsets, places) in enumerate(each):
        _copy_texts(data, offsets, places, bounds, number, len(pieces), into)
    return bounds, into


def numbered(prefix: str, numbers: Ints) -> pa.StringArray:
    """Ascending numbers that are not negative, each after a prefix."""
    if not len(numbers):
        return pa.array([], pa.string())
    before = _held(prefix.encode(), np.uint8)
    content = np.empty(len(numbers) * (len(before) + len(str(numbers[-1]))), np.uint8)
    bounds = np.zeros(len(numbers) + 1, np.int64)
    return _column(bounds, content[: _write_numbers(before, numbers, content, bounds)])


def _column(offsets: Ints, content: NDArray[np.uint8]) -> pa.StringArray:
    if len(content) > LONGEST:
        raise pa.ArrowInvalid(f"the texts of a column have {len(content):,} bytes; the limit is {LONGEST:,}")
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(content))


def _offsets(column: pa.StringArray) -> NDArray[np.int32]:
    if not len(column):  # it may have none
        return _held(bytes(4), np.int32)
    return _held(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]


def _bytes(column: pa.StringArray) -> NDArray[np.uint8]:
    return _held(column.buffers()[2] or b"", np.uint8)


def _held(buffer: Any, kind: type[Any]) -> NDArray[Any]:
    """A buffer as a read-only array, whoever made it, so that the kernels need only one type."""
    found = np.frombuffer(buffer, kind)
    found.setflags(write=False)
    return found


def has_any(column: pa.StringArray, marked: NDArray[np.bool_]) -> bool:
    """Whether texts contain a marked byte."""
    offsets = _offsets(column)
    return _has_any(_bytes(column), int(offsets[0]), int(offsets[-1]), marked)


@lean_kernel
def _has_any(data: Any, first: int, last: int, marked: Any) -> bool:
    found = False
    for i in range(first, last):
        found |= marked[data[i]]
    return found


@lean_kernel
def _measure_texts(offsets: Any, places: Any, number: int, pieces: int, bounds: Any) -> None:
    """Writes the length of the piece with a number of each row, after its place among the bounds."""
    for row in range(len(places)):
        if places[row] >= 0:
            bounds[row * pieces + number + 1] = offsets[places[row] + 1] - offsets[places[row]]


@lean_kernel
def _copy_texts(data: Any, offsets: Any, places: Any, bounds: Any, number: int, pieces: int, into: Any) -> None:
    """Copies the piece with a number of each row to its bounds, in words of eight bytes. The last word of a text
    overlaps the one before it: the bytes after a text may have been written already."""
    for row in range(len(places)):
        if places[row] < 0:
            continue
        first, last = np.int64(offsets[places[row]]), np.int64(offsets[places[row] + 1])
        at = bounds[row * pieces + number]
        if last - first < 8:
            for k in range(last - first):
                into[at + k] = data[first + k]
            continue
        shift = at - first
        while first + 8 < last:
            put_word(into, first + shift, word_at(data, first))
            first += 8
        put_word(into, last - 8 + shift, word_at(data, last - 8))


@lean_kernel
def _write_numbers(prefix: Any, numbers: Any, into: Any, bounds: Any) -> int:
    """Writes each number after the prefix. Sets the bounds of the texts, and returns the last one."""
    at = 0
    for row in range(len(numbers)):
        for k in range(len(prefix)):
            into[at + k] = prefix[k]
        rest, digits = numbers[row] // 10, 1
        while rest > 0:
            rest, digits = rest // 10, digits + 1
        rest, at = numbers[row], at + len(prefix) + digits
        for k in range(digits):
            into[at - 1 - k] = 48 + rest % 10
            rest //= 10
        bounds[row + 1] = at
    return at
