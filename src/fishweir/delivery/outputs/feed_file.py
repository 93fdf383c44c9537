"""Files that feed readers fetch: the newest results first, at most `MOST` of them, replaced atomically.

Repeated deliveries are recognized by the ids of results, so a file contains each result once.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from fishweir.delivery.outputs.append import FileTarget
from fishweir.delivery.outputs.entries import Entry, entry_of
from fishweir.delivery.payload import NotRewindable, Payload

MOST = 100


class FeedFile(FileTarget, NotRewindable, ABC):
    """The common part of feed files; `read` and `render` define the format."""

    def deliver(self, results: Payload) -> None:
        before = self.read() if self.path.exists() else []
        ids = {entry.id for entry in before}
        fresh = {entry.id: entry for result in results if (entry := entry_of(result, results.media)).id not in ids}
        entries = [*reversed(fresh.values()), *before][:MOST]
        name = ", ".join(results.feeds) or self.path.stem
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self.path, self.render(name, entries, results.now))

    @abstractmethod
    def read(self) -> list[Entry]:
        """The entries of the current file, newest first."""

    @abstractmethod
    def render(self, name: str, entries: Sequence[Entry], now: float) -> bytes:
        """The content of a file with these entries."""


def replace_file(path: Path, content: bytes) -> None:
    """Replaces a file atomically: readers see the old content or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def moment(seconds: float) -> datetime:
    """A time within the range of calendars: timestamps may be any number."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), 253_402_300_799.0), UTC)


def link_of(entry: Entry) -> str | None:
    """The link of an entry, if it is a web address."""
    return entry.link if entry.link and entry.link.lower().startswith(("http://", "https://")) else None
