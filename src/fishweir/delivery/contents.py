"""What a delivery contains: the results of its micro-batches for its channel, read from the results table.

The outbox keeps no results. They are read when they are sent, in the order in which they were found, and come out the
same however often that happens. Results that were just read are kept for a while: many channels want the same ones.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from fishweir.delivery.fired import Fired
from fishweir.evaluate.arrays import Ints, expand
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.result import Result
from fishweir.pipeline.results import ResultReader

KEPT = 200_000
"""Results that are kept in memory."""


class _Read:
    """The results of some queries in a micro-batch, in order, with an index by query."""

    def __init__(self, wanted: Ints, found: Iterable[tuple[int, Result]]) -> None:
        pairs = list(found)
        self.wanted, self.results = wanted, [result for _, result in pairs]
        numbers = np.array([number for number, _ in pairs], np.int64)
        self._order = np.argsort(numbers, kind="stable")
        self._numbers = numbers[self._order]
        self._of = numbers

    def has(self, numbers: Ints) -> bool:
        return bool(np.isin(numbers, self.wanted, assume_unique=True).all())

    def of(self, numbers: Ints) -> Iterator[tuple[int, Result]]:
        """The results of some of the queries, with the number of each one's query."""
        ends = (np.searchsorted(self._numbers, numbers, side) for side in ("left", "right"))
        places = np.sort(self._order[expand(*ends)[1]])
        return zip(self._of[places].tolist(), map(self.results.__getitem__, places.tolist()), strict=True)


class Contents:
    def __init__(self, table: ResultsTable, reader: ResultReader, fired: Fired) -> None:
        self.table, self.reader, self.fired = table, reader, fired
        self._kept: OrderedDict[int, _Read] = OrderedDict()
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
            self._read(commit, np.array(sorted(numbers), np.int64))

    def _results(self, commit: Commit, feeds: Mapping[int, str]) -> list[Result]:
        wanted = np.array(sorted(feeds), np.int64)
        with self._lock:
            found = self._read(commit, wanted).of(wanted)
        return [
            result if result.query == feeds[number] else replace(result, query=feeds[number])
            for number, result in found
        ]

    def _read(self, commit: Commit, wanted: Ints) -> _Read:
        """The results of some queries, and perhaps of more."""
        found = self._kept.get(commit.batch)
        if found is None or not found.has(wanted):
            read = self.reader.read(self.table, commit, wanted) if len(wanted) else ()
            with self.reader.spent.counting(commit.batch, commit.documents):
                self._kept[commit.batch] = found = _Read(wanted, read)
            while sum(len(kept.results) + 1 for kept in self._kept.values()) > KEPT and len(self._kept) > 1:
                self._kept.popitem(last=False)
        return found
