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
WIDTH = 12
"""The number of bytes per arrival."""
LONGEST = 1 << 20


def announce(log: Path) -> None:
    """Announces new entries in a log, which is in the folder of its stream."""
    streams, id = os.path.split(os.path.dirname(log))
    announce_stream(Path(streams).parent / NAME, id)


def announce_stream(place: Path, id: str) -> None:
    """Announces a stream. Has no effect if the file does not exist: a log need not be in a home."""
    with suppress(OSError):
        file = os.open(place, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, f"{id:>{WIDTH - 1}}\n".encode())
        finally:
            os.close(file)


class Arrivals:
    """A reader of the file."""

    def __init__(self, place: Path) -> None:
        self._place = str(place)
        self._file, self._position = -1, 0

    def next(self) -> set[int] | None:
        """The streams announced since the last call; None if some may be unknown, as at the first call."""
        try:
            found = os.stat(self._place)
        except OSError:
            return None
        if found.st_ino != self._file or found.st_size < self._position:
            self._file, self._position = found.st_ino, found.st_size - found.st_size % WIDTH
            return None
        if found.st_size - self._position < WIDTH:
            return set()
        with open(self._place, "rb") as file:
            file.seek(self._position)
            content = file.read(found.st_size - self._position)
        whole = len(content) - len(content) % WIDTH
        self._position += whole
        try:
            return {int(id) for id in content[:whole].split()}
        except ValueError:  # the file is damaged
            return None

    def shorten(self) -> None:
        """Replaces a file that has become long."""
        if self._position > LONGEST:
            with suppress(OSError):
                new = f"{self._place}.{os.getpid()}.tmp"
                Path(new).touch()
                os.replace(new, self._place)
