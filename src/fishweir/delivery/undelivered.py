"""Undelivered results: lists them and resends dead letters."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from fishweir.catalog.deliveries import channels, outbox, subscriptions, targets
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A delivery that is waiting (`due` is the time of the next attempt) or was given up (`dead`), with the last error
    and the number of attempts. `feeds` are some of the subscribed names; the results are those of the micro-batches
    (after, upto]."""

    id: int
    feeds: tuple[str, ...]
    action: str
    after: int
    upto: int
    sent: int
    attempts: int
    dead: bool
    error: str | None
    made: float
    due: float | None

    def __str__(self) -> str:
        state = "dead" if self.dead else "waits"
        what = f"{', '.join(self.feeds)} to {self.action}"
        return f"{self.id} {state}: {what}, {self.attempts} attempts: {self.error or '-'}"


def list_undelivered(connection: sa.Connection, dead: bool | None = None, most: int = 1_000) -> list[Undelivered]:
    """The oldest unacknowledged deliveries: only dead ones, only waiting ones, or both."""
    columns = ("id", "after", "upto", "sent", "attempts", "dead", "error", "made")
    wanted = sa.select(
        *(outbox.c[name] for name in columns), channels.c.output, channels.c.arguments, targets.c.due,
        outbox.c.channel,
    ).join(channels, channels.c.id == outbox.c.channel).join(targets, targets.c.id == outbox.c.target)  # fmt: skip
    if dead is not None:
        wanted = wanted.where(outbox.c.dead if dead else ~outbox.c.dead)
    rows = connection.execute(wanted.order_by(outbox.c.id).limit(most)).all()
    return [_letter(connection, row) for row in rows]


def _letter(connection: sa.Connection, row: Any) -> Undelivered:
    named = sa.select(subscriptions.c.feed).where(subscriptions.c.channel == row.channel)
    feeds = tuple(connection.scalars(named.distinct().order_by(subscriptions.c.feed).limit(5)))
    action = " ".join((row.output, *json.loads(row.arguments)))
    counts = (row.after, row.upto, row.sent, row.attempts)
    return Undelivered(row.id, feeds, action, *counts, row.dead, row.error, row.made, None if row.dead else row.due)


def resend(connection: sa.Connection, now: float, ids: Collection[int] | None = None) -> int:
    """Retries all or some dead letters and returns their number. They keep their keys and are not merged with
    others."""
    chosen = outbox.c.dead if ids is None else outbox.c.dead & outbox.c.id.in_(list(ids))
    waiting = sa.select(outbox.c.target).where(chosen)
    connection.execute(sa.update(targets).where(targets.c.id.in_(waiting)).values(due=now))
    return int(connection.execute(sa.update(outbox).where(chosen).values(dead=False, attempts=1, made=now)).rowcount)
