"""Stored subscriptions: where the results of a query are delivered, in which form, and how often.

`do ACTION` of a query and `subscribe to F output ...` are both subscriptions. Rows are written within a change of the
catalog; `delivery/` reads them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from fishweir.algebra.action_columns import ActionColumns
from fishweir.algebra.intervals import interval_text
from fishweir.catalog.channels import Channels, ChannelSpecs
from fishweir.catalog.checksums import SUM, verified
from fishweir.catalog.database import Connection, chunks
from fishweir.records import dataclass

_CURRENT = "(dropped is null or paused)"
Columns = dict[str, Sequence[Any]]
"""Rows of a table, by column."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """`query` is the query whose results are delivered, `feed` the name that was subscribed to."""

    id: int
    query: str
    feed: str
    output: str
    arguments: tuple[str, ...]
    stylesheet: str | None
    every: float
    start: float | None
    expire: float | None
    text: str
    by_query: bool
    paused: bool
    token: str

    @property
    def target(self) -> str:
        return self.arguments[0] if self.arguments else ""

    @property
    def action(self) -> str:
        return " ".join((self.output, *self.arguments))

    def __str__(self) -> str:
        by = f", by {self.stylesheet}" if self.stylesheet else ""
        when = f"every {interval_text(self.every)}" if self.every else "on change"
        return f"{self.action}, {when}{by}{', paused' if self.paused else ''}"


class SubscriptionRequests(NamedTuple):
    """Subscriptions to store, as columns: to the results of `queries`, requested under the names of `specs`."""

    queries: Sequence[str]
    specs: ChannelSpecs
    texts: Sequence[str]

    def at(self, places: Sequence[int]) -> SubscriptionRequests:
        """The subscriptions at these places."""
        return SubscriptionRequests(
            [self.queries[i] for i in places], self.specs.at(places), [self.texts[i] for i in places]
        )


class Subscribers:
    """Adds and ends subscriptions within one change; `take` reserves change numbers."""

    def __init__(self, connection: Connection, take: Callable[[int], int]) -> None:
        self.connection, self.take = connection, take
        self.channels = Channels(connection)
        self.now = time.time()

    @property
    def now(self) -> float:
        return self.channels.now

    @now.setter
    def now(self, now: float) -> None:
        self.channels.now = now

    def columns(self, requests: SubscriptionRequests, added: Sequence[int], by_query: bool) -> Columns:
        """The columns of subscriptions, which are added by these changes. Their channels are created."""
        schedules, none = requests.specs.schedules, [None] * len(added)
        return {
            "query": requests.queries,
            "feed": requests.specs.names,
            "channel": self.channels.of(requests.specs),
            "timed": [bool(schedule.every) for schedule in schedules],
            "by_query": [by_query] * len(added),
            "start": none if by_query else [schedule.start for schedule in schedules],
            "expire": none if by_query else [schedule.expire for schedule in schedules],
            "text": requests.texts,
            "paused": [False] * len(added),
            "added": added,
            "dropped": none,
        }

    def insert(self, given: Sequence[Columns]) -> None:
        """Stores the columns of subscriptions, one after the other."""
        if given:
            one = {name: list(chain.from_iterable(some[name] for some in given)) for name in given[0]}
            self.connection.insert_columns("subscriptions", one)

    def add(self, requests: SubscriptionRequests) -> None:
        """Stores subscriptions; those that already exist verbatim are skipped."""
        self.take(0)
        existing = self._existing(requests.texts)
        given = zip(requests.queries, requests.texts, strict=True)
        new = {one: place for place, one in enumerate(given) if one not in existing}
        first = self.take(len(new))
        added = range(first, first + len(new))
        self.insert([self.columns(requests.at(list(new.values())), added, by_query=False)])

    def _existing(self, texts: Sequence[str]) -> set[tuple[str, str]]:
        """The (query, text) pairs of these texts that already exist."""
        found: set[tuple[str, str]] = set()
        select = f"select query, text from subscriptions where text in :texts and {_CURRENT} and not by_query"
        for some in chunks(texts):
            found |= {(row.query, row.text) for row in self.connection.execute(select, texts=some)}
        return found

    def of(self, query: str) -> list[Subscription]:
        return current_subscriptions(self.connection, "subscriptions.query = :query", query=query)

    def feeds(self) -> set[str]:
        """The names that have subscriptions other than the actions of the queries themselves."""
        chosen = f"select distinct query from subscriptions where {_CURRENT} and not by_query"
        return set(self.connection.scalars(chosen))

    def end(self, chosen: str, change: int | None = None, **values: Any) -> int:
        """Ends the subscriptions for which a condition holds, and their unused timers. Returns the number of
        subscriptions."""
        condition = f"{chosen} and {_CURRENT}"
        ended = self.connection.scalars(f"select distinct channel from subscriptions where {condition}", **values)
        if not ended:
            return 0
        change = self.take(1) if change is None else change
        done = f"update subscriptions set dropped = :change, paused = false where {condition}"
        count = self.connection.execute(done, change=change, **values).changed
        self.channels.forget()
        for some in chunks(ended):
            self._end_timers(some)
        return count

    def _end_timers(self, ended: list[int]) -> None:
        waiting = "select channel from subscriptions where channel in :ended and dropped is null"
        self.connection.execute(
            f"delete from timers where channel in :ended and channel not in ({waiting})", ended=ended
        )

    def end_of(self, query: str) -> int:
        """Ends the subscriptions to a feed or query; `do` clauses stay in force."""
        return self.end("query = :query and not by_query", query=query)

    def end_each(self, queries: Sequence[str], actions: ActionColumns) -> int | None:
        """Ends the subscriptions to these queries with these actions, all with one change number. If there is none for
        one of them, nothing is changed and its place is returned."""
        channels = self.channels.with_actions(actions)
        living = self._on_channels(set(queries), list(set(chain.from_iterable(channels))))
        ended: list[int] = []
        for place, (query, own) in enumerate(zip(queries, channels, strict=True)):
            ids = [id for channel in own for id in living.pop((query, channel), ())]
            if not ids:
                return place
            ended += ids
        change = self.take(1)
        for some in chunks(ended):
            self.end("id in :ids", change, ids=some)
        return None

    def _on_channels(self, queries: set[str], channels: Sequence[int]) -> dict[tuple[str, int], list[int]]:
        """The ids of current subscriptions to these queries on these channels, other than `do` clauses."""
        found: dict[tuple[str, int], list[int]] = {}
        # an expression for the query, so that the database looks up the few channels instead of all subscribers
        chosen = f"channel in :some and query || '' in :queries and not by_query and {_CURRENT}"
        for some in chunks(channels):
            select = f"select id, query, channel from subscriptions where {chosen}"
            for id, query, channel in self.connection.execute(select, some=some, queries=list(queries)):
                found.setdefault((query, channel), []).append(id)
        return found

    def end_by(self, token: str) -> list[str]:
        """Ends the subscriptions on the channel of a token, paused or not, and returns the names of the queries.
        Waiting deliveries are discarded.
        """
        channel = self.connection.scalar("select id from channels where token = :token", token=token)
        if channel is None:
            return []
        chosen = f"select distinct query from subscriptions where channel = :channel and {_CURRENT}"
        names = self.connection.scalars(chosen, channel=channel)
        self.end("channel = :channel", channel=channel)
        self.connection.execute("delete from outbox where channel = :channel", channel=channel)
        return names

    def expire(self, chosen: str, change: int, now: float, **values: Any) -> None:
        """Ends expired subscriptions. Earlier results are delivered now instead of at the next due time, unless other
        subscriptions use the same channel: then they are delivered together."""
        done = f"update subscriptions set dropped = :change where {chosen} and dropped is null"
        self.connection.execute(done, change=change, now=now, **values)
        ended = "select channel from subscriptions where dropped = :change"
        others = "select 1 from subscriptions where subscriptions.channel = timers.channel and dropped is null"
        due = f"update timers set due = :now where channel in ({ended}) and not exists ({others})"
        self.connection.execute(due, change=change, now=now)

    def pause(self, id: int) -> None:
        paused = "update subscriptions set dropped = :change, paused = true where id = :id and dropped is null"
        self.connection.execute(paused, id=id, change=self.take(1))

    def resume(self, id: int) -> None:
        """Resumes a subscription as a new row. Results from the pause are not delivered."""
        paused = self.connection.execute("select * from subscriptions where id = :id and paused", id=id).first()
        if paused is None:
            return
        self.connection.execute("update subscriptions set paused = false where id = :id and paused", id=id)
        row = {name: value for name, value in paused._mapping.items() if name not in ("id", SUM)}
        self.connection.insert("subscriptions", **{**row, "paused": False, "dropped": None, "added": self.take(1)})
        channel = self.connection.execute("select * from channels where id = :id", id=row["channel"]).first()
        self.channels.set_timer(channel.id, channel.every, channel.anchor)

    def forget_pause(self, id: int) -> None:
        """Clears the pause of a subscription that is replaced, so that it is not resumed."""
        self.connection.execute("update subscriptions set paused = false where id = :id", id=id)


def feeds_by(connection: Connection, token: str) -> tuple[list[str], bool]:
    """The names that have been delivered through the channel of a token, and whether any still is."""
    joined = "subscriptions join channels on subscriptions.channel = channels.id"
    rows = connection.execute(
        f"select feed, dropped, paused from {joined} where channels.token = :token limit 1000", token=token
    )
    active = [row for row in rows if row.dropped is None or row.paused]
    return sorted({row.feed for row in active or rows})[:5], bool(active)


def current_subscriptions(connection: Connection, chosen: str = "", **values: Any) -> list[Subscription]:
    """The current subscriptions, including paused ones, oldest first: all, or those for which a condition holds."""
    rows = connection.execute(
        f"""
        select subscriptions.id, query, feed, output, arguments, stylesheet, every, start, expire, text, by_query,
            paused, token, {connection.whole("subscriptions", "channels")}
        from subscriptions join channels on channels.id = subscriptions.channel
        where {_CURRENT} {f"and {chosen}" if chosen else ""} order by subscriptions.id
        """,
        **values,
    )
    return [_subscription(row) for row in verified(rows, "subscriptions", connection.place)]


def _subscription(row: Any) -> Subscription:
    values = dict(row._mapping)
    del values["whole"]
    flags = {name: bool(values[name]) for name in ("by_query", "paused")}
    return Subscription(**{**values, **flags, "arguments": tuple(json.loads(values["arguments"]))})
