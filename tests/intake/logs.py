"""Helpers for the tests of packs and of writers: logs of short texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from fishweir.intake import StreamLog, appending, documents_batch
from fishweir.intake.segment_list import LIST
from tests.intake.support import stream

XML = stream()


def append(log: StreamLog, *texts: str, cursor: dict[str, int] | None = None) -> range:
    return log.append(documents_batch(log.stream, list(texts), None, None, 5.0), cursor)


def bodies(log: StreamLog) -> list[str]:
    """All entries, read at once and one by one."""
    found = [body for _, batch in log.read(0, log.head()) for body in batch.column("body").to_pylist()]
    assert found == [log.entry(number).body for number in range(1, log.head() + 1)]
    return [body.decode() for body in found]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != LIST)


def two_segments(folder: Path) -> StreamLog:
    """Two segments in a pack."""
    log = StreamLog(folder, XML)
    append(log, "a", "b")
    append(log, "c", cursor={"n": 1})
    return log


def three_files(folder: Path, suffix: str, listed: tuple[int, ...] = (1, 2, 3)) -> None:
    """Three segments, each in a pack of its own or without one; some of them have lines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(appending, "LARGEST_SEGMENT" if suffix == "arrow" else "LARGEST_PACK", 0)
        log = StreamLog(folder, XML)
        for text in "abc":
            append(log, text)
    lines = (folder / LIST).read_bytes().splitlines(keepends=True)
    (folder / LIST).write_bytes(b"".join(lines[number - 1] for number in listed))
