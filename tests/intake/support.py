"""Helpers for the intake tests: a stream's log and source in a temporary folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from lxml import etree

from fishweir.algebra.nodes import StreamDefinition
from fishweir.intake import Entry, Source, StreamLog, open_source


def stream(**options: Any) -> StreamDefinition:
    return StreamDefinition("S", **options)


def opened(base: Path, definition: StreamDefinition) -> tuple[StreamLog, Source]:
    """New objects on the stream's folder, as after a restart."""
    log = StreamLog(base / "home" / definition.name, definition)
    source = open_source(definition, log, base)
    assert source is not None
    return log, source


def taken(base: Path, definition: StreamDefinition, now: float = 1.0) -> list[Entry]:
    """All entries of the log after one complete poll of a newly opened source, or more polls while it waits for a
    writer."""
    log, source = opened(base, definition)
    list(source.poll(now))
    ends = time.monotonic() + 600
    while source.working and time.monotonic() < ends:
        time.sleep(0.05)
        list(source.poll(now))
    return entries(log)


def entries(log: StreamLog, after: int = 0) -> list[Entry]:
    return [log.entry(number) for number in range(after + 1, log.head() + 1)]


def bodies(found: list[Entry]) -> list[str]:
    return [(entry.body or b"").decode() for entry in found if entry.problem is None]


def problems(found: list[Entry]) -> list[str]:
    return [entry.problem for entry in found if entry.problem is not None]


def fetched(source: Any, now: float) -> int:
    """Performs one complete fetch. Returns the number of new entries."""
    ends = time.monotonic() + 600
    while time.monotonic() < ends:
        count = next(source.poll(now), 0)
        if count or source._fetching is None:
            return count
        time.sleep(0.005)
    raise AssertionError("the fetch does not end")


def fields(body: bytes) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for child in etree.fromstring(body):
        found.setdefault(child.tag, []).append(child.text or child.get("url"))
    return found


def titles(log: Any, after: int = 0) -> list[str]:
    return [fields(entry.body)["title"][0] for entry in entries(log, after)]
