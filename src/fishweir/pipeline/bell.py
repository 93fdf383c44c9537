"""The bell of a home: whoever appends to a log rings it, and the job looks at once.

It is a named pipe, so it is heard across processes of one machine. Who appends from elsewhere is noticed when the job
looks by itself.
"""

from __future__ import annotations

import errno
import os
import select
from contextlib import suppress

from fishweir.pipeline.home import Home


class Bell:
    """The job's end of the pipe."""

    def __init__(self, home: Home) -> None:
        path = home.path / "bell"
        with suppress(FileExistsError):
            os.mkfifo(path)
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def wait(self, seconds: float) -> None:
        """Until it rings, or has since the last call, but not longer than this."""
        poll = select.poll()  # `select` knows no file numbers above 1,023
        poll.register(self._pipe, select.POLLIN)
        if poll.poll(seconds * 1000):
            with suppress(BlockingIOError):
                os.read(self._pipe, 65_536)

    def close(self) -> None:
        os.close(self._pipe)


def ring(home: Home) -> None:
    """Heard if a job is running; nobody minds if not."""
    try:
        pipe = os.open(home.path / "bell", os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENXIO):
            return
        raise
    try:
        with suppress(BlockingIOError):
            os.write(pipe, b".")
    finally:
        os.close(pipe)
