"""The contents of a delivery: the results of its micro-batches for its channel, read from the results table.

The outbox contains no results. They are read when they are sent, in the order in which they were found, and each retry
reads the same results. Recently read results are cached, and channels share equal contents as one object: for a
thousand subscribers of a feed, results are read and converted to text once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from json.encoder import encode_basestring

import numpy as np

from fishweir.delivery.routing import Routing
from fishweir.evaluate.arrays import Ints, expand
from fishweir.garbage import no_collection
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.result import Result, json_texts
from fishweir.pipeline.result_batch import ResultBatch
from fishweir.pipeline.result_texts import rests, shows_columns
from fishweir.pipeline.results import ResultReader

CACHED_RESULTS = 200_000
"""The maximum number of cached results."""
SHARED = 100
"""The maximum number of queries of a channel for which other channels probably have the same ones."""


class Part:
    """The results of one micro-batch for a channel, under the names in the subscriptions."""

    def __init__(self, read: _Read, feeds: Mapping[int, str]) -> None:
        self._read, self._feeds = read, feeds
        self._places = read.places(np.array(sorted(feeds), np.int64))
        self.names = sorted(feeds.values()) if self._places else []

    def __len__(self) -> int:
        return len(self._places)

    @cached_property
    def results(self) -> list[Result]:
        feeds, numbers, results = self._feeds, self._read.numbers, self._read.results
        found = ((feeds[numbers[place]], results[place]) for place in self._places)
        return [result if result.query == name else replace(result, query=name) for name, result in found]

    def release(self) -> None:
        """Releases results that no other channel gets: many live objects slow down Python's garbage collector."""
        if not self._read.is_shared:
            self.__dict__.pop("results", None)
            self._read.forget()

    @cached_property
    def texts(self) -> list[str]:
        """Each result as JSON."""
        rests, numbers = self._read.rests, self._read.numbers
        if rests is None:
            return list(json_texts(self.results))
        begins = {number: f'{{"query": {encode_basestring(name)}, ' for number, name in self._feeds.items()}
        return [begins[numbers[place]] + rests[place] for place in self._places]

    @cached_property
    def lines(self) -> str:
        return "".join([f"{text}\n" for text in self.texts])


class Content:
    """The results of a delivery, with the names of their queries or feeds."""

    def __init__(self, parts: list[Part], batches: list[int]) -> None:
        self.parts, self.batches = parts, batches

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def results(self) -> list[Result]:
        return self.some(slice(0, len(self)))

    def some(self, chosen: slice) -> list[Result]:
        """The results in a slice. Taking the last result of a part releases the part."""
        found: list[Result] = []
        start = 0
        for part in self.parts:
            first, last = max(chosen.start - start, 0), min(chosen.stop - start, len(part))
            if first < last:
                found += part.results[first:last]
                if last == len(part):
                    part.release()
            start += len(part)
        return found

    def located(self, place: int) -> tuple[int, int]:
        """The micro-batch of a result, and its position there."""
        for batch, part in zip(self.batches, self.parts, strict=True):
            if place < len(part):
                return batch, place
            place -= len(part)
        raise IndexError(place)

    @cached_property
    def texts(self) -> list[str]:
        """Each result as JSON."""
        return self.parts[0].texts if len(self.parts) == 1 else [one for part in self.parts for one in part.texts]

    @cached_property
    def names(self) -> list[str]:
        return list(dict.fromkeys(chain.from_iterable(part.names for part in self.parts)))


