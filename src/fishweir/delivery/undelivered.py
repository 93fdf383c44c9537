"""Undelivered results: lists them and resends dead letters."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from fishweir.catalog.database import Connection
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


def list_undelivered(connection: Connection, dead: bool | None = None, most: int = 1_000) -> list[Undelivered]:
    """The oldest unacknowledged deliveries: only dead ones, only waiting ones, or both."""
    chosen = {None: "", True: "where outbox.dead", False: "where not outbox.dead"}[dead]
    rows = connection.execute(
        f"""
        select outbox.id, after, upto, sent, attempts, dead, error, made, output, arguments, due, channel
        from outbox join channels on channels.id = outbox.channel join targets on targets.id = outbox.target
        {chosen} order by outbox.id limit :most
        """,
        most=most,
    )
    return [_letter(connection, row) for row in rows]


def _letter(connection: Connection, row: Any) -> Undelivered:
    named = "select distinct feed from subscriptions where channel = :channel order by feed limit 5"
    feeds = tuple(connection.scalars(named, channel=row.channel))
    action = " ".join((row.output, *json.loads(row.arguments)))
    counts = (row.after, row.upto, row.sent, row.attempts)
    due = None if row.dead else row.due
    return Undelivered(row.id, feeds, action, *counts, bool(row.dead), row.error, row.made, due)


def resend(connection: Connection, now: float, ids: Collection[int] | None = None) -> int:
    """Retries all or some dead letters and returns their number. They keep their keys and are not merged with
    others."""
    chosen = "dead" if ids is None else "dead and id in :ids"
    waiting = f"select target from outbox where {chosen}"
    listed = list(ids or ())
    connection.execute(f"update targets set due = :now where id in ({waiting})", now=now, ids=listed)
    retried = f"update outbox set dead = false, attempts = 1, made = :now where {chosen}"
    return connection.execute(retried, now=now, ids=listed).changed
