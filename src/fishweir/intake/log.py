"""The durable log of a stream: append-only, in arrival order.

A *segment* is what one call appends: Arrow IPC data without the columns that have only NULLs (segment_files.py). Small
segments share a file, a pack (packs.py); a large one has a file of its own. A file is named by the number of its first
entry. The content does not include the numbers. A segment's metadata contain its number of rows and, if the source
provides one, a JSON *cursor*: entries and progress are committed together.

The *list of segments* (segment_list.py) has a line for each committed segment, which makes it visible. Its lock is held
while a process appends (appending.py). Readers need no lock: they look whether the list has grown. A listed segment
that is missing or damaged is an error only for readers of its entries.

Progress without entries (a file that yields no document) is a small file `<head>-<k>.cursor` next to the segments,
committed with a hard link, which fails if another process has taken that name. A source whose cursors contain its whole
progress may replace such files, so that they do not accumulate.
"""

from __future__ import annotations

import json
import math
import os
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishweir.algebra.nodes import StreamDefinition
from fishweir.intake.appending import append_segment
from fishweir.intake.arrivals import announce
from fishweir.intake.durable import commit, temporary_file
from fishweir.intake.healing import heal_if_needed
from fishweir.intake.segment_list import own_path
from fishweir.intake.segments import Segments
from fishweir.records import dataclass
from fishweir.sealed import damaged, read_json, sealed_json, stamp, writing

if TYPE_CHECKING:  # looking up the head of a log does not need Arrow, which takes long to load
    import pyarrow as pa

    from fishweir.intake.segment_files import Segment


@dataclass(frozen=True, slots=True)
class Entry:
    """One arrival. `id` is the publisher's or `<stream>-<number>`; `values` is None unless it is a tuple."""

    number: int
    id: str
    timestamp: float | None
    arrival: float
    problem: str | None
    change: str | None
    context: str | None
    body: bytes | None
    values: dict[str, Any] | None
    origin: int | None = None
    previous: int | None = None
    """For a row that was updated or deleted, the number of the entry with its previous version."""


