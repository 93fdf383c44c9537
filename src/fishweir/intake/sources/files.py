"""A stream from a file, a folder or a glob: files are read in order of time and name. A file that changes is read
again: from a text file that has grown, the rows after those that were read (sections.py); from any other, the rows,
elements or documents that the previous version did not have (versions.py).

The cursors in the log record how far each file was read, so a restart continues where it stopped, even in the middle of
a file, in the same way as after a change. Small files are combined into one segment, large ones are split.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from fishweir.algebra.nodes import StreamDefinition
from fishweir.intake.json_documents import json_document_batches
from fishweir.intake.log import StreamLog
from fishweir.intake.schema import file_problem, logger, warn_problems
from fishweir.intake.sources.addresses import is_glob
from fishweir.intake.sources.sections import Section, is_open_for_writing, is_settled
from fishweir.intake.sources.split import BATCH_BYTES, BATCH_DOCUMENTS, xml_batches
from fishweir.intake.sources.table_files import csv_batches, json_batches, parquet_batches
from fishweir.intake.sources.versions import FILES, GONE, ROWS, Comparison, Range, Versions
from fishweir.records import dataclass

READERS: dict[str, Callable[[StreamDefinition, Path, float], Iterator[pa.RecordBatch]]] = {
    "xml": xml_batches, "parquet": parquet_batches,
}  # fmt: skip
TEXTS: dict[str, Callable[[StreamDefinition, Section, float], Iterator[pa.RecordBatch]]] = {
    "csv": csv_batches, "json": json_batches,
}  # fmt: skip
SUFFIXES = {".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".csv": "csv"}

SEGMENT_ROWS, SEGMENT_BYTES = 65_536, 64 * 1024 * 1024
"""The size at which a segment of tuples is full. A segment of documents is full when a batch of them is."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a file has been read. Path, size and modification time identify its content."""

    name: str
    size: int
    mtime_ns: int
    taken: int = 0
    done: bool = False
    sum: str = ""
    end: int = 0
    """For a text file, the number of bytes of the rows that were read; `sum` is their checksum."""

    def is_same_content(self, other: Mark) -> bool:
        return (self.size, self.mtime_ns) == (other.size, other.mtime_ns)


@dataclass
class Reading:
    """An open file: its mark, and the remaining batches, each with the number of rows read for it. `section` is the
    part of a text file, `comparison` the comparison with the previous version."""

    mark: Mark
    batches: Iterator[tuple[int, pa.RecordBatch]]
    section: Section | None = None
    comparison: Comparison | None = None

    def advance(self, rows: int) -> Mark:
        self.mark = replace(self.mark, taken=self.mark.taken + rows)
        if self.section is not None and self.comparison is None:
            self.mark = replace(self.mark, end=self.section.end, sum=self.section.sum)
        return self.mark


UNEXPECTED = (pa.ArrowException, ValueError, LookupError, TypeError, RecursionError)
"""Errors that a reader should have turned into problem entries; the stream continues anyway."""


