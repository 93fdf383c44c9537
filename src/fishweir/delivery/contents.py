"""What a delivery contains: the results of its micro-batches for its channel, read from the results table.

The outbox keeps no results. They are read when they are sent, in the order in which they were found, and come out the
same however often that happens. What was just read is kept for a while, and what channels have in common is one object:
a thousand subscribers of a feed get results that were read, and written as text, once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain

import numpy as np

from fishweir.delivery.fired import Fired
from fishweir.evaluate.arrays import Ints, expand
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.result import Result, json_texts
from fishweir.pipeline.results import ResultReader

KEPT = 200_000
"""Results that are kept in memory."""
SHARED = 100
"""Queries of a channel up to which others are likely to have the same ones."""


class Part:
    """The results of one micro-batch for a channel."""

    def __init__(self, results: list[Result], names: Sequence[str]) -> None:
        self.results, self.names = results, names

    @cached_property
    def texts(self) -> list[str]:
        """Each result as JSON."""
        return list(json_texts(self.results))

    @cached_property
    def lines(self) -> str:
        return "".join([f"{text}\n" for text in self.texts])


class Content:
    """The results of a delivery, with the names of what they are results of."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(len(part.results) for part in self.parts)

    @cached_property
    def results(self) -> list[Result]:
        return self.parts[0].results if len(self.parts) == 1 else [one for part in self.parts for one in part.results]

    @cached_property
    def texts(self) -> list[str]:
        """Each result as JSON."""
        return self.parts[0].texts if len(self.parts) == 1 else [one for part in self.parts for one in part.texts]

    @cached_property
    def names(self) -> list[str]:
        return list(dict.fromkeys(chain.from_iterable(part.names for part in self.parts)))


class _Read:
    """The results of some queries in a micro-batch, in order, with an index by query."""

    def __init__(self, wanted: Ints, found: Iterable[tuple[int, Result]]) -> None:
        pairs = list(found)
        self.wanted, self.results = wanted, [result for _, result in pairs]
        numbers = np.array([number for number, _ in pairs], np.int64)
        self._order = np.argsort(numbers, kind="stable")
        self._numbers = numbers[self._order]
        self._of = numbers
        self.parts: dict[tuple[tuple[int, str], ...], Part] = {}

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

    def of(self, channel: int, after: int, upto: int) -> Content:
        """The results for a channel in the micro-batches (after, upto]."""
        return self.of_all([(channel, after, upto)])[0]

    def of_all(self, given: Sequence[tuple[int, int, int]]) -> list[Content]:
        """The same for many: channel, after and upto of each."""
        going = self.fired.of_channels([channel for channel, _, _ in given])
        commits = {(after, upto): self._commits(after, upto) for after, upto in {one[1:] for one in given}}
        return [
            Content([self._part(commit, going[channel](commit)) for commit in commits[after, upto]])
            for channel, after, upto in given
        ]

    def _commits(self, after: int, upto: int) -> list[Commit]:
        return [commit for commit in self.table.commits(after=after) if commit.batch <= upto and commit.matches]

    def keep(self, commit: Commit, numbers: Iterable[int]) -> None:
        """Reads what is about to be sent, in one pass."""
        with self._lock:
            self._read(commit, np.array(sorted(numbers), np.int64))

    def _part(self, commit: Commit, feeds: Mapping[int, str]) -> Part:
        """The results of some queries, under the names that were subscribed to."""
        key = tuple(feeds.items()) if len(feeds) <= SHARED else None
        with self._lock:
            kept = self._kept.get(commit.batch)
            if kept is not None and key is not None and key in kept.parts:
                return kept.parts[key]
            wanted = np.array(sorted(feeds), np.int64)
            read = self._read(commit, wanted)
            results = [
                result if result.query == feeds[number] else replace(result, query=feeds[number])
                for number, result in read.of(wanted)
            ]
            part = Part(results, sorted(feeds.values()) if results else ())
            if key is not None:
                read.parts[key] = part
            return part

    def _read(self, commit: Commit, wanted: Ints) -> _Read:
        """The results of some queries, and perhaps of more."""
        found = self._kept.get(commit.batch)
        if found is None or not found.has(wanted):
            read = self.reader.read(self.table, commit, wanted) if len(wanted) else ()
            with self.reader.spent.counting():
                self._kept[commit.batch] = found = _Read(wanted, read)
            while sum(len(kept.results) + 1 for kept in self._kept.values()) > KEPT and len(self._kept) > 1:
                self._kept.popitem(last=False)
        return found
