"""Writing to the disk: content and names that are still there after the machine has stopped."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress


@contextmanager
def opened(path: str, how: int) -> Iterator[int]:
    handle = os.open(path, how, 0o666)
    try:
        yield handle
    finally:
        os.close(handle)


def write_pieces(handle: int, pieces: Sequence[bytes | memoryview], offset: int) -> None:
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


def commit(temporary: str, path: str) -> None:
    """Gives a file that is on the disk its name, which must be free. If this fails, it does not have the name."""
    with opened(os.path.dirname(path), os.O_RDONLY) as folder:
        os.link(temporary, path)
        try:
            os.fsync(folder)
        except OSError:
            os.unlink(path)
            raise


def synchronize(path: str) -> None:
    """Makes sure that a file and its name are on the disk."""
    for place in (path, os.path.dirname(path)):
        with opened(place, os.O_RDONLY) as handle:
            os.fsync(handle)


@contextmanager
def temporary_file(folder: str) -> Iterator[str]:
    """The name of a file that is removed at the end."""
    name = f"{folder}/.{os.getpid()}-{uuid.uuid4().hex}.tmp"
    try:
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
