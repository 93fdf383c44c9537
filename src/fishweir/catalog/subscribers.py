"""Subscriptions to feeds, as they are stored: to whom, in which form, how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from fishweir.algebra.feeds import Subscribe
from fishweir.algebra.intervals import interval_text
from fishweir.catalog.change import Change
from fishweir.catalog.schema import subscribers


@dataclass(frozen=True, slots=True)
class Subscription:
    feed: str
    output: str
    target: str
    stylesheet: str | None
    every: float
    text: str

    def __str__(self) -> str:
        by = f", by {self.stylesheet}" if self.stylesheet else ""
        when = f"every {interval_text(self.every)}" if self.every else "on change"
        return f"{self.output} {self.target}, {when}{by} (not delivered yet)"


class Subscribers:
    def __init__(self, change: Change) -> None:
        self.change, self.connection = change, change.connection

    def add(self, statement: Subscribe) -> None:
        """Stores a subscription; one that stands word for word is passed over."""
        if any(standing.text == statement.text for standing in self.of(statement.feed)):
            return
        self.connection.execute(
            sa.insert(subscribers).values(
                feed=statement.feed,
                output=statement.output,
                target=statement.target,
                every=statement.every,
                stylesheet=statement.stylesheet,
                text=statement.text,
                added=self.change.take(1),
            )
        )

    def of(self, feed: str) -> list[Subscription]:
        return standing(self.connection, feed)

    def drop(self, feed: str, output: str | None, target: str | None) -> int:
        """Ends the subscriptions of a feed, or the one with this output; how many there were."""
        chosen = (subscribers.c.feed == feed) & subscribers.c.dropped.is_(None)
        if output is not None:
            chosen &= (subscribers.c.output == output) & (subscribers.c.target == target)
        ended = self.connection.execute(sa.update(subscribers).where(chosen).values(dropped=self.change.take(1)))
        return int(ended.rowcount)


def standing(connection: sa.Connection, feed: str | None = None) -> list[Subscription]:
    """The subscriptions that stand, of one feed or of all, the oldest first."""
    chosen: Any = subscribers.c.dropped.is_(None)
    if feed is not None:
        chosen &= subscribers.c.feed == feed
    columns = [subscribers.c[name] for name in Subscription.__slots__]  # type: ignore[attr-defined]
    rows = connection.execute(sa.select(*columns).where(chosen).order_by(subscribers.c.id))
    return [Subscription(*row) for row in rows]
