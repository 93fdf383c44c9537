"""The wake-up pipe of a home: appending to a log wakes the job immediately.

It is a named pipe, so it works across the processes of one machine. Entries appended from another machine are noticed
at the next poll.
"""

from __future__ import annotations

import errno
import os
import select
from contextlib import suppress

from fishweir.pipeline.home import Home


class WakeUpPipe:
    """The job's end of the pipe."""

    def __init__(self, home: Home) -> None:
        path = home.path / "bell"
        with suppress(FileExistsError):
            os.mkfifo(path)
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def wait(self, seconds: float) -> None:
        """Waits until it is woken, or was woken since the last call, up to a time limit."""
        poll = select.poll()  # `select` does not support file descriptors above 1,023
        poll.register(self._pipe, select.POLLIN)
        if poll.poll(seconds * 1000):
            with suppress(BlockingIOError):
                os.read(self._pipe, 65_536)

    def close(self) -> None:
        os.close(self._pipe)


def wake_up(home: Home) -> None:
    """Wakes the job if it is running; has no effect otherwise."""
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
