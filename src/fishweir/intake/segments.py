"""The committed segments of a log, as far as a process knows them.

In: the list of segments, of which each call reads the new lines. A segment is known once it is listed. If a line in the
middle is missing, the segments themselves say where they begin and end: files by their name and metadata, packs by
their headers.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from pathlib import Path

from fishweir.intake.packs import pack_path
from fishweir.intake.segment_list import LIST, Listed, own_path, packed_segments, parse_listed, segment_rows
from fishweir.sealed import reading

logger = logging.getLogger("fishweir.home")


class Segments:
    """Can be used by several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.head = self.read_upto = 0
        """The number of the newest known entry, and the number of bytes of the list that have been read."""
        self.firsts: list[int] = []
        """The first entries of all known segments, in order."""
        self._listed: dict[int, Listed] = {}
        self._newest = 0
        """The first entry of the newest listed segment."""
        self.is_complete = False
        """Whether a writer has made sure that no file follows behind the newest segment. Then none ever does."""
        self._place, self._inode = f"{folder}/{LIST}", 0
        self._lock = threading.RLock()
        self.refresh()

    def of(self, first: int) -> Listed | None:
        """The segment that begins with an entry; None if it is not listed."""
        if first not in self._listed:
            self.refresh()
        return self._listed.get(first)

    def refresh(self) -> None:
        """Takes note of new segments. Costs one look at the list if there are none."""
        with self._lock:
            if self._read():
                while self.head < self._newest:
                    end = self.end(self.head + 1)
                    if end is None:
                        self._bridge()
                    else:
                        self.firsts.append(self.head + 1)
                        self.head = end

    def add(self, first: int, listed: Listed, read_upto: int) -> None:
        """Takes note of a new segment whose line ends at a position of the list. Another thread may have read it."""
        with self._lock:
            if first > self.head:
                self._listed[first] = listed
                self.firsts.append(first)
                self._newest, self.head, self.read_upto = first, first + listed.rows - 1, read_upto

    def end(self, first: int) -> int | None:
        """The last entry of a segment; None if it is not listed and cannot be read."""
        if first in self._listed:
            return first + self._listed[first].rows - 1
        path = own_path(self.folder, first)
        return first + rows - 1 if os.path.exists(path) and (rows := segment_rows(Path(path))) else None

    def tail(self) -> tuple[int, int]:
        """The pack of the newest segment, and the position after it; zeros if it has a file of its own."""
        newest = self._listed.get(self._newest)
        return (newest.pack, newest.end) if newest is not None and newest.pack else (0, 0)

    def unlisted(self) -> tuple[str, int] | None:
        """The file that contains data behind the newest known segment, and where they start there."""
        pack, end = self.tail()
        if pack:
            with suppress(FileNotFoundError):
                if os.stat(path := pack_path(self.folder, pack)).st_size > end:
                    return path, end
        for path in (own_path(self.folder, self.head + 1), pack_path(self.folder, self.head + 1)):
            if os.path.exists(path):
                return path, 0
        return None

    def _bridge(self) -> None:
        """Called if a line is missing. If no pack contains the segment, its entries are missing, too: the log continues
        with the next segment, and whoever reads them gets an error."""
        found = packed_segments(Path(self.folder))
        self._listed |= {first: one for first, one in found.items() if self.head < first < self._newest}
        self.head = min(first for first in self._listed if first > self.head) - 1

    def _read(self) -> bool:
        """Reads new lines of the list; returns whether there are any. Damaged lines are ignored."""
        try:
            now = os.stat(self._place)
        except FileNotFoundError:
            return False
        size = now.st_size
        if now.st_ino != self._inode or size < self.read_upto:  # it was replaced
            self._inode, self.read_upto = now.st_ino, 0
        if size == self.read_upto:
            return False
        with reading(Path(self._place)), open(self._place, "rb", buffering=0) as file:
            file.seek(self.read_upto)
            text = file.read(size - self.read_upto)
        text = text[: text.rfind(b"\n") + 1]
        self.read_upto += len(text)
        parsed = [parse_listed(line) for line in text.decode(errors="replace").splitlines()]
        if None in parsed:
            logger.warning("%s has a damaged line; `fishweir repair` rebuilds the list", self._place)
        self._listed |= dict(one for one in parsed if one is not None)
        self._newest = max((self._newest, *(first for first, _ in filter(None, parsed))))
        return bool(parsed)
