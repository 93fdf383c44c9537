"""A text file that may grow: its complete rows from a position on, with a checksum of everything before.

In: the path, and how far the file was read before. Out: blocks of complete rows. A last row without a line break may be
half written: it is left until the file has not changed for `SETTLING` seconds and no process has it open for writing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import xxhash

from fishweir.intake.sources.lines import BLOCK, last_break

SETTLING = 1.0
BOM = b"\xef\xbb\xbf"


class Section:
    """`end` is the number of bytes of the rows read so far, and `sum` their checksum. It is empty if the last of these
    rows has no line break, since more of that row may follow."""

    def __init__(self, path: Path, end: int = 0, sum: str = "") -> None:
        self.path, self.end, self.sum = path, end, sum
        self.left = False
        """Whether a half-written row was left."""
        self._before: tuple[xxhash.xxh3_128, int] | None = None

    def continues(self) -> bool:
        """Whether the file still starts with what was read before."""
        if not self.sum or not self.end:
            return False
        try:
            self._before = self._prefix()
        except OSError:
            return False
        return self._before[0].hexdigest() == self.sum

    def _prefix(self) -> tuple[xxhash.xxh3_128, int]:
        """The hash of what was read before, and the number of the line after it."""
        hash, line, left = xxhash.xxh3_128(), 1, self.end
        with self.path.open("rb") as file:
            while left and (data := file.read(min(left, BLOCK))):
                hash.update(data)
                line += data.count(b"\n")
                left -= len(data)
        return hash, line

    def blocks(self, quoted: bool, size: int = BLOCK) -> Iterator[tuple[int, bytes]]:
        """Blocks of complete rows with the number of their first line; if `quoted`, none ends inside quotes."""
        hash, line = self._before or self._prefix()
        with self.path.open("rb") as file:
            if not self.end and file.read(len(BOM)) == BOM:
                self.end = len(BOM)
                hash.update(BOM)
            file.seek(self.end)
            rest = b""
            while data := file.read(size):
                data = rest + data
                cut = last_break(data, quoted)
                block, rest = data[:cut], data[cut:]
                if block:
                    hash.update(block)
                    self.end, self.sum = self.end + len(block), hash.hexdigest()
                    yield line, block
                    line += block.count(b"\n")
            if rest and not is_settled(self.path, self.end + len(rest)):
                self.left = True
            elif rest:
                self.end, self.sum = self.end + len(rest), ""
                yield line, rest


def is_settled(path: Path, size: int | None = None) -> bool:
    """Whether a file of this size has probably been written completely."""
    status = os.stat(path)
    is_old = abs(time.time() - status.st_mtime) >= SETTLING
    return is_old and size in (None, status.st_size) and not is_open_for_writing(path)


def is_open_for_writing(path: Path) -> bool:
    """Whether a process has a file open for writing; False if the file system cannot tell. A read lease is granted only
    for files that no process writes. It is released immediately; until then, a writer causes a signal that is ignored.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:  # reading it reports the error
        return False
    try:
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(file)
    return False
