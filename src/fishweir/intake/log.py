"""The durable log of a stream: append-only, in arrival order.

A *segment* is one Arrow IPC file named by the number of its first entry, without the columns that have only NULLs
(segment_files.py). It is written under a temporary name and committed with a hard link, which fails if another process
has taken that number. The name of the next segment is predictable, so processes append without locks and readers probe
for one name. A file's content does not include the numbers. A segment's metadata contain its number of rows and, if the
source provides one, a JSON *cursor*: entries and progress are committed by the same link.

The *list of segments* (segment_list.py) has a line for each committed segment. It is written after the link, so a
segment that is not listed and cannot be read was never committed completely: it is set aside. A listed segment that is
missing or damaged is an error only for readers of its entries.

Progress without entries (a file that yields no document) is a small file `<head>-<k>.cursor` next to the segments,
committed in the same way. It takes no number, so an empty segment never blocks a name. A source whose cursors contain
its whole progress may replace such files, so that they do not accumulate.
"""

from __future__ import annotations

import json
import logging
import math
import os
import threading
import uuid
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishweir.algebra.nodes import StreamDefinition
from fishweir.errors import HomeError
from fishweir.intake.arrivals import announce
from fishweir.intake.segment_list import LIST, listed_line, parse_listed
from fishweir.records import dataclass
from fishweir.sealed import (
    damaged,
    read_json,
    reading,
    seal_of,
    seal_of_bytes,
    sealed_json,
    stamp,
    write_all,
    writing,
)

if TYPE_CHECKING:  # looking up the head of a log does not need Arrow, which takes long to load
    import pyarrow as pa

    from fishweir.intake.segment_files import Segment

logger = logging.getLogger("fishweir.home")

