"""Reads results: expanded to queries, with bindings and outputs, from table and log.

Nothing is constructed before it is requested: a result row names documents and nodes, and a document is read from its
stream's log. Results are read in batches (result_batch.py), as columns or as `Result` objects.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from fishweir.evaluate.arrays import Ints
from fishweir.pipeline.block import Block
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.expand import Expansion, QuerySet, entries_of, result_times
from fishweir.pipeline.fired_index import Wanted
from fishweir.pipeline.home import Home, open_log
from fishweir.pipeline.omitted_patterns import omitted_patterns_of
from fishweir.pipeline.output_timing import OutputTimer
from fishweir.pipeline.outputs import is_bound_when_read, several
from fishweir.pipeline.query_cache import QueryCache, QuerySource
from fishweir.pipeline.result import QueryLike, Result
from fishweir.pipeline.result_batch import Once, ResultBatch, pairs_of
from fishweir.pipeline.result_columns import SCHEMA, to_record_batch
from fishweir.pipeline.row_lists import since_of
from fishweir.pipeline.shares import WHOLE, Share
from fishweir.pipeline.source_documents import fields_of

ENTRIES_AT_ONCE, PAIRS_AT_ONCE, BYTES_AT_ONCE, FEW = 1 << 15, 1 << 19, 1 << 26, 1 << 12
"""The numbers of entries and pairs that are expanded together: query sets may be large. Fewer, but at least `FEW`, if
their documents exceed a number of bytes: documents may be large, too.
"""
CORES = min(3, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
THREADS = CORES + 1
"""The number of threads that construct the columns of a table: most of it is done without the interpreter lock. There
is one more than cores, since one of them often waits for the lock.
"""
SAMPLE = 4
"""The number of documents of a stream whose sizes are sampled."""
ASKED = 64
"""The number of query selections whose positions are cached."""


@dataclass(frozen=True)
class ResultReader:
    """Constructs results from rows; `queries` looks up queries by number, `dead` those dropped by a version, `waiting`
    those whose documents wait for the end of their window (`NOT FOLLOWED BY`)."""

    home: Home
    queries: QuerySource
    dead: Callable[[int], Ints]
    waiting: Callable[[int], QuerySet]
    spent: OutputTimer = field(default_factory=OutputTimer, repr=False, compare=False)
    """The time that deliveries and published streams spend here."""

    @cached_property
    def _known(self) -> QueryCache:
        return QueryCache(self.queries)

    def read(self, table: ResultsTable, commit: Commit, wanted: Ints | None = None) -> Iterator[tuple[int, Result]]:
        """The results of a micro-batch, each with the number of its query."""
        for batch in self.batches(table, [commit], wanted):
            yield from batch.results()

    def batches(
        self, table: ResultsTable, commits: Iterable[Commit], wanted: Ints | None = None, share: Share = WHOLE
    ) -> Iterator[ResultBatch]:
        """The results of micro-batches, for the `wanted` queries or all, in batches. A query gets a result if it was
        registered before the earliest of its documents arrived, and only once, however many alternatives match.
        """
        every = list(commits)
        size = evenly(sum(commit.matches for commit in every))
        for some, expansion in self._together(table, every, size):
            yield from self._batches(table, some, expansion, wanted, share, size)

    def _together(
        self, table: ResultsTable, commits: Iterable[Commit], size: int
    ) -> Iterator[tuple[list[Commit], Expansion]]:
        """Small micro-batches in a row for which the same queries are dropped: a read has fixed costs."""
        some: list[Commit] = []
        known: Expansion | None = None
        for commit in commits:
            expansion = self.expansion(table, commit)
            if known is not None and not (
                _is_plain(commit)
                and _is_plain(some[-1])
                and sum(one.matches for one in some) + commit.matches <= size
                and (known.waiting is None) == (expansion.waiting is None)
                and np.array_equal(known.dropped, expansion.dropped)
            ):
                yield some, known
                some = []
            some.append(commit)
            known = expansion
        if known is not None:
            yield some, known

    def _batches(
        self,
        table: ResultsTable,
        commits: list[Commit],
        expansion: Expansion,
        wanted: Ints | None,
        share: Share,
        size: int,
    ) -> Iterator[ResultBatch]:
        tables, cuts, commit = [table.rows(one) for one in commits], omitted_patterns_of(table, commits[0]), commits[0]
        rows, batches = pa.concat_tables(tables), np.repeat(np.arange(len(tables)), [len(one) for one in tables])
        if wanted is not None:
            chosen = np.unique(expansion.queries(rows, wanted)[0])
            rows, batches = rows.take(pa.array(chosen)), batches[chosen]
        rows = rows.combine_chunks()
        entries, once = entries_of(rows, batches), Once()
        sizes = expansion.at_most(rows)
        if wanted is not None:
            sizes = np.minimum(sizes, len(wanted))
        for some in self._cut(rows, sizes[entries.rows], share.of(sizes[entries.rows], entries.documents), size):
            block = Block(self.home, rows, entries, some, cuts)
            at, numbers = expansion.queries(block.rows, wanted)
            batch = pairs_of(block, at, numbers, self._known.of, table.tags).once(once)
            if cuts and commit.completes >= 0:
                batch = batch.those_cut(True).whole()
            elif cuts and table.is_completed(commit.batch):
                batch = batch.those_cut(False)
            if len(batch.entries):
                yield batch

    def _cut(self, rows: pa.Table, sizes: Ints, within: slice, size: int) -> Iterator[slice]:
        """Ranges of entries in order, each with a limited number of pairs with queries."""
        ends, start, most = np.cumsum(sizes), within.start, PAIRS_AT_ONCE
        if within.stop - start > FEW or (len(ends) and ends[-1] > FEW):
            most = max(min(BYTES_AT_ONCE // self._bytes(rows), most), FEW)
        while start < within.stop:
            full = np.searchsorted(ends, (ends[start - 1] if start else 0) + most, "right")
            stop = min(max(int(full), start + 1), start + min(size, most), within.stop)
            yield slice(start, stop)
            start = stop

    def _bytes(self, rows: pa.Table) -> int:
        """The mean size of some of the rows' documents, at least 1."""
        chosen = rows.take(pa.array(np.linspace(0, len(rows) - 1, SAMPLE).astype(np.int64)))
        places = zip(chosen.column("stream").to_pylist(), chosen.column("document").to_pylist(), strict=True)
        logs = ((open_log(self.home.streams, stream), np.array([number])) for stream, number in places)
        return sum(fields_of(log, number, ["body"]).nbytes for log, number in logs) // SAMPLE + 1

    def fired(self, table: ResultsTable, commit: Commit, wanted: Ints | None = None) -> Ints:
        """The queries that may have results in a micro-batch, among all or among the wanted ones."""
        if not self.may_have(table, commit, wanted):
            return np.empty(0, np.int64)
        return np.unique(self.expansion(table, commit).queries(table.rows(commit), wanted)[1])

    def times(self, table: ResultsTable, commit: Commit, query: QueryLike, number: int, added: int) -> Any:
        """The timestamps of one query's results in a micro-batch. Repeated results do not count."""
        if commit.completes >= 0 or not self.may_have(table, commit, np.array([number])):
            return np.empty(0, np.float64)
        if is_bound_when_read(query.shape):
            read = self.read(table, commit, np.array([number]))
            return np.array([result.timestamp for _, result in read], np.float64)
        rows = table.rows(commit)
        row, _ = self.expansion(table, commit).queries(rows, np.array([number]))
        came = since_of(rows)[row]
        row = row[(came >= added) | ((came < 0) & (came == table.tags([number])[0]))]
        return result_times(rows.take(pa.array(np.unique(row))), several(query.shape))

    def may_have(self, table: ResultsTable, commit: Commit, wanted: Ints | None) -> bool:
        """Whether a micro-batch may have results of some queries, decided without opening its files."""
        if wanted is None or commit.fired is None:
            return bool(commit.matches)
        asked = self._asked.get(key := wanted.tobytes())
        if asked is None:
            if len(self._asked) == ASKED:
                self._asked.clear()
            asked = self._asked[key] = Wanted(np.sort(wanted), self.home.plan, table.sets)
        return asked.may_be_in(commit.fired)

    @cached_property
    def _asked(self) -> dict[bytes, Wanted]:
        return {}

    def expansion(self, table: ResultsTable, commit: Commit) -> Expansion:
        """Expands rows to the queries that they are results of."""
        waiting = None if commit.absences else self.waiting(commit.version)
        return replace(self.findings(table, commit), waiting=waiting or None)

    def findings(self, table: ResultsTable, commit: Commit) -> Expansion:
        """Expands rows to all queries that they are found by, including those with waiting documents."""
        dead = self.dead(commit.version)
        if commit.hidden:
            dead = np.concatenate([dead, np.array(commit.hidden, np.int64)])
        return Expansion(self.home.plan, table.sets, dead)


