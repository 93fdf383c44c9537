"""Timers: deliveries at scheduled times (NiagaraCQ 3.6).

The event list is a table, sorted by due time; only its front is ever read. A due channel delivers the results since its
last firing, which the results table stores once for all channels, and does not fire if there are none. Firing and
moving to the next due time are one transaction: each due time fires once, and after a pause of any length, a timer
fires once for all missed times.
"""

from __future__ import annotations

import math
from typing import Any

import sqlalchemy as sa

from fishweir.catalog.channels import collected, next_due
from fishweir.catalog.deliveries import channels, news, subscriptions, timers
from fishweir.catalog.fast_lookup import FastLookup
from fishweir.catalog.schema import NOT_YET, queries
from fishweir.delivery.outbox import enqueue

TIMERS_PER_BATCH = 5_000
"""The maximum number of timers that fire in one transaction."""


class Timers:
    def __init__(self, engine: sa.Engine) -> None:
        self.engine, self._asking = engine, FastLookup(engine)
        self._now: float | None = None

    def fire(self, now: float) -> int:
        """Fires the due timers and returns the number of deliveries."""
        self._mind_the_clock(now)
        count = 0
        while (first := self.next()) is not None and first <= now:
            with self.engine.begin() as connection:
                due = self._due(connection, now)
                if not due:
                    break
                upto = collected(connection)
                fired = [row for row in due if row.newest is not None and row.newest > row.batch]
                count += enqueue(connection, ((row.channel, row.batch, upto) for row in fired), now)
                self._move(connection, due, upto, now)
        return count

    def _due(self, connection: sa.Connection, now: float) -> list[sa.Row]:  # type: ignore[type-arg]
        """The front of the list: each channel with the last micro-batch that has results for it, and whether it still
        has subscribers.
        """
        front = sa.select(timers).where(timers.c.due <= now).order_by(timers.c.due).limit(TIMERS_PER_BATCH).subquery()
        of = subscriptions.c.channel == front.c.channel
        newest = (
            sa.select(sa.func.max(news.c.batch))
            .select_from(subscriptions.join(news, news.c.query == subscriptions.c.query))
            .where(of)
            .scalar_subquery()
        )
        living = sa.exists().where(of, subscriptions.c.dropped.is_(None))
        wanted = sa.select(
            front.c.channel,
            front.c.batch,
            channels.c.every,
            channels.c.anchor,
            newest.label("newest"),
            living.label("on"),
        )
        return list(connection.execute(wanted.join(channels, channels.c.id == front.c.channel)))

    def _move(self, connection: sa.Connection, due: list[sa.Row], upto: int, now: float) -> None:  # type: ignore[type-arg]
        ended = [row.channel for row in due if not row.on]
        if ended:
            connection.execute(sa.delete(timers).where(timers.c.channel.in_(ended)))
        moved = [
            {"id": row.channel, "next": next_due(row.anchor, row.every, now), "upto": upto} for row in due if row.on
        ]
        if moved:
            update = sa.update(timers).where(timers.c.channel == sa.bindparam("id"))
            connection.execute(update.values(due=sa.bindparam("next"), batch=sa.bindparam("upto")), moved)

    def _mind_the_clock(self, now: float) -> None:
        """Corrects due times that are too far ahead after the clock was set back: none is further ahead than its
        interval, unless its start is in the future. Due times stay on their grid, which is extended into the past as
        needed.
        """
        before, self._now = self._now, now
        if before is not None and now >= before:
            return
        with self.engine.begin() as connection:
            moved = [_set_back(row, now) for row in connection.execute(_too_far_ahead(now))]
            if moved:
                update = sa.update(timers).where(timers.c.channel == sa.bindparam("id"))
                connection.execute(update.values(due=sa.bindparam("next")), moved)
                update = sa.update(channels).where(channels.c.id == sa.bindparam("channel_id"))
                values = [{"channel_id": one["id"], "from": one["next"] - one["every"]} for one in moved]
                connection.execute(update.values(anchor=sa.bindparam("from")), values)

    def next(self) -> float | None:
        found = self._asking.first(f"select min(due) from {timers.name}")
        return None if found is None else float(found)


def _too_far_ahead(now: float) -> sa.Select[Any]:
    of = subscriptions.c.channel == timers.c.channel
    waits = sa.or_(
        sa.exists().where(of, subscriptions.c.dropped.is_(None), subscriptions.c.start > now),
        sa.exists().where(of, queries.c.name == subscriptions.c.query, queries.c.added == NOT_YET),
    )
    ahead = sa.select(timers.c.channel, channels.c.every, channels.c.anchor)
    ahead = ahead.join(channels, channels.c.id == timers.c.channel)
    return ahead.where(timers.c.due > now + channels.c.every, ~waits)


def _set_back(row: Any, now: float) -> dict[str, float]:
    """The next due time on the same grid."""
    first = row.anchor - math.ceil(max(0.0, row.anchor - now) / row.every) * row.every
    return {"id": row.channel, "next": next_due(first, row.every, now), "every": row.every}