AT_ONCE = 1 << 24
"""The size in bytes up to which a segment is written at once, which is faster than piece by piece."""


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
        self._place = str(folder)  # strings take less time than paths, and several are made for each segment
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._listed: dict[int, tuple[int, str]] = {}
        self._position = 0
        self._read_list()
        self._firsts = sorted({*_committed_firsts(self.folder), *self._listed})
        self._head = 0
        while self._firsts and not self._head:
            self._head = self._end(self._firsts[-1]) or 0
            if not self._head:
                self._set_aside(self._firsts.pop())

    def __reduce__(self) -> tuple[Any, ...]:
        return StreamLog, (self.folder, self.stream)

    @cached_property
    def schema(self) -> pa.Schema:
        from fishweir.intake.schema import log_schema

        return log_schema(self.stream)

    def head(self) -> int:
        """The number of the newest entry, 0 for none. Costs one probe if nothing is new."""
        with self._lock:
            while os.path.exists(self._named(self._head + 1)):
                end = self._end(self._head + 1)
                if end is None:
                    self._set_aside(self._head + 1)
                    break
                self._firsts.append(self._head + 1)
                self._head = end
            return self._head

    def append(self, batch: pa.RecordBatch | pa.Table, cursor: dict[str, Any] | None = None) -> range:
        """Commits entries together with the source's progress, and returns the numbers of the entries.

        On return, the entries are on disk. An empty batch commits its cursor, if it has one.
        """
        if not batch.num_rows:
            if cursor is not None:
                self._append_cursor(cursor)
            return range(self.head() + 1, self.head() + 1)
        temporary = self._temporary()
        with writing(self.folder, temporary):
            seal = self._write_segment(temporary, batch, cursor)
            first = self._commit_segment(temporary)
            os.unlink(temporary)
            _sync_folder(self._place)
            self._list(first, batch.num_rows, seal)
        announce(self.folder)
        return range(first, first + batch.num_rows)

    def read(self, after: int, upto: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The entries with after < number <= upto in order, as batches, each with the number of its first row.

        Batches are views of memory-mapped files: bodies that are not accessed are not read.
        """
        if upto > self._head and upto > self.head():
            raise damaged(self.folder, f"ends at entry {self._head:,}, but it had {upto:,}")
        position = max(bisect_right(self._firsts, after + 1) - 1, 0)
        number = self._firsts[position] if self._firsts else 1
        while number <= upto:
            if position == len(self._firsts) or self._firsts[position] != number:
                raise damaged(self._path(number), "is missing")
            for batch in self._segment(number).batches:
                start, stop = max(after + 1 - number, 0), min(upto + 1 - number, batch.num_rows)
                if start < stop:
                    yield number + start, batch.slice(start, stop - start)
                number += batch.num_rows
            position += 1

    def arrivals(self, after: int) -> Iterator[tuple[float, int]]:
        """For each segment with entries after a number: the arrival time and the last number."""
        self.head()
        for first in self._firsts[max(bisect_right(self._firsts, after + 1) - 1, 0) :]:
            last = self._end(first)
            if last is not None and last > after:
                yield self._segment(first).batches[0].column("arrival")[0].as_py(), last

    def entry(self, number: int) -> Entry:
        """One entry by its number; raises IndexError if it does not exist."""
        if not (0 < number <= self._head or 0 < number <= self.head()):
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

    def _committed(self) -> list[tuple[int, Path]]:
        """Segments and cursors in order, each with the number of the newest entry before it."""
        self.head()
        segments = [(first - 1, math.inf, self._path(first)) for first in self._firsts]
        return [(head, path) for head, _, path in sorted(self._idle() + segments)]

    def _idle(self) -> list[tuple[int, float, Path]]:
        """The files of progress without entries: the newest entry before each, and its position after that entry."""
        return [(int(p.name[:15]), int(p.stem[16:]), p) for p in self.folder.glob("*.cursor")]

    def _cursor(self, head: int, path: Path) -> dict[str, Any] | None:
        if path.suffix == ".cursor":
            return read_json(path)  # type: ignore[no-any-return]
        text = self._segment(head + 1).metadata.get(b"cursor")
        return None if text is None else json.loads(text)

    def _path(self, first: int) -> Path:
        return Path(self._named(first))

    def _named(self, first: int) -> str:
        return f"{self._place}/{first:015d}.arrow"

    def _segment(self, first: int) -> Segment:
        from fishweir.intake.segment_files import open_segment

        if first not in self._listed:
            self._read_list()
        path, (_, seal) = self._path(first), self._listed.get(first, (0, ""))
        return open_segment(self, path, stamp(path), seal)

    def _end(self, first: int) -> int | None:
        """The last number of a segment; None if it is not listed and cannot be read."""
        if first not in self._listed:
            self._read_list()
        if first in self._listed:
            return first + self._listed[first][0] - 1
        try:
            return first + int(self._segment(first).metadata[b"rows"]) - 1
        except HomeError:
            return None

    def _set_aside(self, first: int) -> None:
        """Moves a segment that was not committed completely out of the way."""
        aside = self._path(first).with_suffix(f".{uuid.uuid4().hex[:8]}.incomplete")
        with writing(aside):
            self._path(first).rename(aside)
        shown = f"{self._path(first)} was not written completely when the machine stopped"
        logger.warning("%s: it is set aside as %s, and the log continues after entry %d", shown, aside.name, first - 1)

    def _list(self, first: int, rows: int, seal: str) -> None:
        with open(f"{self._place}/{LIST}", "ab", buffering=0) as file:
            write_all(file, listed_line(first, rows, seal))
        self._listed[first] = rows, seal

    def _read_list(self) -> None:
        """Reads the lines added since the last call. Damaged lines are ignored."""
        path = self.folder / LIST
        try:
            with reading(path), open(path, "rb", buffering=0) as file:
                file.seek(self._position)
                text, _, _ = file.read().rpartition(b"\n")
        except HomeError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return
            raise
        self._position += len(text) + 1 if text else 0
        for line in text.decode(errors="replace").splitlines():
            parsed = parse_listed(line)
            if parsed is None:
                logger.warning("%s has a damaged line; `fishweir repair` rebuilds the list", path)
            else:
                self._listed[parsed[0]] = parsed[1:]

    def _write_segment(self, temporary: str, entries: pa.RecordBatch | pa.Table, cursor: dict[str, Any] | None) -> str:
        """Writes a segment to the disk and returns its seal."""
        import pyarrow as pa

        from fishweir.intake.segment_files import without_null_columns

        if not entries.schema.equals(self.schema):
            raise ValueError(f"stream {self.stream.name} expects {self.schema}, got {entries.schema}")
        metadata = {"rows": str(entries.num_rows)} | ({} if cursor is None else {"cursor": json.dumps(cursor)})
        whole = entries.combine_chunks() if isinstance(entries, pa.Table) else entries
        whole = without_null_columns(whole).replace_schema_metadata(metadata)
        at_once = whole.nbytes <= AT_ONCE
        with open(temporary, "wb", buffering=0) as file:
            sink = pa.BufferOutputStream() if at_once else pa.PythonFile(file, "w")
            with pa.ipc.new_file(sink, whole.schema) as writer:
                writer.write(whole)
            content = memoryview(sink.getvalue() if at_once else b"")
            if at_once:
                write_all(file, content)
            os.fsync(file.fileno())
        return seal_of_bytes(content) if at_once else seal_of(Path(temporary))

    def _commit_segment(self, temporary: str) -> int:
        while True:
            first = self.head() + 1
            try:
                os.link(temporary, self._named(first))
                return first
            except FileExistsError:
                continue

    def _append_cursor(self, cursor: dict[str, Any]) -> None:
        temporary, head = self._temporary(), self.head()
        with writing(self.folder, temporary), open(temporary, "wb") as file:
            file.write(sealed_json(cursor))
            file.flush()
            os.fsync(file.fileno())
        k = int(max((place + 1 for before, place, _ in self._idle() if before == head), default=0))
        while True:
            try:
                os.link(temporary, self.folder / f"{head:015d}-{k:06d}.cursor")
                break
            except FileExistsError:
                k += 1
        os.unlink(temporary)

    def _temporary(self) -> str:
        return f"{self._place}/.{os.getpid()}-{uuid.uuid4().hex}.tmp"


def _committed_firsts(folder: Path) -> list[int]:
    """The first numbers of all segments, sorted and without gaps.

    A directory listing may miss a file that is added while it runs and still include a later one. All segments before
    the newest one of the first listing are in the second listing. Newer segments are probed for.
    """
    newest = max(_listed_firsts(folder), default=0)
    return sorted(first for first in _listed_firsts(folder) if first <= newest)


def _listed_firsts(folder: Path) -> list[int]:
    return [int(name[:-6]) for name in os.listdir(folder) if name.endswith(".arrow")]


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
