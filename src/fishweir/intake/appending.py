"""Appending to a log: commits a segment, and heals what a process left behind that died while it appended.

A writer holds the lock of the list of segments. It writes the segment to the disk, into the newest pack or into a file
of its own, and then adds a line to the list. If it dies in between, the segment may be on the disk without a line. The
next writer, and whoever opens the log next, adds the line if the segment is whole, and otherwise sets it aside. It does
the same if the machine stopped, since the list is not synchronized with the disk.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fishweir.errors import HomeError
from fishweir.intake.packs import (
    LARGEST_PACK,
    LARGEST_SEGMENT,
    SUFFIX,
    framed,
    pack_path,
    packed_from,
    read_packed,
)
from fishweir.intake.segment_list import LIST, OWN_SUFFIX, Listed, firsts_of, listed_line, own_path, segment_rows
from fishweir.intake.segments import Segments
from fishweir.sealed import damaged, seal_of, seal_of_bytes, write_all, writing

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("fishweir.home")

AT_ONCE = 1 << 24
"""The size in bytes up to which a segment is written at once, which is faster than piece by piece."""


@contextmanager
def locked(folder: str, wait: bool = True) -> Iterator[int]:
    """The list of a log, open for appending. Only one writer has it at a time."""
    with _opened(f"{folder}/{LIST}", os.O_RDWR | os.O_APPEND | os.O_CREAT) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield handle


def append_segment(segments: Segments, stored: pa.RecordBatch | pa.Table) -> int:
    """Commits a segment and returns the number of its first entry. On return, it is on the disk."""
    content, rows = _content(stored), stored.num_rows
    with writing(Path(segments.folder)):
        if content is not None and len(content) <= LARGEST_SEGMENT:
            return _append(segments, partial(_write_packed, segments, content, rows))
        with _temporary_file(segments.folder) as temporary:
            seal = _write_own(temporary, stored, content)  # this takes long, so without the lock
            return _append(segments, partial(_commit_own, segments, temporary, Listed(rows, seal)))


def _append(segments: Segments, write: Callable[[], Listed]) -> int:
    """Writes a segment behind the others, lists it and returns the number of its first entry."""
    with locked(segments.folder) as list_file:
        heal(segments, list_file)
        first, listed = segments.head + 1, write()
        try:
            _add_line(segments, list_file, first, listed)
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

    with open(temporary, "wb", buffering=0) as file:
        if content is not None:
            write_all(file, content)
        else:
            with pa.ipc.new_file(pa.PythonFile(file, "w"), stored.schema) as writer:
                writer.write(stored)
        os.fsync(file.fileno())
    return seal_of(Path(temporary)) if content is None else seal_of_bytes(content)


def _commit_own(segments: Segments, temporary: str, listed: Listed) -> Listed:
    _commit(temporary, own_path(segments.folder, segments.head + 1))
    return listed


def _write_packed(segments: Segments, content: memoryview, rows: int) -> Listed:
    """Writes a segment to the newest pack, or to a new one if it is full or was damaged."""
    seal, first, (pack, end) = seal_of_bytes(content), segments.head + 1, segments.tail()
    pieces = framed(content, rows, seal)
    if pack and end + sum(map(len, pieces)) <= LARGEST_PACK:
        with suppress(FileNotFoundError), _opened(pack_path(segments.folder, pack), os.O_WRONLY) as handle:
            if os.fstat(handle).st_size == end:
                try:
                    _write_pieces(handle, pieces, end)
                except OSError:
                    os.ftruncate(handle, end)
                    raise
                return Listed(rows, seal, pack, end)
    with _temporary_file(segments.folder) as temporary:
        with _opened(temporary, os.O_WRONLY | os.O_CREAT) as handle:
            _write_pieces(handle, pieces, 0)
        _commit(temporary, pack_path(segments.folder, first))
    return Listed(rows, seal, first, 0)


@contextmanager
def _opened(path: str, how: int) -> Iterator[int]:
    handle = os.open(path, how, 0o666)
    try:
        yield handle
    finally:
        os.close(handle)


def _write_pieces(handle: int, pieces: Sequence[bytes | memoryview], offset: int) -> None:
    """Writes pieces to a position of a file, and the file to the disk. A call may write less than all, if the disk is
    almost full; the next one then raises the error."""
    rest = list(pieces)
    while rest:
        written = os.pwritev(handle, rest, offset)
        offset += written
        while rest and written >= len(rest[0]):
            written -= len(rest.pop(0))
        if rest:
            rest[0] = memoryview(rest[0])[written:]
    os.fdatasync(handle)


def _commit(temporary: str, path: str) -> None:
    """Gives a file that is on the disk its name. The name is not taken: `heal` has looked."""
    os.link(temporary, path)
    with _opened(os.path.dirname(path), os.O_RDONLY) as folder:
        os.fsync(folder)


def _add_line(segments: Segments, list_file: int, first: int, listed: Listed) -> None:
    """Adds the line that makes a segment visible."""
    line, end = listed_line(first, listed), os.fstat(list_file).st_size
    try:
        rest = line
        while rest:
            rest = rest[os.write(list_file, rest) :]
    except OSError:
        os.ftruncate(list_file, end)
        raise
    segments.add(first, listed, end + len(line))


def _take_back(listed: Listed, path: str) -> None:
    """Removes a segment that could not be listed."""
    with suppress(OSError):
        if listed.offset:
            os.truncate(path, listed.offset)
        else:
            os.unlink(path)


def heal(segments: Segments, list_file: int) -> None:
    """Lists segments that are on the disk without a line; sets aside what was not written completely. Called with the
    lock."""
    segments.refresh()
    if os.fstat(list_file).st_size > segments.read_upto:
        os.ftruncate(list_file, segments.read_upto)  # a line was cut off
    while (found := segments.unlisted()) is not None:
        path, start = found
        listed = _whole_packed(Path(path), start) if path.endswith(SUFFIX) else _whole_own(Path(path))
        if listed is None:
            _set_aside(segments, Path(path), start)
        else:
            _add_line(segments, list_file, segments.head + 1, listed)


def heal_if_free(segments: Segments) -> None:
    """As `heal`, unless another process is appending, which does it, or the log may only be read."""
    with suppress(OSError, HomeError), locked(segments.folder, wait=False) as list_file:
        heal(segments, list_file)


def _whole_own(path: Path) -> Listed | None:
    rows = segment_rows(path)
    return Listed(rows, seal_of(path)) if rows else None


def _whole_packed(path: Path, start: int) -> Listed | None:
    """The segment at a position of a pack, if it is whole."""
    with suppress(HomeError):
        for found in packed_from(path, start):
            read_packed(path, start, found.seal)
            return Listed(found.rows, found.seal, int(path.stem), start)
    return None


def _set_aside(segments: Segments, path: Path, start: int) -> None:
    """Moves data that were not written completely out of the way. If others follow, they were, and are damaged now."""
    folder = Path(segments.folder)
    if max((*firsts_of(folder, OWN_SUFFIX), *firsts_of(folder, SUFFIX))) > segments.head + 1:
        raise damaged(path, "is damaged, and its list is missing")
    aside = path.with_suffix(f".{uuid.uuid4().hex[:8]}.incomplete")
    with writing(aside):
        if start:
            with open(path, "r+b") as file, open(aside, "wb") as target:
                file.seek(start)
                shutil.copyfileobj(file, target)
                file.truncate(start)
        else:
            path.rename(aside)
    shown = f"{path} was not written completely when the machine stopped"
    logger.warning("%s: it is set aside as %s, and the log continues after entry %d", shown, aside.name, segments.head)


@contextmanager
def _temporary_file(folder: str) -> Iterator[str]:
    """The name of a file that is removed at the end."""
    name = temporary_name(folder)
    try:
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def temporary_name(folder: str) -> str:
    return f"{folder}/.{os.getpid()}-{uuid.uuid4().hex}.tmp"