@dataclass
class _Packing:
    """Batches that have been read but are not in the log yet, and the marks after them."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    marks: dict[str, Mark] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    gone: dict[str, list[Range]] = field(default_factory=dict)
    rows: int = 0
    size: int = 0

    def add(self, mark: Mark, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        self.marks[mark.name] = mark
        self.counts[mark.name] = self.counts.get(mark.name, 0) + batch.num_rows
        self.rows += batch.num_rows
        self.size += batch.nbytes

    def cursor(self) -> dict[str, Any]:
        marks = self.marks.values()
        found = {FILES: [astuple(mark) for mark in marks], ROWS: [self.counts.get(mark.name, 0) for mark in marks]}
        return found | ({GONE: self.gone} if self.gone else {})


class FileSource:
    """The files of a stream. `poll` is called repeatedly; it never raises for invalid input."""

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
        self._versions: Versions | None = None
        self._held: dict[str, Mark] = {}
        """Files that are still being written, with their state when they were last read."""

    def poll(self, now: float) -> Iterator[int]:
        """Appends new entries, yielding their number after each segment.

        The caller may stop after any segment; the next poll continues there. `trouble` describes the error, if any.
        """
        self._old_trouble, self.trouble = self.trouble, None
        try:
            if self._reading is not None:
                yield from self._take(self._reading.mark, now)
            for mark in self._waiting():
                yield from self._take(mark, now)
            yield from self._flush()
            self._held = {name: mark for name, mark in self._held.items() if (self.base / name).exists()}
            self.working = any(not is_open_for_writing(self.base / name) for name in self._held)
        except OSError as error:
            self._record_trouble(error)

    def _record_trouble(self, error: OSError) -> None:
        where = error.filename or self.pattern
        self.trouble = f"stream {self.stream.name}: {where}: {error.strerror or error}"
        if self.trouble != self._old_trouble:
            logger.warning(self.trouble)

    def _waiting(self) -> list[Mark]:
        """Marks of the unfinished files: those already started first, then by modification time and name."""
        waiting = [mark for mark in map(self._with_progress, self._present()) if not mark.done]
        return sorted(waiting, key=lambda mark: (mark.taken == 0, mark.mtime_ns, mark.name))

    def _present(self) -> Iterator[Mark]:
        for path in source_files(self.pattern):
            try:
                status = os.stat(path)
            except FileNotFoundError:
                continue
            yield Mark(self._name(path), status.st_size, status.st_mtime_ns)

    def _name(self, path: str) -> str:
        """The path, relative if possible, so that a folder can be moved together with its home."""
        inside = path.startswith(os.path.join(self.base, ""))
        return os.path.relpath(path, self.base) if inside else path

    def _with_progress(self, found: Mark) -> Mark:
        """The mark of an existing file, including what has been read of it before."""
        held = self._held.pop(found.name, None)
        if held is not None and held.is_same_content(found) and not is_settled(self.base / found.name):
            self._held[found.name] = held
            return replace(found, done=True)
        earlier = self._mark(found.name)
        if earlier is None:
            return found
        return replace(
            earlier, size=found.size, mtime_ns=found.mtime_ns, done=earlier.done and earlier.is_same_content(found)
        )

    def _mark(self, name: str) -> Mark | None:
        return self._packing.marks.get(name) or self._marks.get(name)

    def _take(self, mark: Mark, now: float) -> Iterator[int]:
        """Reads a file, or the rest of it. A file that cannot be read is retried at the next poll."""
        if self._reading is None or self._reading.mark.name != mark.name:
            self._reading = self._open(mark, now)
        while self._reading is not None and (found := self._next_batch(self._reading, now)) is not None:
            rows, batch = found
            mark = self._reading.advance(rows)
            if batch.num_rows:
                warn_problems(self.stream, batch)
                self._packing.add(mark, batch)
            if self._is_full():
                yield from self._flush()
        if self._reading is not None:
            self._finish(self._reading)

    def _open(self, mark: Mark, now: float) -> Reading | None:
        """Opens a new file, the rest of one that has grown, or a version to be compared with the previous one. None if
        the file is still being written and cannot be read in part.
        """
        path, format = self.base / mark.name, self._format(mark.name)
        section = None if format in READERS else Section(path, mark.end, mark.sum)
        if section is None and is_open_for_writing(path):
            self._held[mark.name] = mark
            return None
        if self._mark(mark.name) is None or (section is not None and section.continues()):
            return Reading(mark, _counted(self._read(format, section or path, now)), section)
        if not is_settled(path):  # it may have been truncated and not rewritten yet
            self._held[mark.name] = mark
            return None
        section = None if section is None else Section(path)
        if self._versions is None:
            self._versions = Versions(self.log)
        comparison = Comparison(self._versions.rows(mark.name), path)
        batches = comparison.new(self._read(format, section or path, now))
        return Reading(replace(mark, taken=0, end=0, sum=""), batches, section, comparison)

    def _next_batch(self, reading: Reading, now: float) -> tuple[int, pa.RecordBatch] | None:
        """The next batch; None at the end of the file, or if it cannot be opened and is left for later."""
        try:
            return next(reading.batches, None)
        except UNEXPECTED as error:
            reason = f"after {reading.mark.taken} entries: {type(error).__name__}: {error}"
            problem = file_problem(self.stream, self.base / reading.mark.name, reason, now)
            reading.batches = _counted([problem]) if reading.comparison is None else reading.comparison.new([problem])
            return next(reading.batches)
        except OSError as error:
            self._reading = None
            if not isinstance(error, FileNotFoundError):
                self._record_trouble(error)
            return None

    def _finish(self, reading: Reading) -> None:
        """Records that a file was read to its end, or up to a half-written row, which is left for later."""
        self._reading = None
        before, gone = self._mark(reading.mark.name), list[Range]()
        is_partial = reading.section is not None and reading.section.left
        if reading.comparison is not None:
            is_partial |= not self._is_unchanged(reading.mark)
        if reading.comparison is not None and not is_partial:
            gone, reading.comparison = reading.comparison.gone(), None
        mark = replace(reading.advance(0), done=not is_partial)
        if is_partial:
            self._held[mark.name] = mark
            if before is None and not mark.taken:
                return  # it is still a new file
        if gone:
            self._packing.gone[mark.name] = gone
        if before is not None and before.done and not gone and mark.name not in self._packing.counts:
            self._marks[mark.name] = mark  # nothing is new, so no cursor is needed
            return
        self._packing.marks[mark.name] = mark
        if mark.taken == 0 and not is_partial:
            self.empty_files += 1
            what = f"element at {self.stream.split}" if self.stream.split else "row"
            logger.warning("stream %s: %s has no %s", self.stream.name, mark.name, what)

    def _is_unchanged(self, mark: Mark) -> bool:
        try:
            status = os.stat(self.base / mark.name)
        except OSError:
            return False
        return (status.st_size, status.st_mtime_ns) == (mark.size, mark.mtime_ns)

    def _format(self, name: str) -> str:
        default = "csv" if self.stream.is_tuples else "xml"
        suffix = SUFFIXES.get(Path(name).suffix.lower(), default) if self.stream.is_tuples else default
        return self.stream.format or suffix

    def _read(self, format: str, place: Section | Path, now: float) -> Iterator[pa.RecordBatch]:
        if isinstance(place, Path):
            return READERS[format](self.stream, place, now)
        is_documents = format == "json" and not self.stream.is_tuples
        return (json_document_batches if is_documents else TEXTS[format])(self.stream, place, now)

    def _is_full(self) -> bool:
        tuples = self.stream.is_tuples
        rows, size = (SEGMENT_ROWS, SEGMENT_BYTES) if tuples else (BATCH_DOCUMENTS, BATCH_BYTES)
        return self._packing.rows >= rows or self._packing.size >= size

    def _flush(self) -> Iterator[int]:
        """Commits the packed entries. Nothing is pending when it yields, so stopping the poll there loses nothing."""
        packing = self._packing
        if not packing.marks:
            return
        table, cursor = pa.Table.from_batches(packing.batches, self.log.schema), packing.cursor()
        numbers = self.log.append(table, cursor)
        if self._versions is not None:
            self._versions.add(numbers.start, cursor)
        self._marks |= packing.marks
        self._packing = _Packing()
        if table.num_rows:
            yield table.num_rows


def _marks_of(cursor: dict[str, Any]) -> list[Mark]:
    return [Mark(*values) for values in cursor.get(FILES, ())]


def _counted(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    return ((batch.num_rows, batch) for batch in batches)


def source_files(pattern: str) -> list[str]:
    """The files of a path, a folder or a glob. Raises OSError if a plain path or folder is missing."""
    if is_glob(pattern) and not os.path.exists(pattern):
        found = glob.glob(pattern, recursive=True)
    elif os.path.isdir(pattern):
        found = [entry.path for entry in os.scandir(pattern)]
    else:
        os.stat(pattern)
        return [pattern]
    return [path for path in found if is_input(os.path.basename(path)) and os.path.isfile(path)]


def is_input(name: str) -> bool:
    """Whether a file is read: hidden and temporary files are not."""
    return not name.startswith((".", "_")) and not name.endswith(".tmp")
