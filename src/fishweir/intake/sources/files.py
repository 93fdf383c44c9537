"""A stream from a file, a folder or a glob: every file is taken once, in order of time and name. A file that is one
document is taken again when its content changes: each version is a document.

What is taken is remembered by the cursors in the log, so a restart continues where it stopped, even in the middle of a
file: the file is read again, and entries that are already in the log are skipped. Small files are packed together into
a segment, large ones are split.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from fishweir.algebra.nodes import StreamDefinition
from fishweir.intake.json_documents import json_document_batches
from fishweir.intake.log import StreamLog
from fishweir.intake.schema import file_problem, logger, warn_problems
from fishweir.intake.sources.addresses import is_glob
from fishweir.intake.sources.split import BATCH_BYTES, BATCH_DOCUMENTS, xml_batches
from fishweir.intake.sources.table_files import csv_batches, json_batches, parquet_batches
from fishweir.sealed import digest

Reader = Callable[[StreamDefinition, Path, float], Iterator[pa.RecordBatch]]

READERS: dict[str, Reader] = {
    "xml": xml_batches, "csv": csv_batches, "json": json_batches, "parquet": parquet_batches,
}  # fmt: skip
SUFFIXES = {".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".csv": "csv"}

SEGMENT_ROWS, SEGMENT_BYTES = 65_536, 64 * 1024 * 1024
"""When a segment of tuples is full; one of documents is full as soon as a batch of them is."""


HINT = "a file that changes in place is declared with: rows PATH key PATH"


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a file has been taken. Path, size and time of change identify its content."""

    name: str
    size: int
    mtime_ns: int
    taken: int = 0
    done: bool = False
    sum: str = ""
    """Of a file that is one document, a checksum of its content."""

    def is_same_content(self, other: Mark) -> bool:
        return (self.size, self.mtime_ns) == (other.size, other.mtime_ns)


Reading = tuple[Mark, Iterator[pa.RecordBatch]]
"""A file that is open: how far its batches are taken, and those to come."""

UNFORESEEN = (pa.ArrowException, ValueError, LookupError, TypeError, RecursionError)
"""Errors that a reader should have turned into problem entries; the stream continues anyway."""