class _Read:
    """The results of some queries in a micro-batch, in order, with an index by query. Results with columns as output
    are constructed on access: those that are sent as text are never objects.
    """

    def __init__(
        self,
        queries: Ints,
        batches: list[ResultBatch],
        counting: Callable[[], AbstractContextManager[object]],
        is_shared: bool,
        release: Callable[[], None],
    ) -> None:
        self.queries, self._batches, self._counting, self.is_shared = queries, batches, counting, is_shared
        self._release = release
        self.in_columns = all(shows_columns(batch) for batch in batches)
        if self.in_columns:
            of = [batch.queries.numbers[batch.of] for batch in batches]
            numbers = np.concatenate(of) if of else np.empty(0, np.int64)
        else:
            with counting():
                pairs = [pair for batch in batches for pair in batch.results()]
            numbers = np.array([number for number, _ in pairs], np.int64)
            self.results = [result for _, result in pairs]
        self._order = np.argsort(numbers, kind="stable")
        self._sorted = numbers[self._order]
        self.numbers: list[int] = numbers.tolist()
        """The query number of each result."""
        self._parts: dict[tuple[tuple[int, str], ...], Part] = {}
        self.size = len(numbers) + 1

    def part(self, feeds: Mapping[int, str]) -> Part:
        """The results of some queries; one shared object for equal sets of queries, unless these are too large."""
        if len(feeds) > SHARED:
            return Part(self, feeds)
        key = tuple(feeds.items())
        if key not in self._parts:
            if self.size > CACHED_RESULTS:
                self._parts.clear()
                self.size = len(self.numbers) + 1
            self._parts[key] = Part(self, feeds)
            self.size += len(self._parts[key]) + 1
        return self._parts[key]

    @cached_property
    def results(self) -> list[Result]:
        with self._counting(), no_collection():
            return [result for batch in self._batches for _, result in batch.results()]

    def forget(self) -> None:
        """Drops results that can be constructed again, and releases the rest."""
        if self.in_columns:
            self.__dict__.pop("results", None)
        self._release()

    @cached_property
    def rests(self) -> list[str] | None:
        """The text of each result without its query; None if results are written individually."""
        if not self.in_columns:
            return None
        with self._counting():
            return [text for batch in self._batches for text in rests(batch)]

    def has(self, numbers: Ints) -> bool:
        if len(numbers) == 1:  # the common case
            at = int(np.searchsorted(self.queries, numbers[0]))
            return at < len(self.queries) and bool(self.queries[at] == numbers[0])
        return bool(np.isin(numbers, self.queries, assume_unique=True).all())

    def places(self, numbers: Ints) -> list[int]:
        """The positions of the results of some of the queries."""
        if len(numbers) == 1:  # the common case
            begin, end = (int(self._sorted.searchsorted(numbers[0], side)) for side in ("left", "right"))
            return self._order[begin:end].tolist()  # type: ignore[no-any-return]
        ends = (np.searchsorted(self._sorted, numbers, side) for side in ("left", "right"))
        return np.sort(self._order[expand(*ends)[1]]).tolist()  # type: ignore[no-any-return]


class Contents:
    def __init__(self, table: ResultsTable, reader: ResultReader, routing: Routing) -> None:
        self.table, self.reader, self.routing = table, reader, routing
        self._cache: OrderedDict[int, _Read] = OrderedDict()
        self._lock, self._reading = threading.Lock(), threading.Lock()

    def of(self, channel: int, after: int, upto: int) -> Content:
        """The results for a channel in the micro-batches (after, upto]."""
        return self.of_all([(channel, after, upto)])[0]

    def of_all(self, given: Sequence[tuple[int, int, int]]) -> list[Content]:
        """The same for many, each given by channel, after and upto."""
        routes = self.routing.of_channels([channel for channel, _, _ in given])
        commits = {(after, upto): self._commits(after, upto) for after, upto in {one[1:] for one in given}}
        return [
            Content(
                [self._part(commit, routes[channel](commit)) for commit in commits[after, upto]],
                [commit.batch for commit in commits[after, upto]],
            )
            for channel, after, upto in given
        ]

    def _commits(self, after: int, upto: int) -> list[Commit]:
        return [commit for commit in self.table.commits(after, upto) if commit.matches]

    def keep(self, commit: Commit, numbers: Ints, is_all: bool, is_shared: bool) -> bool:
        """Reads the results that are about to be sent, in one pass. Returns whether the outputs have been constructed.
        If `is_all`, the numbers are those of all queries with results, and the rows are not filtered. If `is_shared`,
        several channels get the results.
        """
        return not self._read(commit, numbers, is_all, is_shared).in_columns

    def _part(self, commit: Commit, feeds: Mapping[int, str]) -> Part:
        """The results of some queries, under the names in the subscriptions."""
        read = self._read(commit, np.array(sorted(feeds), np.int64))
        with self._lock:
            return read.part(feeds)

    def _read(self, commit: Commit, queries: Ints, is_all: bool = False, is_shared: bool = True) -> _Read:
        """The results of some queries, and possibly of others. Cached results are found while others are being read."""
        found = self._cached(commit.batch, queries)
        if found is None:
            with self._reading:
                found = self._cached(commit.batch, queries) or self._read_uncached(commit, queries, is_all, is_shared)
        return found

    def _cached(self, batch: int, queries: Ints) -> _Read | None:
        with self._lock:
            found = self._cache.get(batch)
            return found if found is not None and found.has(queries) else None

    def _read_uncached(self, commit: Commit, queries: Ints, is_all: bool, is_shared: bool) -> _Read:
        chosen = None if is_all else queries
        batches = list(self.reader.batches(self.table, [commit], chosen)) if len(queries) else []
        counting = partial(self.reader.spent.counting, commit.batch, commit.documents)
        found = _Read(queries, batches, counting, is_shared, partial(self._release, commit.batch))
        with self._lock:
            self._cache[commit.batch] = found
            while sum(cached.size for cached in self._cache.values()) > CACHED_RESULTS and len(self._cache) > 1:
                self._cache.popitem(last=False)
        return found

    def _release(self, batch: int) -> None:
        with self._lock:
            self._cache.pop(batch, None)
