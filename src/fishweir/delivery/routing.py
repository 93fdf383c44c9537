"""Routing: which queries of a micro-batch have subscribers, and through which channels their results go.

The cost depends on what fired: the queries with results are looked up, not the subscriptions. If only a few queries
have subscribers, only the results of these are looked up.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fishweir.catalog.database import Database
from fishweir.evaluate.arrays import Ints
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.results import ResultReader

MAX_NAMES_LISTED = 1_000
CHUNK = 10_000
ROUTE_CACHE_SIZE = 200_000
"""The maximum number of queries whose subscriptions are cached."""

Route = Callable[[Commit], dict[int, str]]
"""Maps a micro-batch to the queries whose results go through a channel, with the names in the subscriptions."""

_JOINED = "queries join subscriptions on subscriptions.query = queries.name"
_SUBSCRIBED = f"""
    select queries.number, subscriptions.channel, subscriptions.feed, subscriptions.added, subscriptions.dropped,
        subscriptions.start
    from {_JOINED}
"""
_AT_ONCE = f"{_SUBSCRIBED} where not subscriptions.timed and queries.number in :some"
_OF_CHANNELS = f"{_SUBSCRIBED} where subscriptions.channel in :channels"
_IN_FORCE = """
    subscriptions.added <= :version and (subscriptions.dropped is null or subscriptions.dropped > :version)
    and (subscriptions.start is null or subscriptions.start <= :at)
"""
"""A micro-batch lies between the changes that added and dropped a subscription."""
_OF_MANY = f"{_SUBSCRIBED} where subscriptions.channel + 0 = :channel and queries.number in :some and {_IN_FORCE}"
"""The sum keeps the database from scanning all subscriptions of the channel for each requested query."""
_TIMED = f"""
    select queries.name from queries where queries.number in :some and exists (select 1 from subscriptions
        where subscriptions.query = queries.name and subscriptions.timed and {_IN_FORCE})
"""
_SOME_SUBSCRIBED = """
    with recursive names (name, place) as (
        select min(query), 1 from subscriptions
        union all
        select (select min(query) from subscriptions where query > names.name), place + 1
        from names where name is not null and place < :most
    )
    select name from names where name is not null