@dataclass
class _Packing:
    """What is read but not yet in the log: batches, and the marks they will lead to."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    marks: dict[str, Mark] = field(default_factory=dict)
    rows: int = 0
    size: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.size += batch.nbytes


class FileSource:
    """The files of a stream. `poll` is to be called again and again; it never raises for bad input."""

    def __init__(self, stream: StreamDefinition, log: StreamLog, base: Path) -> None:
        self.stream, self.log, self.base = stream, log, base
        self.pattern = os.path.join(base, stream.path or "")
        self.trouble: str | None = None
        self.working = False
        self._old_trouble: str | None = None
        self.empty_files = 0
        self._marks = {mark.name: mark for cursor in log.cursors() for mark in _marks_of(cursor)}
        self._packing = _Packing()
        self._reading: Reading | None = None
        self._warned: set[Mark] = set()
        self._touched: set[Mark] = set()
        """Files with another time of change, but with the content that they had."""
        self._changed: str | None = None

    def poll(self, now: float) -> Iterator[int]:
        """Append what is new, yielding the number of entries after each segment.

        The caller may stop after any segment; the next poll continues there. `trouble` describes the error.
        """
        self._old_trouble, self.trouble = self.trouble, None
        try:
            if self._reading is not None:
                yield from self._take(self._reading[0], now)
            for mark in self._waiting():
                yield from self._take(mark, now)
            yield from self._flush()
            self.trouble = self.trouble or self._changed
        except OSError as error:
            self._in_trouble(error)

    def _in_trouble(self, error: OSError) -> None:
        where = error.filename or self.pattern
        self.trouble = f"stream {self.stream.name}: {where}: {error.strerror or error}"
        if self.trouble != self._old_trouble:
            logger.warning(self.trouble)

    def _waiting(self) -> list[Mark]:
        """Marks of the unfinished files: those already started first, then by modification time and name."""
        waiting = [mark for mark in map(self._known, self._present()) if not mark.done]
        return sorted(waiting, key=lambda mark: (mark.taken == 0, mark.mtime_ns, mark.name))

    def _present(self) -> Iterator[Mark]:
        for path in source_files(self.pattern):
            try:
                status = os.stat(path)
            except FileNotFoundError:
                continue
            yield Mark(self._name(path), status.st_size, status.st_mtime_ns)

    def _name(self, path: str) -> str:
        """Relative if possible, so that a folder can be moved together with its home."""
        inside = path.startswith(os.path.join(self.base, ""))
        return os.path.relpath(path, self.base) if inside else path

    def _known(self, found: Mark) -> Mark:
        """The mark of a file that is there, with what has been taken of it before."""
        known = self._packing.marks.get(found.name) or self._marks.get(found.name)
        if known is None:
            return found
        if known.done and known.sum and known.taken == 1 and not known.is_same_content(found):
            return known if self._is_only_touched(found, known) else found
        if not known.is_same_content(found) and found not in self._warned:
            self._warned.add(found)
            what = "is ignored" if known.done else f"goes on after its first {known.taken} entries"
            logger.warning("stream %s: %s has changed and %s", self.stream.name, found.name, what)
            self._changed = f"stream {self.stream.name}: {found.name} has changed and {what}; {HINT}"
        return replace(found, taken=known.taken, done=known.done)

    def _is_only_touched(self, found: Mark, known: Mark) -> bool:
        if found not in self._touched and self._sum(found) == known.sum:
            self._touched.add(found)
        return found in self._touched

    def _sum(self, mark: Mark) -> str:
        """The checksum of a file that is one document, else nothing."""
        path = self.base / mark.name
        has_lines = path.suffix.lower() in (".jsonl", ".ndjson")
        if self.stream.is_tuples or self.stream.split or has_lines:
            return ""
        try:
            return digest(path.read_bytes())
        except OSError:  # whoever reads it says so
            return ""

    def _take(self, mark: Mark, now: float) -> Iterator[int]:
        """Read a file to its end, or on to its end; a file that cannot be read is tried at the next poll."""
        if self._reading is None or self._reading[0].name != mark.name:
            mark = mark if mark.taken else replace(mark, sum=self._sum(mark))  # first, so that no change is missed
            self._reading = mark, skipped(self._read(mark, now), mark.taken)
        while (batch := self._next_batch(self._reading, now)) is not None:
            mark, batches = self._reading
            mark = replace(mark, taken=mark.taken + batch.num_rows)
            self._reading = mark, batches
            self._pack(mark, batch)
            if self._is_full():
                yield from self._flush()
        if self._reading is not None:
            self._finish(self._reading[0])

    def _next_batch(self, reading: Reading, now: float) -> pa.RecordBatch | None:
        """The next batch; None at the end of the file, or where it cannot be opened and is left for later."""
        try:
            return next(reading[1], None)
        except UNFORESEEN as error:
            self._reading = reading[0], iter(())
            reason = f"after {reading[0].taken} entries: {type(error).__name__}: {error}"
            return file_problem(self.stream, self.base / reading[0].name, reason, now)
        except OSError as error:
            self._reading = None
            if not isinstance(error, FileNotFoundError):
                self._in_trouble(error)
            return None

    def _finish(self, mark: Mark) -> None:
        self._reading = None
        self._packing.marks[mark.name] = replace(mark, done=True)
        if mark.taken == 0:
            self.empty_files += 1
            what = f"element at {self.stream.split}" if self.stream.split else "row"
            logger.warning("stream %s: %s has no %s", self.stream.name, mark.name, what)

    def _read(self, mark: Mark, now: float) -> Iterator[pa.RecordBatch]:
        path = self.base / mark.name
        default = "csv" if self.stream.is_tuples else "xml"
        suffix = SUFFIXES.get(path.suffix.lower(), default) if self.stream.is_tuples else default
        if self.stream.format == "json" and not self.stream.is_tuples:
            return json_document_batches(self.stream, path, now)
        return READERS[self.stream.format or suffix](self.stream, path, now)

    def _pack(self, mark: Mark, batch: pa.RecordBatch) -> None:
        warn_problems(self.stream, batch)
        self._packing.add(batch)
        self._packing.marks[mark.name] = mark

    def _is_full(self) -> bool:
        tuples = self.stream.is_tuples
        rows, size = (SEGMENT_ROWS, SEGMENT_BYTES) if tuples else (BATCH_DOCUMENTS, BATCH_BYTES)
        return self._packing.rows >= rows or self._packing.size >= size

    def _flush(self) -> Iterator[int]:
        """Commits the packed entries. Nothing is pending when it yields, so stopping the poll there loses nothing."""
        packing = self._packing
        if not packing.marks:
            return
        table = pa.Table.from_batches(packing.batches, self.log.schema)
        self.log.append(table, {"files": [astuple(mark) for mark in packing.marks.values()]})
        self._marks |= packing.marks
        self._packing = _Packing()
        if table.num_rows:
            yield table.num_rows


def _marks_of(cursor: dict[str, Any]) -> list[Mark]:
    return [Mark(*values) for values in cursor["files"]]


def skipped(batches: Iterator[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    """The batches without their first `count` rows."""
    for batch in batches:
        if count < batch.num_rows:
            yield batch.slice(count)
        count = max(count - batch.num_rows, 0)


def source_files(pattern: str) -> list[str]:
    """The files of a path, a folder or a glob; OSError where a plain path or folder is missing."""
    if is_glob(pattern) and not os.path.exists(pattern):
        found = glob.glob(pattern, recursive=True)
    elif os.path.isdir(pattern):
        found = [entry.path for entry in os.scandir(pattern)]
    else:
        os.stat(pattern)
        return [pattern]
    return [path for path in found if is_taken(os.path.basename(path)) and os.path.isfile(path)]


def is_taken(name: str) -> bool:
    """Hidden files and temporary names are left alone."""
    return not name.startswith((".", "_")) and not name.endswith(".tmp")
