"""Appending to a log: commits a segment.

A writer holds the lock of the list of segments. It writes the segment to the disk, into the newest pack or into a file
of its own, and then adds a line to the list. If it dies in between, the segment may be on the disk without a line. The
next writer, and whoever opens the log next, heals this (healing.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fishweir.intake.durable import commit, opened, temporary_file, write_pieces
from fishweir.intake.healing import heal
from fishweir.intake.packs import LARGEST_PACK, LARGEST_SEGMENT, framed, pack_path
from fishweir.intake.segment_list import Listed, add_line, locked, own_path
from fishweir.intake.segments import Segments
from fishweir.sealed import seal_of, seal_of_bytes, writing

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 1 << 24
"""The size in bytes up to which a segment is written at once, which is faster than piece by piece."""


def append_segment(segments: Segments, stored: pa.RecordBatch | pa.Table) -> int:
    """Commits a segment and returns the number of its first entry. On return, it is on the disk."""
    content, rows = _content(stored), stored.num_rows
    with writing(Path(segments.folder)):
        if content is not None and len(content) <= LARGEST_SEGMENT:
            return _append(segments, partial(_write_packed, segments, content, rows))
        with temporary_file(segments.folder) as temporary:
            seal = _write_own(temporary, stored, content)  # this takes long, so without the lock
            return _append(segments, partial(_commit_own, segments, temporary, Listed(rows, seal)))


def _append(segments: Segments, write: Callable[[], Listed]) -> int:
    """Writes a segment behind the others, lists it and returns the number of its first entry."""
    with locked(segments.folder) as list_file:
        heal(segments, list_file)
        first, listed = segments.head + 1, write()
        try:
            segments.add(first, listed, add_line(list_file, first, listed))
        except OSError:
            _take_back(listed, listed.path(segments.folder, first))
            raise
    return first


def _content(stored: pa.RecordBatch | pa.Table) -> memoryview | None:
    """A segment as Arrow IPC data; None if it is too large to be written at once."""
    import pyarrow as pa

    if stored.nbytes > AT_ONCE:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, stored.schema) as writer:
        writer.write(stored)
    return memoryview(sink.getvalue())


def _write_own(temporary: str, stored: pa.RecordBatch | pa.Table, content: memoryview | None) -> str:
    """Writes a segment with a file of its own to the disk, and returns its seal."""
    import pyarrow as pa

    with open(temporary, "wb") as file:  # buffered: Arrow does not notice if less than all was written
        if content is not None:
            file.write(content)
        else:
            with pa.ipc.new_file(pa.PythonFile(file, "w"), stored.schema) as writer:
                writer.write(stored)
        file.flush()
        os.fsync(file.fileno())
    return seal_of(Path(temporary)) if content is None else seal_of_bytes(content)


def _commit_own(segments: Segments, temporary: str, listed: Listed) -> Listed:
    commit(temporary, own_path(segments.folder, segments.head + 1))
    return listed


def _write_packed(segments: Segments, content: memoryview, rows: int) -> Listed:
    """Writes a segment to the newest pack, or to a new one if it is full or was damaged."""
    seal, first, (pack, end) = seal_of_bytes(content), segments.head + 1, segments.tail()
    pieces = framed(content, rows, seal)
    if pack and end + sum(map(len, pieces)) <= LARGEST_PACK:
        with suppress(FileNotFoundError), opened(pack_path(segments.folder, pack), os.O_WRONLY) as handle:
            if os.fstat(handle).st_size == end:
                try:
                    write_pieces(handle, pieces, end)
                except OSError:
                    os.ftruncate(handle, end)
                    raise
                return Listed(rows, seal, pack, end)
    with temporary_file(segments.folder) as temporary:
        with opened(temporary, os.O_WRONLY | os.O_CREAT) as handle:
            write_pieces(handle, pieces, 0)
        commit(temporary, pack_path(segments.folder, first))
    return Listed(rows, seal, first, 0)


def _take_back(listed: Listed, path: str) -> None:
    """Removes a segment that could not be listed."""
    with suppress(OSError):
        if listed.offset:
            os.truncate(path, listed.offset)
        else:
            os.unlink(path)
