"""A snapshot of a changing file, stored next to the log: keys, digests and the positions of rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fishweir.algebra.documents import parse_document
from fishweir.intake.log import StreamLog
from fishweir.intake.sources.rows import DELETED, RowReader
from fishweir.sealed import read_json, write_json

Version = tuple[int, int]
"""A file's modification time in nanoseconds, and its size."""


@dataclass
class Snapshot:
    """The state after the log's entries up to number `head`.

    `rows` maps a key to the digest of its row and the number of its entry; `version` is the last version whose changes
    and problems are all in the log.
    """

    head: int = 0
    version: Version | None = None
    rows: dict[str, tuple[str, int]] = field(default_factory=dict)

    def apply(self, change: str, key: str, digest: str, number: int) -> None:
        if change == DELETED:
            self.rows.pop(key, None)
        else:
            self.rows[key] = digest, number
        self.head = number


def load_snapshot(path: Path) -> Snapshot:
    """The saved state, or an empty one: the log contains everything from its beginning."""
    saved = read_json(path, None, rebuilt="the log")
    if saved is None:
        return Snapshot()
    version = tuple(saved["version"]) if saved["version"] else None
    return Snapshot(saved["head"], version, {key: tuple(row) for key, row in saved["rows"].items()})


def save_snapshot(snapshot: Snapshot, path: Path) -> None:
    """Replaces the saved state atomically: a reader sees either the old or the new one."""
    write_json(path, {"head": snapshot.head, "version": snapshot.version, "rows": snapshot.rows})


def replay(snapshot: Snapshot, log: StreamLog, reader: RowReader) -> int:
    """Replays the log onto a saved state; returns the number of replayed changes."""
    changes = 0
    for cursor in log.cursors(snapshot.head):
        snapshot.version = tuple(cursor["version"])
    for first, batch in log.read(snapshot.head, log.head()):
        entries = zip(batch.column("change").to_pylist(), batch.column("body").to_pylist(), strict=True)
        for number, (change, body) in enumerate(entries, first):
            if change is not None:
                row = reader.row(parse_document(body, comments=True))
                snapshot.apply(change, row.key or "", row.digest, number)
                changes += 1
    return changes
