"""`NOT FOLLOWED BY`: documents whose window ended without a match become results.

In: the rows of micro-batches. Such a query finds two things in them: documents of its first block, which wait for the
end of their window (waiting.py), and matches, pairs of such a document with one that follows it. Readers skip both.
Out: commits between micro-batches, with the documents that can no longer have a match because the streams of the second
block have passed the end of their window. Only these commits record the progress. After a restart, rows are read again
from the first micro-batch on whose documents may be waiting, without the documents that are in such commits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fishweir.algebra.nodes import Shape, Source
from fishweir.catalog.catalog import Catalog
from fishweir.engine.waiting import (
    NO_MATCHES,
    MatchedRun,
    Times,
    WaitingDocuments,
    WaitingRun,
    matched_run,
    waiting_run,
)
from fishweir.evaluate.arrays import Ints, distinct, expand
from fishweir.evaluate.group import origin_of
from fishweir.evaluate.results import ResultRows, result_batch, to_lists
from fishweir.pipeline.batch import MicroBatches
from fishweir.pipeline.column_cache import ColumnCache, Columns
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.fired_index import Wanted
from fishweir.pipeline.home import Home, read_json, write_json
from fishweir.pipeline.results import ResultReader
from fishweir.pipeline.row_lists import first_of, flat_of, lengths_of, since_of
from fishweir.pipeline.summary import Summary
from fishweir.pipeline.writer import ResultWriter

SAVE_EVERY = 64
"""The number of micro-batches after which the position of a restart is saved again."""
REMEMBERED = 500_000


@dataclass(frozen=True)
class Windows(Columns):
    """The window of each query, its shape, and the change of the catalog that added it."""

    numbers: Ints
    shapes: Ints
    seconds: Times
    added: Ints


@dataclass
class Absences:
    """Called between micro-batches: commits the documents that can no longer have a match."""

    home: Home
    catalog: Catalog
    table: ResultsTable
    reader: ResultReader
    _batches: MicroBatches | None = None
    _position: int = -1
    """The last micro-batch that was read, and after which nothing is due any more."""
    _saved: int = -1
    _documents: dict[int, WaitingDocuments] = field(default_factory=dict)
    """By shape."""
    _backfilled: set[int] = field(default_factory=set)
    """Queries whose results come from a backfill for the time being."""
    _wanted: Wanted | None = None

    @property
    def working(self) -> bool:
        return self._batches is None or self.table.newest().batch > self._position

    def hidden(self, batches: MicroBatches, version: int) -> list[int]:
        return []

    def __call__(self, batches: MicroBatches) -> bool:
        if batches is not self._batches:
            self._begin(batches)
        upto = self._position
        for commit in self.table.known(upto):
            self._read(commit)
            upto = commit.batch
        due = self._due(batches, upto) if self._documents else []
        if due and (due := self._alive(due, version := self.catalog.version())):
            batches.commit_absences(version, partial(self._write, due))
            upto = batches.last.batch
        self._position = upto  # not before: until then, the job must not count as idle
        self._save()
        return bool(due)

    def _begin(self, batches: MicroBatches) -> None:
        """Starts over: another process may have run the job in the meantime."""
        self._documents, self._backfilled = {}, set()
        saved = read_json(self._place, {"after": -1}, rebuilt="reading the results again")["after"]
        newest = self.table.newest()
        self._position = self._saved = min(saved, newest.batch)
        if not len(self.reader.waiting(newest.version)):
            self._position = newest.batch
        for commit in self.table.commits(upto=self._position):
            self._follow_backfill(commit)
        self._batches = batches

    @property
    def _place(self) -> Path:
        return self.home.delivery / "absences.json"

    def _save(self) -> None:
        if self._wanted is None:  # nothing has ever waited
            return
        firsts = [first for one in self._documents.values() if (first := one.first) is not None]
        after = min(firsts) - 1 if firsts else self._position
        if after >= self._saved + SAVE_EVERY:
            write_json(self._place, {"after": after})
            self._saved = after

    # What is found

    def _follow_backfill(self, commit: Commit) -> None:
        self._backfilled |= {*commit.hidden, *commit.past}
        if commit.is_over:
            self._backfilled -= set(commit.past)

    def _read(self, commit: Commit) -> None:
        """Adds the findings of a micro-batch."""
        self._follow_backfill(commit)
        queries = self.reader.waiting(commit.version)
        if not len(queries):
            return
        if self._wanted is None or self._wanted.numbers is not queries.numbers:
            self._wanted = Wanted(queries.numbers, self.home.plan, self.table.sets)
        if commit.completes >= 0 or not commit.matches or not self._wanted.may_be_in(commit.fired):
            return
        rows = self.table.rows(commit)
        at, numbers = self.reader.findings(self.table, commit).queries(rows, queries)
        if not len(at):
            return
        windows, of = self._windows_of(numbers)
        in_time = windows.added[of] <= since_of(rows)[at]  # other queries may retain documents from before
        at, numbers, of = at[in_time], numbers[in_time], of[in_time]
        stream, document, side, times = (rows.column(n).to_numpy() for n in ("stream", "document", "side", "timestamp"))
        own, seconds = origin_of(stream.astype(np.int64), document)[at], windows.seconds[of]
        alone = lengths_of(rows, "others")[at] == 0
        if commit.absences:
            waits, matches, until = np.zeros(len(at), np.bool_), (np.arange(len(at)), own), times[at]
        else:
            waits, matches, until = alone, _matched(rows, at, own, ~alone, side[at] == 0), times[at] + seconds
        pairs, documents = matches
        for shape in np.unique(windows.shapes[of]).tolist():
            is_own = windows.shapes[of] == shape
            those = is_own[pairs]
            matched = matched_run(numbers[pairs[those]], documents[those], until[pairs[those]])
            chosen = np.flatnonzero(is_own & waits)
            batches = np.full(len(chosen), commit.batch)
            ends = (times[at] + seconds)[chosen]
            self._add(shape, waiting_run(ends, numbers[chosen], own[chosen], batches, at[chosen]), matched)

    def _add(self, shape: int, found: WaitingRun, matched: MatchedRun) -> None:
        documents = self._documents.setdefault(shape, WaitingDocuments())
        backfilled = np.isin(found.queries, list(self._backfilled))
        documents.add(found.take(~backfilled), matched)
        for number in np.unique(found.queries[backfilled]).tolist():
            documents.add(found.take(found.queries == number), NO_MATCHES, number)

    def _windows_of(self, numbers: Ints) -> tuple[Windows, Ints]:
        once, of = distinct(numbers)
        return self._windows.of(once), of

    @cached_property
    def _windows(self) -> ColumnCache[Windows]:
        return ColumnCache(lambda: self._look_up, REMEMBERED)

    def _look_up(self, numbers: Ints) -> Windows:
        listed, _, shapes, added, _ = self.catalog.query_columns(numbers.tolist())
        constants = self.catalog.constants(listed)
        slots = {shape: self._window_slot(shape) for shape in set(shapes)}
        seconds = [float(constants[number][slots[shape]]) for number, shape in zip(listed, shapes, strict=True)]
        found, own, since = (np.array(some, np.int64) for some in (listed, shapes, added))
        return Windows(found, own, np.array(seconds), since).ordered()

    def _matches_of(self, shape: int) -> Shape:
        found = self.catalog.shape(shape)
        assert isinstance(found, Shape), "only a tree pattern waits"
        assert found.unless is not None
        return found.unless

    def _window_slot(self, shape: int) -> int:
        end = self._matches_of(shape).windows[0].end
        assert end is not None
        return end.index

    # What is due

    def _due(self, batches: MicroBatches, upto: int) -> list[WaitingRun]:
        """The documents of each shape whose window ended without a match, by what was read up to a micro-batch."""
        reached = cache(partial(self._reached, batches, upto))
        found: list[WaitingRun] = []
        for shape, documents in list(self._documents.items()):
            sources = tuple(block.source for block in self._matches_of(shape).blocks[1:])
            due = documents.due(partial(reached, sources))
            found += [due] if due else []
            if not documents.waiting and not documents.matched:
                del self._documents[shape]
        return found

    def _alive(self, due: list[WaitingRun], version: int) -> list[WaitingRun]:
        """The documents of queries that are not dropped."""
        dead = self.reader.dead(version)
        some = [run.take(~np.isin(run.queries, dead)) for run in due] if len(dead) else due
        return [run for run in some if len(run)]

    def _reached(self, batches: MicroBatches, upto: int, sources: tuple[Source, ...], backfilled: int) -> float:
        """The time before which no more documents of some sources are expected: by the job, or by a backfill."""
        waits = [backfilled] if backfilled in self._backfilled else []
        settled = self.table.settled(waits, upto)
        return min((batches.reached(source, settled) for source in sources), default=-math.inf)

    def _write(self, due: list[WaitingRun], folder: Path) -> Summary:
        """Writes rows: for each document and end of a window, one with all queries."""
        writer = ResultWriter(folder, self.table.sets, "match-00000")
        for run in due:
            for batch in np.unique(run.batches).tolist():
                writer.write(self._result_rows(run.take(run.batches == batch), self.table.of_batch(batch)))
        return Summary(matches=writer.results, files=writer.close(), fired=writer.fired)

    def _result_rows(self, run: WaitingRun, commit: Commit) -> ResultRows:
        order = np.lexsort((run.queries, run.rows, run.ends))
        ends, rows = run.ends[order], run.rows[order]
        starts = np.flatnonzero(np.append(True, (np.diff(ends) != 0) | (np.diff(rows) != 0)))
        given = self.table.rows(commit).take(pa.array(rows[starts])).combine_chunks()
        kept = {name: given.column(name).combine_chunks() for name in ("stream", "document", "since", "nodes")}
        kept["since"] = kept["since"].fill_null(commit.version)  # those who read them may be registered later
        members = to_lists(np.append(starts, len(rows)), run.queries[order])
        batch = result_batch(len(starts), **kept, side=0, each=False, timestamp=ends[starts], members=members)
        return ResultRows(batch, len(run))


def _matched(rows: pa.Table, at: Ints, own: Ints, pairs: Any, is_first: Any) -> tuple[Ints, Ints]:
    """The documents of the first side in pairs of a row with a match and a query: the row's own, or all others."""
    mine, theirs = np.flatnonzero(pairs & is_first), np.flatnonzero(pairs & ~is_first)
    of_row, others = flat_of(rows, "others")
    bounds = np.searchsorted(of_row, np.arange(len(rows) + 1))
    of, places = expand(bounds[at[theirs]], bounds[at[theirs] + 1])
    streams = first_of(rows, "other_streams")[at[theirs]]
    documents = origin_of(streams[of], others[places])
    return np.concatenate([mine, theirs[of]]), np.concatenate([own[mine], documents])
