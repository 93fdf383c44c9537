"""Timers: deliveries at scheduled times (NiagaraCQ 3.6).

The event list is a table, sorted by due time; only its front is ever read. A due channel delivers the results since its
last firing, which the results table stores once for all channels, and does not fire if there are none. Firing and
moving to the next due time are one transaction: each due time fires once, and after a pause of any length, a timer
fires once for all missed times.
"""

from __future__ import annotations

import math
from typing import Any

from fishweir.catalog.channels import collected, next_due
from fishweir.catalog.database import Connection, Database
from fishweir.catalog.schema import NOT_YET
from fishweir.delivery.outbox import enqueue

TIMERS_PER_BATCH = 5_000
"""The maximum number of timers that fire in one transaction."""

_TOO_FAR_AHEAD = f"""
    select timers.channel, channels.every, channels.anchor from timers join channels on channels.id = timers.channel
    where timers.due > :now + channels.every
        and not exists (select 1 from subscriptions where subscriptions.channel = timers.channel
            and subscriptions.dropped is null and subscriptions.start > :now)
        and not exists (select 1 from subscriptions join queries on queries.name = subscriptions.query
            where subscriptions.channel = timers.channel and queries.added = {NOT_YET})
"""


class Timers:
    def __init__(self, database: Database) -> None:
        self.database = database
        self._now: float | None = None

    def fire(self, now: float) -> int:
        """Fires the due timers and returns the number of deliveries."""
        self._correct_clock_set_back(now)
        count = 0
        while (first := self.next()) is not None and first <= now:
            with self.database.begin() as connection:
                due = self._due(connection, now)
                if not due:
                    break
                upto = collected(connection)
                fired = [row for row in due if row.newest is not None and row.newest > row.batch]
                count += enqueue(connection, ((row.channel, row.batch, upto) for row in fired), now)
                self._move(connection, due, upto, now)
        return count

    def _due(self, connection: Connection, now: float) -> list[Any]:
        """The front of the list: each channel with the last micro-batch that has results for it, and whether it still
        has subscribers.
        """
        return connection.execute(
            """
            select front.channel, front.batch, channels.every, channels.anchor,
                (select max(news.batch) from subscriptions join news on news.query = subscriptions.query
                    where subscriptions.channel = front.channel) as newest,
                exists (select 1 from subscriptions
                    where subscriptions.channel = front.channel and subscriptions.dropped is null) as is_active
            from (select channel, batch from timers where due <= :now order by due limit :most) as front
                join channels on channels.id = front.channel
            """,
            now=now,
            most=TIMERS_PER_BATCH,
        )

    def _move(self, connection: Connection, due: list[Any], upto: int, now: float) -> None:
        ended = [row.channel for row in due if not row.is_active]
        if ended:
            connection.execute("delete from timers where channel in :ended", ended=ended)
        moved = [
            {"channel": row.channel, "due": next_due(row.anchor, row.every, now), "batch": upto}
            for row in due
            if row.is_active
        ]
        connection.execute_many("update timers set due = :due, batch = :batch where channel = :channel", moved)

    def _correct_clock_set_back(self, now: float) -> None:
        """Corrects due times that are too far ahead after the clock was set back: none is further ahead than its
        interval, unless its start is in the future. Due times stay on their grid, which is extended into the past as
        needed.
        """
        before, self._now = self._now, now
        if before is not None and now >= before:
            return
        with self.database.begin() as connection:
            ahead = connection.execute(_TOO_FAR_AHEAD, now=now)
            moved = [(row, _set_back(row, now)) for row in ahead]
            rows = [{"channel": row.channel, "due": due, "anchor": due - row.every} for row, due in moved]
            connection.execute_many("update timers set due = :due where channel = :channel", rows)
            connection.execute_many("update channels set anchor = :anchor where id = :channel", rows)

    def next(self) -> float | None:
        found = self.database.scalar("select min(due) from timers")
        return None if found is None else float(found)


def _set_back(row: Any, now: float) -> float:
    """The next due time on the same grid."""
    first = row.anchor - math.ceil(max(0.0, row.anchor - now) / row.every) * row.every
    return next_due(first, row.every, now)
