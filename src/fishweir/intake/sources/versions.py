"""The rows that a new version of a file has and the previous version did not have.

The log is authoritative, as for files that are declared as changing (changing.py): the cursors of its segments record
which entries came from which file, and which of these a later version no longer had. A version is always compared with
the remaining entries, as a multiset of rows by digest. So whatever happens between two segments, no row is lost or
repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from fishweir.intake.log import StreamLog

FILES, ROWS, GONE = "files", "rows", "gone"
"""Keys of a cursor: the marks of files, the number of entries of the segment for each of them, and by name, the ranges
of the entries that are no longer in the file."""
_OTHERS = frozenset(("id", "timestamp", "arrival", "since", "origin", "previous", "problem"))
"""Columns that do not distinguish rows. The problem of an invalid row has its line number; its text is in `body`."""

Range = tuple[int, int]
"""The first and the last number of consecutive entries."""


class Versions:
    """By file, the entries of its newest version."""

    def __init__(self, log: StreamLog) -> None:
        self.log = log
        self._ranges: dict[str, list[Range]] = {}
        taken: dict[str, tuple[Any, int]] = {}
        for first, cursor in log.cursors_with_firsts():
            if FILES in cursor:
                self.add(first, cursor, taken)

    def add(self, first: int, cursor: dict[str, Any], taken: dict[str, tuple[Any, int]] | None = None) -> None:
        """Follows a segment that begins with entry `first`. `taken` derives the counts in cursors without them."""
        marks = cursor[FILES]
        counts = cursor.get(ROWS) or [_count(mark, taken if taken is not None else {}) for mark in marks]
        for mark, count in zip(marks, counts, strict=True):
            if count:
                self._ranges.setdefault(mark[0], []).append((first, first + count - 1))
            first += count
        for name, gone in cursor.get(GONE, {}).items():
            self._ranges[name] = _without(self._ranges.get(name, []), [(a, b) for a, b in gone])

    def rows(self, name: str) -> dict[int, list[int]]:
        """The entries of a file by digest."""
        found: dict[int, list[int]] = {}
        for first, last in reversed(self._ranges.get(name, [])):
            batches = list(self.log.read(first - 1, last))
            for number, batch in reversed(batches):
                for place, digest in reversed(list(enumerate(row_digests(batch)))):
                    found.setdefault(digest, []).append(number + place)
        return found


class Comparison:
    """Compares a version of a file with the entries of the previous version while it is read."""

    def __init__(self, rows: dict[int, list[int]], path: Path) -> None:
        self._left, self._path = rows, path
        self._is_broken = False
        """Whether a part of the file could not be read."""

    def new(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The new rows of each batch, and the number of rows of the batch."""
        for batch in batches:
            problems = batch.column("problem").drop_null().to_pylist()
            self._is_broken |= any(problem.startswith(f"{self._path}: ") for problem in problems)  # else: "PATH, line"
            fresh = [place for place, digest in enumerate(row_digests(batch)) if not self._has(digest)]
            yield batch.num_rows, batch if len(fresh) == batch.num_rows else batch.take(pa.array(fresh, pa.int64()))

    def _has(self, digest: int) -> bool:
        """Whether there is an unused entry with this digest, which is then marked as used."""
        numbers = self._left.get(digest)
        if numbers is None:
            return False
        numbers.pop()
        if not numbers:
            del self._left[digest]
        return True

    def gone(self) -> list[Range]:
        """The entries that the version no longer has, once all of it has been read; none if a part cannot be read."""
        if self._is_broken:
            return []
        return list(_ranges(sorted(number for numbers in self._left.values() for number in numbers)))


def row_digests(batch: pa.RecordBatch) -> list[int]:
    """A digest of each entry's content."""
    columns = [batch.column(name).to_pylist() for name in batch.schema.names if name not in _OTHERS]
    return [xxhash.xxh3_128_intdigest(repr(row).encode("utf-8", "surrogatepass")) for row in zip(*columns, strict=True)]


def _count(mark: Any, taken: dict[str, tuple[Any, int]]) -> int:
    """The number of entries that a mark adds to those of the mark before it."""
    name, content, upto = mark[0], tuple(mark[1:3]), int(mark[3])
    before = taken.get(name)
    taken[name] = content, upto
    is_version = upto == 1 and len(mark) > 5 and mark[5]  # for a file that is one document
    return upto if before is None or (is_version and before[0] != content) else max(0, upto - before[1])


def _ranges(numbers: list[int]) -> Iterator[Range]:
    if numbers:
        array = np.array(numbers)
        ends = np.flatnonzero(np.diff(array) > 1)
        yield from zip(array[[0, *(ends + 1)]].tolist(), array[[*ends, -1]].tolist(), strict=True)


def _without(ranges: list[Range], gone: list[Range]) -> list[Range]:
    out = {number for first, last in gone for number in range(first, last + 1)}
    left = [number for first, last in ranges for number in range(first, last + 1) if number not in out]
    return list(_ranges(left))
