"""What a delivery contains: the results of its micro-batches for its channel, read from the results table.

The outbox keeps no results. They are read when they are sent, in the order in which they were found, and come out the
same however often that happens. Results that were just read are kept for a while: many channels want the same ones.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from fishweir.delivery.fired import Fired
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.result import Result
from fishweir.pipeline.results import ResultReader

KEPT = 50_000
"""Results that are kept in memory."""

Numbered = tuple[int, Result]
"""A result and its place among those of its micro-batch."""


class Contents:
    def __init__(self, table: ResultsTable, reader: ResultReader, fired: Fired) -> None:
        self.table, self.reader, self.fired = table, reader, fired
        self._kept: OrderedDict[tuple[int, int], list[Numbered]] = OrderedDict()
        self._count = 0
        self._lock = threading.Lock()

    def commits(self, after: int, upto: int) -> list[Commit]:
        return [commit for commit in self.table.commits(after=after) if commit.batch <= upto and commit.matches]

    def of(self, channel: int, after: int, upto: int) -> tuple[list[Result], list[str]]:
        """The results for a channel in the micro-batches (after, upto], and the names of what they are results of."""
        found: list[Result] = []
        names: dict[str, None] = {}
        going = self.fired.of_channel(channel)
        for commit in self.commits(after, upto):
            feeds = going(commit)
            results = self._results(commit, feeds)
            names |= dict.fromkeys(sorted(feeds.values())) if results else {}
            found += results
        return found, list(names)

    def keep(self, commit: Commit, numbers: Iterable[int]) -> None:
        """Reads what is about to be sent, in one pass."""
        with self._lock:
            self._read(commit, [number for number in numbers if (commit.batch, number) not in self._kept])

    def _results(self, commit: Commit, feeds: Mapping[int, str]) -> list[Result]:
        with self._lock:
            missing = [number for number in feeds if (commit.batch, number) not in self._kept]
            read = self._read(commit, missing) if missing else {}
            found = [
                (place, result, feeds[number])
                for number in feeds
                for place, result in (read[number] if number in read else self._kept[commit.batch, number])
            ]
        found.sort(key=lambda one: one[0])
        return [result if result.query == feed else replace(result, query=feed) for _, result, feed in found]

    def _read(self, commit: Commit, numbers: list[int]) -> dict[int, list[Numbered]]:
        wanted = np.array(sorted(numbers), dtype=np.int64)
        found: dict[int, list[Numbered]] = {number: [] for number in numbers}
        if len(wanted):
            for place, (number, result) in enumerate(self.reader.read(self.table, commit, wanted)):
                found[number].append((place, result))
        for number, results in found.items():
            self._kept[commit.batch, number] = results
            self._count += 1 + len(results)
        while self._count > KEPT and self._kept:
            _, dropped = self._kept.popitem(last=False)
            self._count -= 1 + len(dropped)
        return found
