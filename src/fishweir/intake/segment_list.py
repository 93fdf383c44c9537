"""The list of a log's segments: a line for each committed segment, with its first number, its rows and its seal, and
where it is in a pack (packs.py) unless it has a file of its own."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from fishweir.errors import HomeError
from fishweir.intake.packs import SUFFIX, Packed, pack_path, packed_from
from fishweir.sealed import digest, reading, seal_of

LIST = "segments.list"
OWN_SUFFIX = ".arrow"
"""The suffix of a segment with a file of its own."""


class Listed(NamedTuple):
    """A committed segment."""

    rows: int
    seal: str
    pack: int = 0
    """The number of the first entry of its pack; 0 if it has a file of its own."""
    offset: int = 0
    """The position of its header in the pack."""

    @property
    def end(self) -> int:
        """The position after it in the pack."""
        return Packed(self.offset, self.rows, self.seal).end

    def path(self, folder: str, first: int) -> str:
        """The file of the segment that begins with an entry."""
        return pack_path(folder, self.pack) if self.pack else own_path(folder, first)


def own_path(folder: str, first: int) -> str:
    return f"{folder}/{first:015d}{OWN_SUFFIX}"


def listed_segments(folder: Path) -> tuple[dict[int, Listed], int]:
    """The content of the list of a log, by first number, and the number of damaged lines."""
    path = folder / LIST
    if not path.exists():
        return {}, 0
    with reading(path):
        lines = [parse_listed(line) for line in path.read_bytes().decode(errors="replace").splitlines()]
    return dict(line for line in lines if line is not None), lines.count(None)


def rebuilt_list(folder: Path) -> bytes | None:
    """The list of a log with a line for each segment on the disk; None if the list is complete and undamaged. Called
    with the lock."""
    listed, damaged = listed_segments(folder)
    found = {first: one for first, one in packed_segments(folder).items() if first not in listed}
    for first in firsts_of(folder, OWN_SUFFIX):
        path = Path(own_path(str(folder), first))
        if first not in listed and (rows := segment_rows(path)):
            found[first] = Listed(rows, seal_of(path))
    if not damaged and not found:
        return None
    return b"".join(listed_line(first, one) for first, one in sorted({**listed, **found}.items()))


def firsts_of(folder: Path, suffix: str) -> list[int]:
    """The numbers that name the segments with files of their own, or the packs.

    A directory listing may miss a file that is added while it runs and still include a later one. All files before the
    newest one of the first listing are in the second listing.
    """
    newest = max(_named(folder, suffix), default=0)
    return sorted(first for first in _named(folder, suffix) if first <= newest)


def _named(folder: Path, suffix: str) -> list[int]:
    return [int(path.stem) for path in folder.glob(f"[0-9]*{suffix}")] if folder.exists() else []


def newest_file(folder: str) -> int:
    """The largest number that names a segment with a file of its own, or a pack; 0 for none. Called with the lock."""
    names = map(os.path.splitext, os.listdir(folder))
    return max((int(stem) for stem, suffix in names if suffix in (OWN_SUFFIX, SUFFIX) and stem.isdigit()), default=0)


def packed_segments(folder: Path) -> dict[int, Listed]:
    """The segments of all packs of a log, by first number, according to the headers in the packs."""
    found = {}
    for pack in firsts_of(folder, SUFFIX):
        first = pack
        try:
            for one in packed_from(Path(pack_path(str(folder), pack))):
                found[first] = Listed(one.rows, one.seal, pack, one.offset)
                first += one.rows
        except HomeError:
            continue  # whoever reads its entries gets the error
    return found


def segment_rows(path: Path) -> int:
    """The number of entries of a segment with a file of its own; 0 if it cannot be read."""
    try:
        return read_rows(path)
    except HomeError:
        return 0


def read_rows(path: Path) -> int:
    import pyarrow as pa

    with reading(path):
        return int(pa.ipc.open_file(pa.memory_map(str(path))).schema.metadata[b"rows"])


@contextmanager
def locked(folder: str, wait: bool = True) -> Iterator[int]:
    """The list of a log, open for appending. Only one writer has it at a time. If another one has it, and `wait` is
    false, raises BlockingIOError."""
    place = f"{folder}/{LIST}"
    while True:
        with open(place, "a+b", buffering=0) as file:
            _in_use.add(file)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                if _is_at(file.fileno(), place):
                    yield file.fileno()
                    return
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)  # otherwise, a process forked in the meantime keeps the lock
                _in_use.discard(file)


_in_use: set[FileIO] = set()
"""The lists that threads of this process lock or wait for."""


def _close_in_child() -> None:
    """Called in a forked process, which has none of these threads: if this process is killed, the child would keep the
    locks for as long as it lives."""
    while _in_use:
        _in_use.pop().close()


os.register_at_fork(after_in_child=_close_in_child)


def _is_at(handle: int, place: str) -> bool:
    """Whether an open list is still the one of its log: `fishweir repair` replaces it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), os.stat(place))
    return False


def add_line(list_file: int, first: int, listed: Listed) -> int:
    """Adds the line that makes a segment visible, and returns the position after it."""
    line, end = listed_line(first, listed), os.fstat(list_file).st_size
    try:
        rest = line
        while rest:
            rest = rest[os.write(list_file, rest) :]
    except OSError:
        os.ftruncate(list_file, end)
        raise
    return end + len(line)


def listed_line(first: int, listed: Listed) -> bytes:
    line = f"{first} {listed.rows} {listed.seal}" + (f" {listed.pack} {listed.offset}" if listed.pack else "")
    return f"{line} {digest(line.encode())[:8]}\n".encode()


def parse_listed(line: str) -> tuple[int, Listed] | None:
    """A line of the list: the first number and the segment; None if the line is damaged."""
    content, _, sum = line.rpartition(" ")
    if digest(content.encode())[:8] != sum:
        return None
    first, rows, seal, *where = content.split(" ")
    return int(first), Listed(int(rows), seal, *map(int, where))
