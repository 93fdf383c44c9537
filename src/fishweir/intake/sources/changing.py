"""An XML file that changes in place: the differences between its versions are the arrivals.

The state is, for each key, the digest of the row's canonical form and the number of the log entry with the row. The log
is authoritative: a snapshot of the state is tagged with the head it reflects, and later entries are replayed. A version
is always compared with that state, so whatever happens between an append and a snapshot, no change is lost or repeated.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from fishweir.algebra.documents import BadDocument, parse_document
from fishweir.algebra.nodes import StreamDefinition
from fishweir.intake.log import StreamLog
from fishweir.intake.schema import log_batch, logger, warn_problems
from fishweir.intake.sources.rows import DELETED, INSERTED, UPDATED, Row, RowReader
from fishweir.intake.sources.snapshot import Version, load_snapshot, replay, save_snapshot
from fishweir.intake.sources.split import BATCH_BYTES, BATCH_DOCUMENTS
from fishweir.records import dataclass

SETTLE_NS = 20_000_000
"""A file that changed this recently may change again with the same modification time, so it is read once more."""

UNSAVED_CHANGES = 256
"""A snapshot is written after this many changes, or a quarter of the rows if that is more."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A future entry: a row that was inserted, updated or deleted, or an invalid part of the file."""

    body: bytes
    context: str | None = None
    change: str | None = None
    problem: str | None = None
    key: str = ""
    digest: str = ""
    previous: int | None = None
    """The number of the entry with the previous version of the row."""


class ChangingSource:
    """The changes of one file. `poll` never raises for invalid input. A missing file deletes nothing."""

    def __init__(self, stream: StreamDefinition, log: StreamLog, base: Path) -> None:
        self.stream, self.log, self.path = stream, log, base / (stream.path or "")
        self.shown = str(self.path)
        self.every = 1.0 if stream.every is None else stream.every
        self.trouble: str | None = None
        self.working = False
        self._reader = RowReader(stream.rows or "", stream.key or "")
        self._saved_in = log.folder / "snapshot.json"
        self._state = load_snapshot(self._saved_in)
        self._unsaved = replay(self._state, log, self._reader)
        self._last_version: Version | None = None
        self._bad_rows: set[str] = set()
        self._left: list[Arrival] = []
        self._left_of: Version = (0, 0)
        self._due = float("-inf")

    def poll(self, now: float) -> Iterator[int]:
        """Appends the changes since the last poll, yielding the number of entries after each segment.

        The caller may stop after any segment; the next poll continues there.
        """
        try:
            yield from self._append_pending(now)
            if now >= self._due:
                self._due = now + self.every
                self._read_version()
                yield from self._append_pending(now)
        except OSError as error:
            trouble = f"stream {self.stream.name}: {error.filename or self.path}: {error.strerror or error}"
            if trouble != self.trouble:
                logger.warning(trouble)
            self.trouble = trouble

    def _read_version(self) -> None:
        """Records the changes of a new version, unless the file is still being written."""
        before = os.stat(self.path)
        version = before.st_mtime_ns, before.st_size
        if version == self._last_version:
            self.trouble = None
            return
        text, after = self.path.read_bytes(), os.stat(self.path)
        self.trouble = None
        if version != (after.st_mtime_ns, after.st_size):
            return
        self._left, self._left_of = self._arrivals(text, version), version
        self._last_version = None if abs(time.time_ns() - version[0]) < SETTLE_NS else version

    def _arrivals(self, text: bytes, version: Version) -> list[Arrival]:
        """Inserts and updates in file order, then deletes, then problems of a version that are not reported yet."""
        changes: list[Arrival] = []
        try:
            rows = list(self._reader.read(parse_document(text, comments=True)))
        except BadDocument as error:
            bad = [Arrival(text, problem=f"{self.shown}: {error}")]
        else:
            changes, bad = self._differences(rows)
        return changes if version == self._state.version else changes + bad

    def _differences(self, rows: list[Row]) -> tuple[list[Arrival], list[Arrival]]:
        changes: list[Arrival] = []
        bad: dict[str, Arrival] = {}
        lines: dict[str, int | None] = {}
        for row in rows:
            if row.key is None or row.key in lines:
                bad[row.digest] = Arrival(row.body, row.context, problem=self._reason(row, lines))
                continue
            lines[row.key] = row.line
            change, previous = self._change_of(row, row.key)
            if change is not None:
                changes.append(Arrival(row.body, row.context, change, None, row.key, row.digest, previous))
        changes += [self._deleted(key) for key in self._state.rows if key not in lines]
        new = [arrival for found, arrival in bad.items() if found not in self._bad_rows]
        self._bad_rows = set(bad)
        return changes, new

    def _change_of(self, row: Row, key: str) -> tuple[str | None, int | None]:
        previous = self._state.rows.get(key)
        if previous is None:
            return INSERTED, None
        return (UPDATED if previous[0] != row.digest else None), previous[1]

    def _reason(self, row: Row, lines: dict[str, int | None]) -> str:
        place = f"{self.shown}, line {row.line}"
        if row.key is None:
            return f"{place}: the row has no key {self.stream.key}"
        return f"{place}: the key {row.key!r} is already in line {lines[row.key]}"

    def _deleted(self, key: str) -> Arrival:
        previous = self._state.rows[key][1]
        entry = self.log.entry(previous)
        return Arrival(entry.body or b"", entry.context, DELETED, None, key, previous=previous)

    def _append_pending(self, now: float) -> Iterator[int]:
        while self._left:
            arrivals = self._next_segment()
            self._append(arrivals, now, is_last=len(arrivals) == len(self._left))
            del self._left[: len(arrivals)]
            self._save()
            yield len(arrivals)

    def _next_segment(self) -> list[Arrival]:
        size = 0
        for count, arrival in enumerate(self._left[:BATCH_DOCUMENTS], 1):
            size += len(arrival.body)
            if size >= BATCH_BYTES:
                return self._left[:count]
        return self._left[:BATCH_DOCUMENTS]

    def _append(self, arrivals: list[Arrival], now: float, is_last: bool) -> None:
        """Commits arrivals, with the version if they are its last ones, and updates the state."""
        names = ("body", "context", "change", "previous", "problem")
        columns = {name: [getattr(arrival, name) for arrival in arrivals] for name in names}
        batch = log_batch(self.stream, len(arrivals), now, columns)
        numbers = self.log.append(batch, {"version": self._left_of} if is_last else None)
        for number, arrival in zip(numbers, arrivals, strict=True):
            if arrival.change is not None:
                self._state.apply(arrival.change, arrival.key, arrival.digest, number)
        self._state.head = numbers[-1]
        self._state.version = self._left_of if is_last else self._state.version
        self._unsaved += len(arrivals)
        warn_problems(self.stream, batch)

    def _save(self) -> None:
        if not self._left and self._unsaved >= max(UNSAVED_CHANGES, len(self._state.rows) // 4):
            save_snapshot(self._state, self._saved_in)
            self._unsaved = 0
