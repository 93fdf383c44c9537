"""Stored subscriptions: which query's results go where, in which form, and how often.

`do ACTION` of a query and `subscribe to F output ...` are the same thing here. Rows of this module are written within a
change of the catalog; what is delivered by them is in `delivery/`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from fishweir.algebra.intervals import interval_text
from fishweir.algebra.nodes import Action
from fishweir.catalog.bulk_insert import among, chunks, insert_rows
from fishweir.catalog.channels import Channels, ChannelSpec
from fishweir.catalog.checksums import SUM, verified, whole
from fishweir.catalog.deliveries import channels, outbox, subscriptions, timers
from fishweir.records import dataclass


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


class SubscriptionRequest(NamedTuple):
    """A subscription to store: to the results of `query`, requested under the name `feed`."""

    query: str
    feed: str
    way: ChannelSpec
    text: str


class Subscribers:
    """Adds and ends subscriptions within one change; `take` gives change numbers."""

    def __init__(self, connection: sa.Connection, take: Callable[[int], int]) -> None:
        self.connection, self.take = connection, take
        self.channels = Channels(connection)
        self.now = time.time()

    @property
    def now(self) -> float:
        return self.channels.now

    @now.setter
    def now(self, now: float) -> None:
        self.channels.now = now

    def rows(self, requests: Sequence[SubscriptionRequest], by_query: bool) -> list[dict[str, Any]]:
        """What is stored of subscriptions, but for the numbers of their changes."""
        ways = [way._replace(own=feed) if way.action.own else way for _, feed, way, _ in requests]
        return [
            {
                "query": query,
                "feed": feed,
                "channel": channel,
                "timed": bool(way.schedule.every),
                "by_query": by_query,
                "start": None if by_query else way.schedule.start,
                "expire": None if by_query else way.schedule.expire,
                "text": text,
                "paused": False,
                "dropped": None,
            }
            for (query, feed, way, text), channel in zip(requests, self.channels.of(ways), strict=True)
        ]

    def add(self, requests: Sequence[SubscriptionRequest]) -> None:
        """Stores subscriptions; those that already exist verbatim are skipped."""
        self.take(0)
        there = self._there([request.text for request in requests])
        new = {
            (request.query, request.text): request for request in requests if (request.query, request.text) not in there
        }
        rows = self.rows(list(new.values()), by_query=False)
        first = self.take(len(rows))
        insert_rows(self.connection, subscriptions, [{**row, "added": first + i} for i, row in enumerate(rows)])

    def _there(self, texts: Sequence[str]) -> set[tuple[str, str]]:
        """Which of these texts already exist, with their queries."""
        found: set[tuple[str, str]] = set()
        living = (subscriptions.c.dropped.is_(None) | subscriptions.c.paused) & ~subscriptions.c.by_query
        wanted = sa.select(subscriptions.c.query, subscriptions.c.text).where(living)
        for some in chunks(texts):
            rows = self.connection.execute(wanted.where(among(self.connection, subscriptions.c.text, some)))
            found |= {(row.query, row.text) for row in rows}
        return found

    def of(self, query: str) -> list[Subscription]:
        return standing(self.connection, subscriptions.c.query == query)

    def feeds(self) -> set[str]:
        """The names with subscriptions, apart from the actions of the queries themselves."""
        living = (subscriptions.c.dropped.is_(None) | subscriptions.c.paused) & ~subscriptions.c.by_query
        return set(self.connection.scalars(sa.select(subscriptions.c.query).where(living).distinct()))

    def end(self, chosen: sa.ColumnElement[bool], change: int | None = None) -> int:
        """Ends subscriptions, and timers that no longer have subscriptions; returns how many there were."""
        living = chosen & (subscriptions.c.dropped.is_(None) | subscriptions.c.paused)
        ended = [
            row.channel for row in self.connection.execute(sa.select(subscriptions.c.channel).where(living).distinct())
        ]
        if not ended:
            return 0
        change = self.take(1) if change is None else change
        done = sa.update(subscriptions).where(living).values(dropped=change, paused=False)
        count = int(self.connection.execute(done).rowcount)
        for i in range(0, len(ended), 5_000):
            self._end_timers(ended[i : i + 5_000])
        return count

    def _end_timers(self, ended: list[int]) -> None:
        self.channels.forget()
        waiting = sa.select(subscriptions.c.channel).where(
            subscriptions.c.channel.in_(ended), subscriptions.c.dropped.is_(None)
        )
        self.connection.execute(sa.delete(timers).where(timers.c.channel.in_(ended), timers.c.channel.not_in(waiting)))

    def end_of(self, query: str, action: Action | None = None, stylesheet: str | None = None) -> int:
        """Ends what was subscribed to a feed or query, or that with this output; `do` clauses stay."""
        chosen = (subscriptions.c.query == query) & ~subscriptions.c.by_query
        if action is not None:
            same = sa.select(channels.c.id).where(
                channels.c.output == action.name, channels.c.arguments == json.dumps(action.arguments)
            )
            chosen &= subscriptions.c.channel.in_(same)
        return self.end(chosen)

    def end_by(self, token: str) -> list[str]:
        """Ends what goes through the channel of a token, paused or not, and returns the names of the queries. Waiting
        deliveries are discarded.
        """
        channel = self.connection.scalar(sa.select(channels.c.id).where(channels.c.token == token))
        if channel is None:
            return []
        chosen = (subscriptions.c.channel == channel) & (subscriptions.c.dropped.is_(None) | subscriptions.c.paused)
        names = list(self.connection.scalars(sa.select(subscriptions.c.query).where(chosen).distinct()))
        self.end(chosen)
        self.connection.execute(sa.delete(outbox).where(outbox.c.channel == channel))
        return names

    def expire(self, chosen: sa.ColumnElement[bool], change: int, now: float) -> None:
        """Ends subscriptions whose time is over. What came before is delivered now, not at the next due time, unless
        others use the same channel: then it goes with what they get."""
        living = chosen & subscriptions.c.dropped.is_(None)
        done = sa.update(subscriptions).where(living).values(dropped=change)
        self.connection.execute(done)
        ended = sa.select(subscriptions.c.channel).where(subscriptions.c.dropped == change)
        others = sa.exists().where(subscriptions.c.channel == timers.c.channel, subscriptions.c.dropped.is_(None))
        self.connection.execute(sa.update(timers).where(timers.c.channel.in_(ended), ~others).values(due=now))

    def pause(self, id: int) -> None:
        values = {"dropped": self.take(1), "paused": True}
        chosen = (subscriptions.c.id == id) & subscriptions.c.dropped.is_(None)
        self.connection.execute(sa.update(subscriptions).where(chosen).values(**values))

    def resume(self, id: int) -> None:
        """Results from the pause are not delivered: the subscription continues as a new row."""
        chosen = (subscriptions.c.id == id) & subscriptions.c.paused
        row = self.connection.execute(sa.select(subscriptions).where(chosen)).mappings().first()
        if row is None:
            return
        self.connection.execute(sa.update(subscriptions).where(chosen).values(paused=False))
        again = {**row, "paused": False, "dropped": None, "added": self.take(1)}
        del again["id"], again[SUM]
        self.connection.execute(sa.insert(subscriptions).values(**again))
        every = self.connection.execute(sa.select(channels).where(channels.c.id == row["channel"])).one()
        self.channels.set_timer(every.id, every.every, every.anchor)


def feeds_by(connection: sa.Connection, token: str) -> tuple[list[str], bool]:
    """The names whose results went through the channel of a token, and whether some still do."""
    own = subscriptions.c.channel == channels.c.id
    wanted = sa.select(subscriptions.c.feed, subscriptions.c.dropped, subscriptions.c.paused)
    rows = connection.execute(wanted.join(channels, own).where(channels.c.token == token).limit(1_000)).all()
    active = [row for row in rows if row.dropped is None or row.paused]
    return sorted({row.feed for row in active or rows})[:5], bool(active)


def standing(connection: sa.Connection, chosen: Any = None) -> list[Subscription]:
    """The current subscriptions, including paused ones, oldest first."""
    living: Any = subscriptions.c.dropped.is_(None) | subscriptions.c.paused
    own = (subscriptions.c[name] for name in ("id", "query", "feed"))
    way = (channels.c[name] for name in ("output", "arguments", "stylesheet", "every"))
    rest = (subscriptions.c[name] for name in ("start", "expire", "text", "by_query", "paused"))
    wanted = sa.select(*own, *way, *rest, channels.c.token, whole(subscriptions, channels))
    wanted = wanted.join(channels, channels.c.id == subscriptions.c.channel)
    rows = connection.execute(wanted.where(living if chosen is None else living & chosen).order_by(subscriptions.c.id))
    return [_subscription(row) for row in verified(rows.all(), subscriptions, connection)]


def _subscription(row: Any) -> Subscription:
    values = dict(row._mapping)
    del values["whole"]
    return Subscription(**{**values, "arguments": tuple(json.loads(values["arguments"]))})