"""
"""Some of the names that were ever subscribed to. Each is one step along the index, which skips the hundred thousand
subscribers that a feed may have."""


class _Subscription(NamedTuple):
    channel: int
    feed: str
    added: int
    dropped: int | None
    start: float | None


@dataclass
class _RouteCache:
    """Cached lookups for a catalog version, valid while the version does not change."""

    version: int
    few: Ints | None
    """The queries with subscribers, if there are few."""
    at_once: dict[int, list[_Subscription]] = field(default_factory=dict)
    """By query with results so far, the subscriptions that are delivered on change."""
    size: int = 0


class Routing:
    def __init__(self, database: Database, table: ResultsTable, reader: ResultReader) -> None:
        self.database, self.table, self.reader = database, table, reader
        self._cache = _RouteCache(-1, None)
        self._recent: OrderedDict[tuple[int, int], dict[int, str]] = OrderedDict()
        """By micro-batch and channel, the most recent lookups: the names by which queries were subscribed to."""
        self._recent_size = 0

    def numbers(self, commit: Commit) -> Ints:
        """The queries with results that may have subscribers."""
        if not commit.matches:
            return np.empty(0, np.int64)
        few = self._newest().few
        return few if few is not None and not len(few) else self.reader.fired(self.table, commit, few)

    @property
    def are_few(self) -> bool:
        """Whether few queries have subscribers, so that only these are looked up."""
        return self._cache.few is not None

    def _newest(self) -> _RouteCache:
        version = int(self.database.scalar("select value from counters") or 0)
        if version != self._cache.version:
            with self.database.connect() as connection:
                names, few = connection.scalars(_SOME_SUBSCRIBED, most=MAX_NAMES_LISTED + 1), None
                if len(names) <= MAX_NAMES_LISTED:
                    numbers = connection.scalars("select number from queries where name in :names", names=names)
                    few = np.array(sorted(numbers), dtype=np.int64)
            self._cache = _RouteCache(version, few)
        return self._cache

    def on_change(self, commit: Commit, numbers: Ints) -> dict[int, list[int]]:
        """By channel, the queries whose results are delivered on change."""
        found: dict[int, dict[int, str]] = defaultdict(dict)
        for number, subscribed in zip(numbers.tolist(), self._at_once(numbers.tolist()), strict=True):
            for one in subscribed:
                if _is_in_force(one, commit):
                    found[one.channel][number] = one.feed
        for channel, feeds in found.items():
            self._remember((commit.batch, channel), feeds)
        return {channel: list(feeds) for channel, feeds in found.items()}

    def _at_once(self, numbers: list[int]) -> list[list[_Subscription]]:
        """For each query, the subscriptions that are delivered on change."""
        routes = self._newest()
        missing = [number for number in numbers if number not in routes.at_once]
        if missing and routes.size > ROUTE_CACHE_SIZE:
            routes.at_once, routes.size, missing = {}, 0, numbers
        found: dict[int, list[_Subscription]] = {number: [] for number in missing}
        with self.database.connect() as connection:
            for some in _chunks(missing):
                for row in connection.execute(_AT_ONCE, some=some):
                    found[row.number].append(_Subscription(*tuple(row)[1:]))
        routes.at_once |= found
        routes.size += sum(1 + len(some) for some in found.values())
        return [routes.at_once[number] for number in numbers]

    def _remember(self, key: tuple[int, int], feeds: dict[int, str]) -> None:
        """Caches a lookup, which sending the delivery needs again."""
        self._recent[key] = feeds
        self._recent_size += len(feeds)
        while self._recent_size > ROUTE_CACHE_SIZE and self._recent:
            self._recent_size -= len(self._recent.popitem(last=False)[1])

    def timed(self, commit: Commit, numbers: Ints) -> list[str]:
        """The queries whose results are delivered by timers."""
        if self.database.scalar("select 1 from timers limit 1") is None:
            return []
        found: list[str] = []
        with self.database.connect() as connection:
            for some in _chunks(numbers):
                found += connection.scalars(_TIMED, some=some, version=commit.version, at=commit.at)
        return sorted(set(found))

    def of_channels(self, channels: Sequence[int]) -> dict[int, Route]:
        """By channel, a function from a micro-batch to the queries whose results go through it, with the names in the
        subscriptions.
        """
        looked_up = cache(lambda: self._look_up(channels))

        def route(channel: int) -> Route:
            return lambda commit: self._recent.get((commit.batch, channel)) or looked_up()[channel](commit)

        return {channel: route(channel) for channel in channels}

    def _look_up(self, channels: Sequence[int]) -> dict[int, Route]:
        """Looks up channels with few subscriptions, many per statement."""
        found: dict[int, list[Any]] = {channel: [] for channel in channels}
        sizes = "select channel, count(*) from subscriptions where channel in :channels group by channel"
        many: set[int] = set()
        with self.database.connect() as connection:
            for some in _chunks(list(found)):
                counts = connection.execute(sizes, channels=some)
                many |= {channel for channel, count in counts if count > MAX_NAMES_LISTED}
                few = [channel for channel, count in counts if count <= MAX_NAMES_LISTED]
                for row in connection.execute(_OF_CHANNELS, channels=few):
                    found[row.channel].append(row)
        return {channel: self._route(channel, rows, channel in many) for channel, rows in found.items()}

    def _route(self, channel: int, rows: list[Any], is_many: bool) -> Route:
        if is_many:
            return lambda commit: self._of_many(commit, channel)
        return lambda commit: {row.number: row.feed for row in rows if _is_in_force(row, commit)}

    def _of_many(self, commit: Commit, channel: int) -> dict[int, str]:
        """The fired queries, for a channel with very many subscriptions."""
        numbers = self.reader.fired(self.table, commit)
        with self.database.connect() as connection:
            values = {"channel": channel, "version": commit.version, "at": commit.at}
            chunks = (connection.execute(_OF_MANY, some=some, **values) for some in _chunks(numbers))
            return {row.number: row.feed for chunk in chunks for row in chunk}


def _is_in_force(row: Any, commit: Commit) -> bool:
    """The condition `_IN_FORCE`, evaluated on a row."""
    is_current = row.added <= commit.version and (row.dropped is None or row.dropped > commit.version)
    return is_current and (row.start is None or row.start <= commit.at)


def _chunks(numbers: Sequence[int] | Ints) -> Iterator[list[int]]:
    for i in range(0, len(numbers), CHUNK):
        yield [int(number) for number in numbers[i : i + CHUNK]]
