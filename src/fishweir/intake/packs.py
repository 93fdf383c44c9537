"""Packs: files that contain many small segments of a log, one after another.

Creating a file and making its name durable costs several times as much as appending to a file, and a home with a file
for each call of `publish` would soon have millions of them. Small segments are therefore appended to a pack. Like a
segment with a file of its own, a pack is named by the number of its first entry.

Each segment follows a header with its length, its rows and its checksum. The list of segments names its position; if
lines of the list are missing, the headers say the same. A segment is aligned, so that it can be mapped.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import xxhash

from fishweir.sealed import SMALL, damaged, digest, length_of, reading

SUFFIX = ".pack"
MAGIC = b"fishweir"
LARGEST_SEGMENT, LARGEST_PACK = 1 << 20, 1 << 24
"""The size in bytes up to which a segment is appended to a pack, and the size at which a new pack begins."""

ALIGNED = 64
"""Headers have this number of bytes, and segments start at multiples of it."""

_FIELDS = struct.Struct("<8sQQQ24x")
_SUM = struct.Struct("<Q")


class Packed(NamedTuple):
    """A segment in a pack, as its header describes it."""

    offset: int
    """The position of its header."""
    rows: int
    seal: str

    @property
    def end(self) -> int:
        """The position after the segment, where the next one begins."""
        return self.offset + ALIGNED + _aligned(length_of(self.seal))


def pack_path(folder: str, first: int) -> str:
    """A string, since several paths are made for each segment, and strings take less time."""
    return f"{folder}/{first:015d}{SUFFIX}"


def framed(content: memoryview, rows: int, seal: str) -> list[bytes | memoryview]:
    """The pieces that represent a segment in a pack."""
    fields = _FIELDS.pack(MAGIC, len(content), rows, int(seal.partition(":")[2], 16))
    header = fields + _SUM.pack(xxhash.xxh3_64_intdigest(fields))
    return [header, content, bytes(_aligned(len(content)) - len(content))]


def packed_from(path: Path, offset: int = 0) -> Iterator[Packed]:
    """The segments of a pack from a position on, up to the first header that is damaged or whose segment is cut off.
    Their content is not verified."""
    with reading(path), open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        while offset + ALIGNED <= size:
            header = os.pread(file.fileno(), ALIGNED, offset)
            fields, (sum,) = header[: _FIELDS.size], _SUM.unpack(header[_FIELDS.size :])
            magic, length, rows, content_sum = _FIELDS.unpack(fields)
            if magic != MAGIC or sum != xxhash.xxh3_64_intdigest(fields):
                return
            found = Packed(offset, rows, f"{length}:{content_sum:016x}")
            if found.end > size:
                return
            yield found
            offset = found.end


def has_segments_behind(path: Path, start: int) -> bool:
    """Whether a segment begins in a pack behind a position."""
    with reading(path), open(path, "rb") as file:
        file.seek(start)
        content = file.read()
    place = content.find(MAGIC, 1)
    while place > 0:
        if place % ALIGNED == 0 and next(packed_from(path, start + place), None) is not None:
            return True
        place = content.find(MAGIC, place + 1)
    return False


def read_packed(path: Path, offset: int, seal: str) -> bytes | memoryview:
    """The verified content of a segment in a pack. A large one is mapped."""
    length, start = length_of(seal), offset + ALIGNED
    with reading(path), open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size < start + length:
            raise damaged(path, f"has {size:,} bytes instead of {start + length:,} or more")
        content: bytes | memoryview
        if length <= SMALL:
            content = os.pread(file.fileno(), length, start)
        else:
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))[start : start + length]
    if f"{len(content)}:{digest(content)}" != seal:
        raise damaged(path, "is damaged (checksum mismatch)")
    return content


def verify_packed(path: Path, offset: int, rows: int, seal: str) -> None:
    """Verifies a segment in a pack with its header."""
    wanted = b"".join(framed(memoryview(read_packed(path, offset, seal)), rows, seal))
    with reading(path), open(path, "rb", buffering=0) as file:
        if os.pread(file.fileno(), len(wanted), offset) != wanted:
            raise damaged(path, "is damaged (a header differs from the list of segments)")


def _aligned(length: int) -> int:
    return -(-length // ALIGNED) * ALIGNED
