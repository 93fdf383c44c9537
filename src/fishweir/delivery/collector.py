"""The collector: turns committed micro-batches into rows of the outbox, each exactly once.

Results that are delivered on change become rows immediately. For those that wait for a timer, only the name of the
query and the micro-batch are recorded: the timer finds them in the results table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from fishweir.catalog.channels import collected
from fishweir.catalog.database import Connection, Database, chunks
from fishweir.catalog.schema import COLLECTED
from fishweir.delivery.contents import Contents
from fishweir.delivery.direct import Direct, Row
from fishweir.delivery.outbox import Delivery, enqueue
from fishweir.delivery.routing import Routing
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.output_timing import Count

MAX_COMMITS, SLICE = 20, 0.1
"""The maximum number of waiting micro-batches that are collected in one transaction, and the number of seconds after
which no more are added: their deliveries start after the transaction.
"""
RECORD_EVERY = 100
"""The number of micro-batches without subscribers after which the progress is recorded."""


class Collector:
    def __init__(
        self, database: Database, table: ResultsTable, routing: Routing, contents: Contents, direct: Direct
    ) -> None:
        self.database, self.table, self.routing, self.contents, self.direct = database, table, routing, contents, direct
        self._has_subscribers = False
        self._none_at = -1
        """The version of the catalog at which there were no subscriptions."""
        self.batch = -1
        self._started: list[Delivery] = []
        self.catch_up()

    @property
    def has_subscribers(self) -> bool:
        """Whether there was ever a subscription. Without any, nothing can be due, and micro-batches are skipped."""
        if not self._has_subscribers:
            self._has_subscribers = self.database.scalar("select 1 from subscriptions limit 1") is not None
        return self._has_subscribers

    def catch_up(self) -> None:
        """Reads the progress again, since another process may have run the job in the meantime."""
        with self.database.connect() as connection:
            self.batch = collected(connection)

    def skip(self, commit: Commit) -> bool:
        """Takes a commit as collected if it follows the last one, the catalog has not changed since there were no
        subscriptions, and the progress need not be recorded yet. Returns whether it did."""
        follows = commit.batch == self.batch + 1 and commit.batch % RECORD_EVERY
        if self._has_subscribers or commit.version != self._none_at or not follows:
            return False
        self.batch = commit.batch
        return True

    def waiting(self) -> list[Commit]:
        return self.table.commits(after=self.batch)

    def collect(self, now: float, start: Callable[[], None] = lambda: None) -> None:
        """Collects the commits since the last call. After each transaction, `start` starts its deliveries."""
        waiting = self.waiting()
        while waiting:
            self._collect(waiting[:MAX_COMMITS], now)
            waiting = [commit for commit in waiting if commit.batch > self.batch]
            start()

    def started(self) -> list[Delivery]:
        """The deliveries that have started since the last call, regardless of later failures."""
        with self.direct.moving:
            started, self._started = self._started, []
        return started

    def _collect(self, commits: Sequence[Commit], now: float) -> None:
        """Collects micro-batches for a slice of time. Their results for one channel become one row."""
        last, ends = commits[-1].batch, time.monotonic() + SLICE
        if not self.has_subscribers and all(commit.batch % RECORD_EVERY for commit in commits):
            self.batch, self._none_at = last, commits[-1].version
            return
        rows: dict[int, Row] = {}
        later: dict[str, int] = {}
        timed: Commit | None = None
        for commit in commits:
            numbers = self.routing.numbers(commit)
            if not len(numbers):
                continue
            at_once = self.routing.on_change(commit, numbers)
            later |= dict.fromkeys(self.routing.timed(commit, numbers), commit.batch)
            for channel in at_once:
                after = rows[channel][1] if channel in rows else commit.batch - 1
                rows[channel] = channel, after, commit.batch
            if at_once:
                sent = np.unique(np.concatenate(list(at_once.values())))
                is_all = len(sent) == len(numbers) and not self.routing.are_few
                with self._counting(commit) as count:
                    count.is_wanted = self.contents.keep(commit, sent, is_all, len(at_once) > 1)
                timed = commit if count.is_wanted else timed
            if time.monotonic() >= ends:
                last = commit.batch
                break
        with self._counting(timed) if timed else nullcontext(), self.direct.moving:
            started = self._write([rows[channel] for channel in sorted(rows)], list(later.items()), last, now)
            self.direct.busy |= {delivery.target for delivery in started}
            self._started += started
            self.batch = last

    def _counting(self, commit: Commit) -> AbstractContextManager[Count]:
        """Measures the collection as constructing outputs: the shedder needs the total time until results are
        delivered. Outputs that are constructed when they are sent are measured then.
        """
        return self.contents.reader.spent.counting(commit.batch, commit.documents)

    def _write(self, rows: Sequence[Row], later: Sequence[tuple[str, int]], last: int, now: float) -> list[Delivery]:
        with self.database.begin() as connection:
            started, left = self.direct.start(connection, rows, now)
            enqueue(connection, left, now)
            for some in chunks(later):
                self._record_news(connection, some)
            connection.execute("delete from facts where name = :name", name=COLLECTED)
            connection.insert("facts", name=COLLECTED, value=str(last))
        return started

    def _record_news(self, connection: Connection, news: Sequence[tuple[str, int]]) -> None:
        connection.execute("delete from news where query in :names", names=[name for name, _ in news])
        connection.insert_tuples("news", ("query", "batch"), news)
