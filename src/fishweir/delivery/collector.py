"""The collector: committed micro-batches become rows of the outbox, each exactly once.

Results that go out on change become rows at once. Of those that wait for a timer only the name of the query is noted,
with the micro-batch: the timer finds them in the results table.
"""

from __future__ import annotations

import sqlalchemy as sa

from fishweir.catalog.asking import Asking
from fishweir.catalog.channels import collected
from fishweir.catalog.deliveries import COLLECTED, facts, news, subscriptions
from fishweir.delivery.contents import Contents
from fishweir.delivery.fired import Fired
from fishweir.delivery.outbox import enqueue
from fishweir.pipeline.commits import Commit, ResultsTable

NOTED = 100
"""Micro-batches without anybody to deliver to, after which it is noted how far they are."""


class Collector:
    def __init__(self, engine: sa.Engine, table: ResultsTable, fired: Fired, contents: Contents) -> None:
        self.engine, self.table, self.fired, self.contents = engine, table, fired, contents
        self.asking, self._has_subscribers = Asking(engine), False
        self.batch = -1
        self.catch_up()

    @property
    def has_subscribers(self) -> bool:
        """Whether anybody ever subscribed. Where nobody did, nothing can be due, and a micro-batch is passed over."""
        if not self._has_subscribers:
            self._has_subscribers = self.asking.first(f"select 1 from {subscriptions.name} limit 1") is not None
        return self._has_subscribers

    def catch_up(self) -> None:
        """Another process may have run the job meanwhile."""
        with self.engine.connect() as connection:
            self.batch = collected(connection)

    def waiting(self) -> list[Commit]:
        return self.table.commits(after=self.batch)

    def collect(self, now: float) -> int:
        """Takes up what has been committed since; how many deliveries that makes."""
        return sum(self._collect(commit, now) for commit in self.waiting())

    def _collect(self, commit: Commit, now: float) -> int:
        if not self.has_subscribers and commit.batch % NOTED:
            self.batch = commit.batch
            return 0
        numbers = self.fired.numbers(commit)
        at_once = self.fired.on_change(commit, numbers) if len(numbers) else {}
        later = self.fired.timed(commit, numbers) if len(numbers) else []
        if not at_once:
            return self._enter(commit, [], later, now)
        # All of it counts as constructing outputs: the shedder has to know how long results take to go out. Those that
        # are constructed when they are sent are counted then.
        with self.contents.reader.spent.counting(commit.batch, commit.documents) as count:
            wanted = sorted({number for some in at_once.values() for number in some})
            count.is_wanted = self.contents.keep(commit, wanted)
            return self._enter(commit, sorted(at_once), later, now)

    def _enter(self, commit: Commit, channels: list[int], later: list[str], now: float) -> int:
        """Into the outbox, with how far it is."""
        with self.engine.begin() as connection:
            rows = ((channel, commit.batch - 1, commit.batch) for channel in channels)
            count = enqueue(connection, rows, now)
            for i in range(0, len(later), 5_000):
                self._note(connection, later[i : i + 5_000], commit.batch)
            connection.execute(sa.delete(facts).where(facts.c.name == COLLECTED))
            connection.execute(sa.insert(facts).values(name=COLLECTED, value=str(commit.batch)))
        self.batch = commit.batch
        return count

    def _note(self, connection: sa.Connection, names: list[str], batch: int) -> None:
        connection.execute(sa.delete(news).where(news.c.query.in_(names)))
        connection.execute(sa.insert(news), [{"query": name, "batch": batch} for name in names])
