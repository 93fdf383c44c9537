"""Subscriptions as they are stored: which query's results go where, in which form, how often.

`do ACTION` of a query and `subscribe to F output ...` are the same thing here. Rows of this module are written within a
change of the catalog; what is delivered by them is in `delivery/`.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from fishweir.algebra.intervals import interval_text
from fishweir.algebra.nodes import Action, Schedule
from fishweir.catalog.deliveries import channels, facts, subscriptions, targets, timers
from fishweir.catalog.sums import SUM, verified, whole

COLLECTED = "collected"
"""The fact that says up to which micro-batch results have been handed to the outbox."""


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


# Made once: a script may have a hundred thousand subscriptions, and making a statement takes longer than executing it.
_LIVING = subscriptions.c.dropped.is_(None) | subscriptions.c.paused
_SAME = (
    sa.select(subscriptions.c.id)
    .where(subscriptions.c.text == sa.bindparam("same_text"), subscriptions.c.query == sa.bindparam("same_query"))
    .where(_LIVING, ~subscriptions.c.by_query)
    .limit(1)
)
_CHANNEL = sa.select(channels.c.id).where(channels.c.key == sa.bindparam("own"))
_TARGET = sa.select(targets.c.id).where(targets.c.address == sa.bindparam("own"))
_TIMER = sa.select(timers.c.channel).where(timers.c.channel == sa.bindparam("own"))
_ADD, _ADD_TIMER = sa.insert(subscriptions), sa.insert(timers)
_ADD_TO = {table.name: sa.insert(table) for table in (channels, targets)}


class Subscribers:
    """Adds and ends subscriptions within one change; `take` gives change numbers."""

    def __init__(self, connection: sa.Connection, take: Callable[[int], int]) -> None:
        self.connection, self.take = connection, take
        self.now = time.time()
        self._channels: dict[str, int] = {}
        self._collected: int | None = None

    def row(
        self,
        query: str,
        feed: str,
        action: Action,
        schedule: Schedule,
        text: str,
        stylesheet: str | None,
        by_query: bool,
    ) -> dict[str, Any]:
        """What is stored of a subscription, but for the number of its change."""
        return {
            "query": query,
            "feed": feed,
            "channel": self._channel(action, schedule, stylesheet, feed),
            "timed": bool(schedule.every),
            "by_query": by_query,
            "start": None if by_query else schedule.start,
            "expire": None if by_query else schedule.expire,
            "text": text,
            "paused": False,
            "dropped": None,
        }

    def add(self, row: dict[str, Any]) -> None:
        """Stores a subscription; one that stands word for word is passed over."""
        if self.connection.scalar(_SAME, {"same_text": row["text"], "same_query": row["query"]}) is not None:
            return
        self.connection.execute(_ADD, {**row, "added": self.take(1)})

    def of(self, query: str) -> list[Subscription]:
        return standing(self.connection, subscriptions.c.query == query)

    def feeds(self) -> set[str]:
        """The names of what somebody subscribes to, beside the actions of the queries themselves."""
        living = (subscriptions.c.dropped.is_(None) | subscriptions.c.paused) & ~subscriptions.c.by_query
        return set(self.connection.scalars(sa.select(subscriptions.c.query).where(living).distinct()))

    def end(self, chosen: sa.ColumnElement[bool], change: int | None = None) -> int:
        """Ends subscriptions, and the timers that nobody waits for any more; how many there were."""
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
        """Ends what goes through the channel of a token; the queries that it were results of."""
        channel = self.connection.scalar(sa.select(channels.c.id).where(channels.c.token == token))
        if channel is None:
            return []
        chosen = (subscriptions.c.channel == channel) & subscriptions.c.dropped.is_(None)
        names = list(self.connection.scalars(sa.select(subscriptions.c.query).where(chosen).distinct()))
        self.end(chosen)
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
        """What came meanwhile is not delivered: the subscription goes on as a new row."""
        chosen = (subscriptions.c.id == id) & subscriptions.c.paused
        row = self.connection.execute(sa.select(subscriptions).where(chosen)).mappings().first()
        if row is None:
            return
        self.connection.execute(sa.update(subscriptions).where(chosen).values(paused=False))
        again = {**row, "paused": False, "dropped": None, "added": self.take(1)}
        del again["id"], again[SUM]
        self.connection.execute(sa.insert(subscriptions).values(**again))
        every = self.connection.execute(sa.select(channels).where(channels.c.id == row["channel"])).one()
        self._set_timer(every.id, every.every, every.anchor)

    def _channel(self, action: Action, schedule: Schedule, stylesheet: str | None, feed: str) -> int:
        every = schedule.every or 0.0
        anchor = None if not every else (self.now if schedule.start is None else schedule.start)
        own = feed if action.own else None
        key = json.dumps([action.name, action.arguments, action.address, stylesheet, every, anchor, own])
        if key not in self._channels:
            found = self.connection.scalar(_CHANNEL, {"own": key})
            if found is None:
                values = {
                    "key": key,
                    "target": self._target(action),
                    "output": action.name,
                    "arguments": json.dumps(action.arguments),
                    "stylesheet": stylesheet,
                    "every": every,
                    "anchor": anchor,
                    "token": secrets.token_urlsafe(18),
                }
                found = _inserted(self.connection, channels, values)
            self._set_timer(int(found), every, anchor)
            self._channels[key] = int(found)
        return self._channels[key]

    def _set_timer(self, channel: int, every: float, anchor: float | None) -> None:
        """In the event list from now on, unless it is there."""
        if not every or anchor is None:
            return
        if self.connection.scalar(_TIMER, {"own": channel}) is None:
            if self._collected is None:
                self._collected = collected(self.connection)
            values = {"channel": channel, "due": next_due(anchor, every, self.now), "batch": self._collected}
            self.connection.execute(_ADD_TIMER, values)

    def _target(self, action: Action) -> int:
        address = action.address or json.dumps([action.name, *action.arguments])
        found = self.connection.scalar(_TARGET, {"own": address})
        if found is None:
            found = _inserted(self.connection, targets, {"address": address, "host": action.host})
        return int(found)


def next_due(anchor: float, every: float, now: float) -> float:
    """The first of anchor, anchor + every, ... that is to come."""
    if anchor > now:
        return anchor
    due = anchor + (int((now - anchor) / every) + 1) * every
    return due if due > now else due + every


def collected(connection: sa.Connection) -> int:
    return int(connection.scalar(sa.select(facts.c.value).where(facts.c.name == COLLECTED)) or -1)


def standing(connection: sa.Connection, chosen: Any = None) -> list[Subscription]:
    """The subscriptions that stand, paused ones too, the oldest first."""
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


def _inserted(connection: sa.Connection, table: sa.Table, values: dict[str, Any]) -> int:
    key = connection.execute(_ADD_TO[table.name], values).inserted_primary_key
    assert key is not None
    return int(key[0])
