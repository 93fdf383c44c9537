"""Routing: which queries of a micro-batch have subscribers, and through which channels their results go.

The cost depends on what fired: the queries with results are looked up, not the subscriptions. If only a few queries
have subscribers, only the results of these are looked up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.catalog.database import Connection, Database
from fishweir.evaluate.arrays import Ints
from fishweir.pipeline.column_cache import ColumnCache, Columns
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.results import ResultReader
from fishweir.records import dataclass

MAX_NAMES_LISTED = 1_000
CHUNK = 10_000
ROUTE_CACHE_SIZE = 200_000
"""The maximum number of queries whose subscriptions are cached."""
LATEST = np.iinfo(np.int64).max

Route = Callable[[Commit], dict[int, str]]
"""Maps a micro-batch to the queries whose results go through a channel, with the names in the subscriptions."""

_JOINED = "queries join subscriptions on subscriptions.query = queries.name"
_SUBSCRIBED = f"""
    select queries.number, subscriptions.channel, subscriptions.feed, subscriptions.added, subscriptions.dropped,
        subscriptions.start
    from {_JOINED}
"""
_AT_ONCE = f"from {_JOINED} where not subscriptions.timed and queries.number in :some"
_COLUMNS = (
    "queries.number", "subscriptions.channel", "subscriptions.feed", "subscriptions.added", "subscriptions.dropped",
    "case when subscriptions.start is not null then subscriptions.id end",
)  # fmt: skip
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


@dataclass(frozen=True)
class _Subscriptions(Columns):
    """Subscriptions in ascending order of the numbers of their queries."""

    numbers: Ints
    channels: Ints
    feeds: NDArray[Any]
    added: Ints
    dropped: Ints
    """`LATEST` if not dropped."""
    start: NDArray[np.float64]

    def in_force(self, commit: Commit) -> _Subscriptions:
        """The condition `_IN_FORCE`."""
        is_current = (self.added <= commit.version) & (self.dropped > commit.version)
        chosen = is_current & (self.start <= commit.at)
        return self if chosen.all() else self.take(np.flatnonzero(chosen))

    def by_channel(self) -> Iterator[tuple[int, Ints, dict[int, str]]]:
        """For each channel, its queries and the names in the subscriptions."""
        order = np.argsort(self.channels, kind="stable")
        channels, numbers, feeds = self.channels[order], self.numbers[order], self.feeds[order].tolist()
        bounds = [0, *(np.flatnonzero(channels[1:] != channels[:-1]) + 1).tolist(), len(channels)]
        listed = numbers.tolist()
        for begin, end in pairwise(bounds if listed else []):
            named = dict(zip(listed[begin:end], feeds[begin:end], strict=True))
            yield int(channels[begin]), numbers[begin:end], named


@dataclass(frozen=True)
class _RouteCache:
    """Cached lookups for a catalog version, valid while the version does not change."""

    version: int
    few: Ints | None
    """The queries with subscribers, if there are few."""
    at_once: ColumnCache[_Subscriptions]
    """By query with results so far, the subscriptions that are delivered on change."""


class Routing:
    def __init__(self, database: Database, table: ResultsTable, reader: ResultReader) -> None:
        self.database, self.table, self.reader = database, table, reader
        self._cache = self._empty(-1, None)
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
            self._cache = self._empty(version, few)
        return self._cache

    def _empty(self, version: int, few: Ints | None) -> _RouteCache:
        return _RouteCache(version, few, ColumnCache(lambda: self._at_once, ROUTE_CACHE_SIZE))

    def on_change(self, commit: Commit, numbers: Ints) -> dict[int, Ints]:
        """By channel, the queries whose results are delivered on change."""
        found: dict[int, Ints] = {}
        for channel, subscribed, feeds in self._newest().at_once.of(numbers).in_force(commit).by_channel():
            found[channel] = subscribed
            self._remember((commit.batch, channel), feeds)
        return found

    def _at_once(self, numbers: Ints) -> _Subscriptions:
        """The subscriptions to some queries that are delivered on change."""
        found: list[list[Any]] = [[] for _ in _COLUMNS]
        with self.database.connect() as connection:
            for some in _chunks(numbers):
                for values, more in zip(found, connection.columns(_COLUMNS, _AT_ONCE, some=some), strict=True):
                    values += more
            starts = _starts(connection, found.pop())
        of, channels, feeds, added, dropped = found
        return _Subscriptions(
            np.array(of, np.int64),
            np.array(channels, np.int64),
            np.array(feeds, object),
            np.array(added, np.int64),
            np.array([LATEST if change is None else change for change in dropped], np.int64),
            starts,
        ).ordered()

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


def _starts(connection: Connection, ids: list[int | None]) -> NDArray[np.float64]:
    """When subscriptions start, given the ids of those that do not start immediately."""
    found: dict[int | None, float] = {None: -np.inf}
    for some in _chunks([id for id in ids if id is not None]):
        rows = connection.execute("select id, start from subscriptions where id in :some", some=some)
        found |= {row.id: row.start for row in rows}
    return np.array([found[id] for id in ids], np.float64)


def _is_in_force(row: Any, commit: Commit) -> bool:
    """The condition `_IN_FORCE`, evaluated on a row."""
    is_current = row.added <= commit.version and (row.dropped is None or row.dropped > commit.version)
    return is_current and (row.start is None or row.start <= commit.at)


def _chunks(numbers: Sequence[int] | Ints) -> Iterator[list[int]]:
    for i in range(0, len(numbers), CHUNK):
        yield [int(number) for number in numbers[i : i + CHUNK]]