def evenly(entries: int) -> int:
    """The number of entries that are expanded together so that all cores have about the same work."""
    rounds = -(-entries // (CORES * ENTRIES_AT_ONCE))
    return max(-(-entries // max(rounds * CORES, 1)), FEW)


def _is_plain(commit: Commit) -> bool:
    """Whether a micro-batch is read like its neighbours: nothing was omitted from its results."""
    return not commit.cut and commit.completes < 0


def _in_threads(batches: Iterable[ResultBatch]) -> Iterator[pa.RecordBatch]:
    """The columns of some batches, in order, constructed in several threads."""
    with ThreadPoolExecutor(THREADS, "fishweir reading") as pool:
        waiting: deque[Future[pa.RecordBatch]] = deque()
        for batch in batches:
            waiting.append(pool.submit(to_record_batch, batch))
            if len(waiting) > THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class InTasks(Protocol):
    """Results that are read in Spark tasks, as of the creation of the object."""

    def to_arrow(self) -> pa.Table | None:
        """The results; None if the driver reads them faster by itself."""

    def to_spark(self) -> Any: ...


class Results:
    """The results of one query or of all, in the order of the micro-batches; read when iterated.

    `in_tasks` returns those that Spark reads: with the running session, if there is one, or with a new one.
    """

    def __init__(self, source: Callable[[], Iterable[ResultBatch]], in_tasks: Callable[[bool], InTasks | None]) -> None:
        self._source, self._in_tasks = source, in_tasks

    def __iter__(self) -> Iterator[Result]:
        for batch in self._source():
            for _, result in batch.results():
                yield result

    def to_arrow(self) -> pa.Table:
        """The results as a table, with a column `left_out` if patterns were omitted from some results. If Spark is
        running, large numbers of results are read in tasks.
        """
        in_tasks = self._in_tasks(False)
        table = None if in_tasks is None else in_tasks.to_arrow()
        if table is not None:
            return table
        found = [pa.Table.from_batches([batch]) for batch in _in_threads(self._source())]
        return pa.concat_tables(found, promote_options="default") if found else SCHEMA.empty_table()

    def to_spark(self) -> Any:
        """A Spark DataFrame with the columns of `to_arrow`: the current results, read in tasks."""
        in_tasks = self._in_tasks(True)
        assert in_tasks is not None
        return in_tasks.to_spark()
