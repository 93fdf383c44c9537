"""The arrivals of a home: a file that names the streams with new entries, so that nobody has to look at every log.

Whoever appends to a log or creates a stream then adds the stream's id to the file. A reader remembers its position.
Correctness does not depend on the file, because a process may die before it writes there: readers also look at all logs
from time to time. A file that has become long is replaced by an empty one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

NAME = "arrivals"
LONGEST, LONGEST_ID = 1 << 20, 20


def announce(log: Path) -> None:
    """Announces new entries in a log, which is in the folder of its stream."""
    streams, id = os.path.split(os.path.dirname(log))
    announce_stream(f"{os.path.dirname(streams)}/{NAME}", id)


def announce_stream(place: Path | str, id: str) -> None:
    """Announces a stream. Has no effect if the file does not exist: a log need not be in a home. A file that cannot be
    written is removed, so that readers no longer rely on it."""
    try:
        file = os.open(place, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, f"{id}\n".encode())
        finally:
            os.close(file)
    except OSError:
        with suppress(OSError):
            os.unlink(place)


class Arrivals:
    """A reader of the file."""

    def __init__(self, place: Path) -> None:
        self._place = str(place)
        self._file, self._position = -1, 0

    def next(self) -> set[int] | None:
        """The streams announced since the last call; None if some may be unknown, as at the first call."""
        try:
            return self._next()
        except (OSError, ValueError):  # the file is missing or damaged
            return None

    def _next(self) -> set[int] | None:
        found = os.stat(self._place)
        if found.st_ino != self._file or found.st_size < self._position:
            self._file, self._position = found.st_ino, found.st_size
            return None
        if found.st_size == self._position:
            return set()
        with open(self._place, "rb") as file:
            file.seek(self._position)
            content = file.read(found.st_size - self._position)
        whole = content.rfind(b"\n") + 1
        if len(content) - whole > LONGEST_ID:
            raise ValueError("this is no id")
        self._position += whole
        return {int(id) for id in content[:whole].splitlines()}

    def shorten(self) -> None:
        """Replaces a file that has become long."""
        if self._position > LONGEST:
            with suppress(OSError):
                new = f"{self._place}.{os.getpid()}.tmp"
                Path(new).touch()
                os.replace(new, self._place)
