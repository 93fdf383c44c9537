"""A feed on the web, or in a file, that is fetched at an interval: its new entries are the arrivals.

What has been seen is kept by the keys of the entries: those in the feed now, and a bounded history of others. They
are committed in the segment that holds the entries, with the version (ETag, time of change) that the feed had: after
a crash the feed is fetched again and nothing is lost or doubled. A new version without new entries is committed on
its own. A feed that cannot be read is tried again, later each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path

from fishweir.algebra.nodes import StreamDefinition
from fishweir.intake.log import StreamLog
from fishweir.intake.schema import log_batch, logger
from fishweir.intake.sources.addresses import file_of, is_url, without_credentials
from fishweir.intake.sources.fetch import FetchError, begin, fetch
from fishweir.intake.sources.items import Item
from fishweir.intake.sources.parsers import parse

EVERY, SOON, LONGEST = 600.0, 30.0, 86_400.0
"""Seconds: between two fetches, before the first new trial, and between trials at most."""

HISTORY = 1_000
"""Keys that are remembered beside those of the entries that are in the feed now."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The entries of a feed and its version; no entries where the version is as before."""

    items: tuple[Item, ...]
    version: dict[str, str]


async def fetch_items(place: str, version: dict[str, str]) -> Fetched:
    """Fetches and parses a feed, or FetchError."""
    response = await fetch(place, version)
    if response.body is None:
        return Fetched((), response.version)
    feed = await parse(response.body, response.url or place, response.content_type)
    if feed.problem is not None:
        raise FetchError(feed.problem)
    return Fetched(feed.items, response.version)


class FeedSource:
    """The new entries of one feed. `poll` never raises for bad input and never waits for a server or a parser."""

    def __init__(self, stream: StreamDefinition, log: StreamLog, base: Path) -> None:
        self.stream, self.log = stream, log
        place = stream.path or ""
        self.place = place if is_url(place) else str(base / file_of(place))
        self.every = EVERY if stream.every is None else stream.every
        self.trouble: str | None = None
        self.working = True
        cursor = log.newest("feed") or {"version": {}, "seen": []}
        self._version: dict[str, str] = cursor["version"]
        self._seen: dict[str, None] = dict.fromkeys(cursor["seen"])
        self._fetching: Future[Fetched] | None = None
        self._failures = 0
        self._due = float("-inf")

    def poll(self, now: float) -> Iterator[int]:
        """Append the entries of a fetch that is done; else begin one, if it is time.

        `working` until the first fetch is over, whatever came of it.
        """
        self.begin(now)
        if self._fetching is None or not self._fetching.done():
            return
        fetched, self._fetching = self._fetching, None
        try:
            count = self._take(fetched.result(), now)
        except FetchError as error:
            self._failed(str(error), now, error.wait)
            count = 0
        self.working = False
        if count:
            yield count

    def begin(self, now: float) -> None:
        if self._fetching is None and now >= self._due:
            self._fetching = begin(fetch_items(self.place, self._version))

    def wait(self) -> None:
        if self._fetching is not None:
            wait([self._fetching])

    def close(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            self._fetching = None

    def _take(self, fetched: Fetched, now: float) -> int:
        """Commits what is new; how many entries."""
        self.trouble, self._failures, self._due = None, 0, now + self.every
        new = [item for item in fetched.items if item.key not in self._seen]
        if new:
            self._remember(fetched.items)
        cursor = {"feed": {"version": fetched.version, "seen": list(self._seen)}}
        if new:
            self.log.append(log_batch(self.stream, len(new), now, self._columns(new)), cursor)
        elif fetched.version != self._version:
            self.log.replace_cursor(cursor)
        self._version = fetched.version
        return len(new)

    def _columns(self, new: list[Item]) -> dict[str, list[object]]:
        own = [None if self.stream.timestamp else item.timestamp for item in new]
        return {"body": [item.body for item in new], "timestamp": own}  # type: ignore[dict-item]

    def _remember(self, items: tuple[Item, ...]) -> None:
        """What is in the feed now comes last; the oldest of the rest are forgotten."""
        present = dict.fromkeys(item.key for item in items)
        gone = [key for key in self._seen if key not in present]
        self._seen = dict.fromkeys(gone[-HISTORY:]) | present

    def _failed(self, reason: str, now: float, wait: float) -> None:
        self._failures += 1
        again = min(min(self.every, SOON) * 2.0 ** (self._failures - 1), LONGEST)
        self._due = now + max(again, min(wait, LONGEST))
        trouble = f"feed {self.stream.name}: {without_credentials(self.place)}: {reason}"
        if trouble != self.trouble:
            logger.warning("%s; it is tried again", trouble)
        self.trouble = trouble