class StreamLog:
    """The log of a stream in its own folder. It can be used by several processes and threads, and pickled."""

    def __init__(self, folder: Path, stream: StreamDefinition) -> None:
        self.folder, self.stream = Path(folder), stream
        self.folder.mkdir(parents=True, exist_ok=True)
        self.segments = Segments(self.folder)
        heal_if_needed(self.segments)

    def __reduce__(self) -> tuple[Any, ...]:
        return StreamLog, (self.folder, self.stream)

    @cached_property
    def schema(self) -> pa.Schema:
        from fishweir.intake.schema import log_schema

        return log_schema(self.stream)

    def head(self) -> int:
        """The number of the newest entry, 0 for none. Costs one look at the list if nothing is new."""
        self.segments.refresh()
        return self.segments.head

    def append(self, batch: pa.RecordBatch | pa.Table, cursor: dict[str, Any] | None = None) -> range:
        """Commits entries together with the source's progress, and returns the numbers of the entries.

        On return, the entries are on disk. An empty batch commits its cursor, if it has one.
        """
        from fishweir.intake.segment_files import stored_form

        if not batch.num_rows:
            if cursor is not None:
                self._append_cursor(cursor)
            return range(self.head() + 1, self.head() + 1)
        if not batch.schema.equals(self.schema):
            raise ValueError(f"stream {self.stream.name} expects {self.schema}, got {batch.schema}")
        first = append_segment(self.segments, stored_form(batch, cursor))
        announce(self.folder)
        return range(first, first + batch.num_rows)

    def read(self, after: int, upto: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The entries with after < number <= upto in order, as batches, each with the number of its first row.

        Batches are views of memory-mapped files: bodies that are not accessed are not read.
        """
        if upto > self.segments.head and upto > self.head():
            heal_if_needed(self.segments)
        if upto > self.segments.head:
            raise damaged(self.folder, f"ends at entry {self.segments.head:,}, but it had {upto:,}")
        firsts = self.segments.firsts
        position = max(bisect_right(firsts, after + 1) - 1, 0)
        number = min(firsts[position], after + 1) if firsts else 1
        while number <= upto:
            if position == len(firsts) or firsts[position] != number:
                raise damaged(self.folder, f"has no segment that begins with entry {number:,}")
            for batch in self._segment(number).batches:
                start, stop = max(after + 1 - number, 0), min(upto + 1 - number, batch.num_rows)
                if start < stop:
                    yield number + start, batch.slice(start, stop - start)
                number += batch.num_rows
            position += 1

    def arrivals(self, after: int) -> Iterator[tuple[float, int]]:
        """For each segment with entries after a number: the arrival time and the last number."""
        self.head()
        firsts = self.segments.firsts
        for first in firsts[max(bisect_right(firsts, after + 1) - 1, 0) :]:
            last = self.segments.end(first)
            if last is not None and last > after:
                yield self._segment(first).batches[0].column("arrival")[0].as_py(), last

    def entry(self, number: int) -> Entry:
        """One entry by its number; raises IndexError if it does not exist."""
        if not (0 < number <= self.segments.head or 0 < number <= self.head()):
            raise IndexError(f"stream {self.stream.name} has no entry {number}")
        _, found = next(self.read(number - 1, number))
        row = found.to_pylist()[0]
        given = row.pop("id")
        row.pop("since", None)
        from fishweir.intake.schema import column_name

        values = {name: row.pop(column_name(name)) for name, _ in self.stream.columns}
        good = self.stream.is_tuples and row["problem"] is None
        return Entry(number, given or f"{self.stream.name}-{number}", values=values if good else None, **row)

    def replace_cursor(self, cursor: dict[str, Any]) -> None:
        """Commits progress without entries, replacing any progress that was committed after the newest entry."""
        before = [path for head, _, path in self._idle() if head == self.head()]
        self._append_cursor(cursor)
        for path in before:
            path.unlink(missing_ok=True)

    def cursors(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """The cursors committed with or after entries whose number is greater than `after`, oldest first."""
        for head, path in self._committed():
            cursor = None if head < after else self._cursor(head, path)
            if cursor is not None:
                yield cursor

    def cursors_with_firsts(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The cursors, oldest first, each with the number of the first entry that was committed with or after it."""
        for head, path in self._committed():
            cursor = self._cursor(head, path)
            if cursor is not None:
                yield head + 1, cursor

    def newest(self, key: str) -> Any:
        """The value of this key in the newest cursor that has it, or None."""
        for head, path in reversed(self._committed()):
            cursor = self._cursor(head, path) or {}
            if key in cursor:
                return cursor[key]
        return None

    def _committed(self) -> list[tuple[int, Path | None]]:
        """Segments and cursors in order, each with the number of the newest entry before it. A cursor without entries
        has a file."""
        self.head()
        segments = [(first - 1, math.inf, None) for first in self.segments.firsts]
        return [(head, path) for head, _, path in sorted([*self._idle(), *segments], key=itemgetter(0, 1))]

    def _idle(self) -> list[tuple[int, float, Path]]:
        """The files of progress without entries: the newest entry before each, and its position after that entry."""
        return [(int(p.name[:15]), int(p.stem[16:]), p) for p in self.folder.glob("*.cursor")]

    def _cursor(self, head: int, path: Path | None) -> dict[str, Any] | None:
        if path is not None:
            return read_json(path)  # type: ignore[no-any-return]
        text = self._segment(head + 1).metadata.get(b"cursor")
        return None if text is None else json.loads(text)

    def _segment(self, first: int) -> Segment:
        from fishweir.intake.segment_files import open_segment

        listed = self.segments.of(first)
        folder = self.segments.folder
        path = own_path(folder, first) if listed is None else listed.path(folder, first)
        size, modified, inode = stamp(path)
        if listed is None or not listed.pack:
            return open_segment(self, path, (size, modified, inode), listed)
        if size < listed.end:  # if it is mapped, reading it would crash the process
            raise damaged(Path(path), f"has {size:,} bytes instead of {listed.end:,} or more")
        return open_segment(self, path, inode, listed)

    def _append_cursor(self, cursor: dict[str, Any]) -> None:
        head = self.head()
        with writing(self.folder), temporary_file(self.segments.folder) as temporary:
            with open(temporary, "wb") as file:
                file.write(sealed_json(cursor))
                file.flush()
                os.fsync(file.fileno())
            k = int(max((place + 1 for before, place, _ in self._idle() if before == head), default=0))
            while True:
                try:
                    return commit(temporary, f"{self.segments.folder}/{head:015d}-{k:06d}.cursor")
                except FileExistsError:
                    k += 1
