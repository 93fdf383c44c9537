"""Queries whose start lies in the past: evaluated over what the logs have since then, beside the job.

In: queries with a `start` that is earlier than the first micro-batch they take part in. Out: their results over the
documents that arrived between that start and that micro-batch, committed between two micro-batches like any others. A
thread of low priority evaluates them in a segment of their own, so nobody waits. Commits say which queries are done,
and which micro-batch was a query's first, so a restart repeats nothing and leaves nothing out.

Queries over one document have such results. A join begins with the documents that arrive after its registration.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fishweir.algebra.nodes import sources_of
from fishweir.catalog.catalog import Catalog
from fishweir.evaluate.plan.segments import build_groups, planned_segment, write_segment
from fishweir.pipeline.batch import MicroBatches
from fishweir.pipeline.commits import ResultsTable
from fishweir.pipeline.home import Home, open_log
from fishweir.pipeline.offsets import LogSlice
from fishweir.pipeline.summary import Summary
from fishweir.pipeline.worker import MatchTask

logger = logging.getLogger("fishweir.past")

SIDE = "past"
"""The folder of results that are not committed yet."""
NICE = 10
STATELESS = ("selections", "filters")
"""The kinds of groups whose results depend on one document."""


@dataclass(frozen=True)
class Run:
    """Queries with the same part of the logs to evaluate."""

    queries: tuple[int, ...]
    slices: tuple[LogSlice, ...]
    version: int


@dataclass
class PastRuns:
    """Called between micro-batches. With `beside` a run has a thread of its own, else the caller waits for it."""

    home: Home
    catalog: Catalog
    table: ResultsTable
    beside: bool = True
    waiting: list[Run] = field(default_factory=list)
    _seen: int = 0
    _thread: threading.Thread | None = None
    _done: tuple[Run, Summary] | None = None
    _failure: Exception | None = None

    @property
    def working(self) -> bool:
        looked = self.catalog.version() == self._seen
        return not looked or bool(self.waiting) or self._thread is not None or self._done is not None

    def __call__(self, batches: MicroBatches) -> bool:
        """Starts what is to be evaluated; commits what has been."""
        self._look(batches)
        if self._thread is None and self._done is None and self.waiting:
            self._start(self.waiting.pop(0), batches.on_commit)
        if self._thread is not None and not self._thread.is_alive():
            self._thread = None
        if self._failure is not None:
            raise self._failure
        if self._done is None or self._thread is not None:
            return False
        (run, summary), self._done = self._done, None
        batches.commit_past(self.home.results / SIDE, summary, run.version, run.queries)
        return True

    def _look(self, batches: MicroBatches) -> None:
        version = self.catalog.version()
        if version == self._seen:
            return
        starting = self.catalog.starting(self._seen, version)
        self._seen = version
        if not starting:
            return
        done = {number for commit in self.table.commits() for number in commit.past}
        runs: dict[tuple[LogSlice, ...], list[int]] = {}
        rows: dict[int, list[Any]] = {}
        for row in self.catalog.planned_queries([number for number, _, _ in starting if number not in done]):
            rows.setdefault(row[0], []).append(row[1])
        for number, added, start in starting:
            templates = rows.get(number, [])
            if templates and all(one.kind in STATELESS for one in templates):
                slices = self._slices(number, start, self._live_from(added, batches))
                runs.setdefault(slices, []).append(number)
        self.waiting += [Run(tuple(some), slices, version) for slices, some in runs.items() if slices]

    def _live_from(self, added: int, batches: MicroBatches) -> Mapping[str, int]:
        """How far the streams had been evaluated when a query took part for the first time."""
        before: dict[str, int] = {}
        for commit in self.table.commits():
            if commit.version >= added and not commit.past:
                return before
            before |= commit.offsets
        return dict(batches.offsets)

    def _slices(self, number: int, start: float, live: Mapping[str, int]) -> tuple[LogSlice, ...]:
        """The entries of the streams that a query reads which arrived after its start and before it was live."""
        read = set(self.catalog.queries_by_number([number])[number].shape.sources)
        found = []
        for id, stream in self.catalog.streams().values():
            upto = live.get(str(id), 0)
            if upto and read.intersection(sources_of(stream)):
                after = _before(open_log(self.home.streams, id), start)
                if after < upto:
                    found.append(LogSlice(id, after, upto))
        return tuple(found)

    def _start(self, run: Run, wake: Callable[[], None]) -> None:
        if not self.beside:
            self._done = run, self._evaluate(run)
            return

        def work() -> None:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
            try:
                self._done = run, self._evaluate(run)
            except Exception as failure:
                self._failure = failure
            wake()

        self._thread = threading.Thread(target=work, name="fishweir_past", daemon=True)
        self._thread.start()

    def _evaluate(self, run: Run) -> Summary:
        folder = self.home.results / SIDE
        shutil.rmtree(folder, ignore_errors=True)
        segment = self._segment(run.queries)
        task = MatchTask(
            self.home.streams,
            self.home.plan,
            (segment,),
            folder,
            self.table.sets,
            self.home.state,
            run.version,
            0,
            {},
        )
        logger.info("%d queries start in the past: evaluating what arrived since then", len(run.queries))
        return task(0, run.slices)

    def _segment(self, queries: Sequence[int]) -> str:
        groups = build_groups(self.catalog.planned_queries(queries), {})
        id = f"{SIDE}-{secrets.token_hex(4)}"
        write_segment(self.home.plan, planned_segment(id, groups, {}))
        return id


def _before(log: Any, start: float) -> int:
    """The number of the last entry that arrived before a time."""
    last = 0
    for arrival, upto in log.arrivals(0):
        if arrival >= start:
            break
        last = upto
    return last
