"""A URL or file that is fetched repeatedly: its new items are the arrivals.

Known items are recorded by their keys: those of the current version, and a bounded history of others. The keys are
committed in the same segment as the items, with the version (ETag, modification time) of the source: after a crash, it
is fetched again, and nothing is lost or duplicated. A new version without new items is committed separately. A source
that cannot be read is retried with increasing delays; one that is permanently gone is not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import asdict, field, replace
from pathlib import Path

from fishweir.algebra.nodes import StreamDefinition
from fishweir.guard import Guard, GuardError
from fishweir.intake.log import StreamLog
from fishweir.intake.schema import log_batch, logger
from fishweir.intake.sources.addresses import file_of, is_url, with_credentials, without_credentials
from fishweir.intake.sources.fetch import BUSY, GONE, FetchError, fetch, submit
from fishweir.intake.sources.items import About, Feed, Item, updated
from fishweir.intake.sources.refresh import Refresh
from fishweir.intake.sources.rows import INSERTED, UPDATED
from fishweir.records import dataclass

SOON, LONGEST = 30.0, 86_400.0
"""Seconds before the first retry, and the maximum between retries."""

HISTORY = 1_000
"""Keys that are remembered in addition to those of the current items."""

Read = Callable[[bytes, str, str], Awaitable[Feed]]
"""Converts a body, its address and its content type to items."""


@dataclass(frozen=True, slots=True)
class FetchState:
    """The state of a source, as stored in the cursor of the log.

    `seen` maps the keys of items to their guids. `address` is the current URL after a permanent redirect or
    autodiscovery; `gone` is the reason why it is no longer fetched.
    """

    version: dict[str, str] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    address: str | None = None
    about: dict[str, str] = field(default_factory=dict)
    gone: str | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """The items and the version of a source; `feed` is None if the version is unchanged."""

    feed: Feed | None
    version: dict[str, str]
    address: str | None


async def fetch_items(place: str, state: FetchState, read: Read, guard: Guard) -> Fetched:
    """Fetches a URL, the target of its permanent redirect, or the feed that its page declares; raises FetchError
    otherwise. If the new address cannot be read, the old one is tried.
    """
    if state.address is None:
        return await _fetch_from(place, state.version, None, read, guard)
    try:
        return await _fetch_from(with_credentials(state.address, place), state.version, state.address, read, guard)
    except FetchError as error:
        if error.status in BUSY:
            raise
    return await _fetch_from(place, {}, None, read, guard)


async def _fetch_from(place: str, version: dict[str, str], address: str | None, read: Read, guard: Guard) -> Fetched:
    response = await fetch(place, version, guard=guard)
    address = response.moved or address
    if response.body is None:
        return Fetched(None, response.version, address)
    feed = await read(response.body, response.url or place, response.content_type)
    if feed.problem is not None and feed.elsewhere is not None:
        address = feed.elsewhere
        response = await fetch(with_credentials(address, place), {}, guard=guard)
        feed = await read(response.body or b"", response.url, response.content_type)
    if feed.problem is not None:
        raise FetchError(feed.problem)
    return Fetched(feed, response.version, address)


class FetchedSource:
    """The new items of one URL or file. `poll` never raises for invalid input, and never waits for a server or
    parser."""

    def __init__(
        self, stream: StreamDefinition, log: StreamLog, base: Path, read: Read, guard: Guard, refresh: Refresh | None
    ) -> None:
        self.stream, self.log, self.read, self.guard = stream, log, read, guard
        self.refresh = refresh or Refresh()
        place = stream.path or ""
        self.place = place if is_url(place) else str(base / file_of(place))
        self.what = "feed" if stream.format == "feed" else "stream"
        self.state = FetchState(**(log.newest("fetched") or {}))
        self.trouble: str | None = self._message(self.state.gone) if self.state.gone else None
        self.working = self.state.gone is None
        self._fetching: Future[Fetched] | None = None
        self._failures = 0
        self._due = float("-inf") if self.working else float("inf")

    def poll(self, now: float) -> Iterator[int]:
        """Appends the items of a finished fetch; otherwise starts one, if it is time.

        `working` is true until the first fetch has ended, successfully or not.
        """
        self.begin(now)
        if self._fetching is None or not self._fetching.done():
            return
        fetched, self._fetching = self._fetching, None
        count = 0
        try:
            count = self._take(fetched.result(), now)
        except FetchError as error:
            self._record_gone(str(error)) if error.status == GONE else self._record_failure(str(error), now, error.wait)
        self.working = False
        if count:
            yield count

    def begin(self, now: float) -> None:
        if self._fetching is not None or now < self._due:
            return
        scheduled = self.stream.every is None and self._due > float("-inf") and not self._failures
        if not scheduled or self.refresh.granted(self.stream.name, now):
            self._fetching = submit(self._fetch())

    async def _fetch(self) -> Fetched:
        try:
            self.guard.check(self.stream.path or "", Path.cwd())
        except GuardError as error:
            raise FetchError(str(error)) from None
        return await fetch_items(self.place, self.state, self.read, self.guard)

    def wait(self) -> None:
        if self._fetching is not None:
            wait([self._fetching])

    def close(self) -> None:
        self.refresh.forget(self.stream.name)
        if self._fetching is not None:
            self._fetching.cancel()
            self._fetching = None

    def _take(self, fetched: Fetched, now: float) -> int:
        """Commits the new items and returns their number."""
        self.trouble, self._failures = None, 0
        items = fetched.feed.items if fetched.feed is not None else ()
        new = [item for item in items if item.key not in self.state.seen]
        self._plan_next(items, new, now)
        before = self.state
        if fetched.address != before.address and fetched.address is not None:
            logger.warning("%s %s has moved permanently to %s", self.what, self.stream.name, fetched.address)
        self.state = replace(
            before,
            version=fetched.version,
            seen=self._keys_to_keep(items) if new else before.seen,
            address=fetched.address,
            about=_metadata(fetched.feed.about) if fetched.feed is not None else before.about,
        )
        if new:
            self.log.append(log_batch(self.stream, len(new), now, self._columns(new, before)), self._cursor())
        elif self.state != before:
            self.log.replace_cursor(self._cursor())
        return len(new)

    def _plan_next(self, items: tuple[Item, ...], new: list[Item], now: float) -> None:
        if self.stream.every is not None:
            self._due = now + self.stream.every
        else:
            self._due = now
            self.refresh.observe(self.stream.name, now, [i.timestamp for i in items], len(new))

    def _columns(self, new: list[Item], before: FetchState) -> dict[str, list[object]]:
        """The columns of new items. An item with a known guid and different content is an update."""
        guids = set(before.seen.values()) - {""}
        changes = [UPDATED if item.guid in guids else INSERTED for item in new] if self.what == "feed" else None
        marked = [c == UPDATED for c in changes] if changes else [False] * len(new)
        return {
            "body": [updated(item.body) if is_new else item.body for item, is_new in zip(new, marked, strict=True)],
            "timestamp": [None if self.stream.timestamp else item.timestamp for item in new],
            "context": [item.context for item in new],
            **({"change": list(changes)} if changes else {}),
        }

    def _keys_to_keep(self, items: tuple[Item, ...]) -> dict[str, str]:
        """The keys to remember: the current ones last, without the oldest of the others."""
        present = {item.key: item.guid for item in items}
        gone = [(key, guid) for key, guid in self.state.seen.items() if key not in present]
        return dict(gone[-HISTORY:]) | present

    def _cursor(self) -> dict[str, object]:
        return {"fetched": asdict(self.state)}

    def _record_failure(self, reason: str, now: float, wait: float) -> None:
        self._failures += 1
        every = SOON if self.stream.every is None else min(self.stream.every, SOON)
        self._due = now + max(min(every * 2.0 ** (self._failures - 1), LONGEST), min(wait, LONGEST))
        trouble = self._message(reason)
        if trouble != self.trouble:
            logger.warning("%s; it will be retried", trouble)
        self.trouble = trouble

    def _record_gone(self, reason: str) -> None:
        """Records that a source is gone, even after restarts. To fetch it again, drop it and register it again."""
        self._due = float("inf")
        self.state = replace(self.state, gone=f"{reason}: it will not be fetched again")
        self.log.replace_cursor(self._cursor())
        self.trouble = self._message(str(self.state.gone))
        self.refresh.forget(self.stream.name)
        logger.warning(self.trouble)

    def _message(self, reason: str) -> str:
        return f"{self.what} {self.stream.name}: {without_credentials(self.place)}: {reason}"


def _metadata(about: About) -> dict[str, str]:
    return {name: text for name, text in asdict(about).items() if text}
