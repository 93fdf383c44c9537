"""Backfill: evaluates queries whose start is in the past over the logs since then, in the background.

In: queries with a `start` that is earlier than the first micro-batch they take part in. Out: their results over the
documents that arrived since that start, committed between two micro-batches like any others. A low-priority thread
evaluates them (backfill_run.py), so nothing has to wait.

A query over one document is evaluated by such a run up to its first micro-batch, by the job from there on. The results
of a join depend on earlier documents, so its run continues in parallel with the job until no document from before its
first micro-batch can be joined any more, and then hands over between two micro-batches. Until then the job evaluates
the query as well, which builds up the required state, but its results are hidden: each result comes from exactly one of
the two. Commits record the progress of a run, whether it is over, and whose results are hidden, so a restart neither
repeats nor misses anything.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
import shutil
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fishweir.algebra.nodes import Shape, SideWindow, Source, sources_of
from fishweir.catalog.catalog import Catalog, Query
from fishweir.engine.backfill_run import BackfillEventTime, BackfillRun, JobSnapshot
from fishweir.engine.handover import can_be_handed_over
from fishweir.evaluate.plan.segments import build_groups, planned_segment, write_segment
from fishweir.pipeline.background_work import BackfillResult
from fishweir.pipeline.batch import MicroBatches
from fishweir.pipeline.commits import ResultsTable
from fishweir.pipeline.home import Home, open_log
from fishweir.pipeline.offsets import Offsets
from fishweir.pipeline.states import SUFFIX, StateFile
from fishweir.pipeline.summary import Summary

logger = logging.getLogger("fishweir.past")

SIDE = "past"
"""The folder of uncommitted results."""
NICE = 10
STATELESS = ("selections", "filters")
"""The kinds of groups whose results depend on one document."""
HANDOVER_ENTRIES = 1_000
"""The number of entries that are evaluated between two micro-batches when a run is about to hand over: otherwise it
would never catch up with a busy job.
"""


@dataclass
class Step:
    """A run in progress in its thread."""

    run: BackfillRun
    thread: threading.Thread
    summary: Summary | None = None
    failure: Exception | None = None


@dataclass
class Backfills:
    """Called between micro-batches. With `in_thread`, a run has its own thread; otherwise, the caller waits for it."""

    home: Home
    catalog: Catalog
    table: ResultsTable
    in_thread: bool = True
    runs: list[BackfillRun] = field(default_factory=list)
    _version: int = 0
    _batches: MicroBatches | None = None
    _step: Step | None = None

    @property
    def working(self) -> bool:
        if self._batches is None or self._step is not None or self.catalog.version() != self._version:
            return True
        offsets = self._batches.offsets
        return any(run.left(offsets) or run.must_load for run in list(self.runs))

    def hidden(self, batches: MicroBatches, version: int) -> list[int]:
        self._update_runs(batches, version)
        return sorted(number for run in self.runs if run.follows for number in run.queries)

    def __call__(self, batches: MicroBatches) -> bool:
        """Continues the evaluation, and commits what has been evaluated."""
        self._serve(batches)
        self._update_runs(batches, self.catalog.version())
        moved = self._finish(batches)
        if self._step is None:
            waiting = [run for run in self.runs if run.left(batches.offsets) or run.must_load]
            if waiting:
                self.runs.append(self.runs.pop(self.runs.index(waiting[0])))  # round robin
                moved |= self._start(waiting[0], batches)
        return moved

    def _serve(self, batches: MicroBatches) -> None:
        """Restarts runs if another process has run the job in the meantime."""
        if batches is self._batches:
            return
        if self._step is not None:
            self._step.thread.join()
            self._step = None
            self.runs.clear()
        if not self.runs or any(
            run.shown != self._committed_offsets(run.queries[0]) or not run.folder.exists() for run in self.runs
        ):
            self._version, self.runs = 0, []
            shutil.rmtree(self.home.results / SIDE, ignore_errors=True)
        self._batches = batches

    def _start(self, run: BackfillRun, batches: MicroBatches) -> bool:
        job = JobSnapshot.of(batches, self._version, run.must_load)
        if not self.in_thread or (run.follows and run.needs_no_past and run.left(job.offsets) <= HANDOVER_ENTRIES):
            self._commit(run, run.step(job), batches)
            return True

        def work() -> None:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
            try:
                step.summary = run.step(job)
            except Exception as failure:
                step.failure = failure
            batches.on_commit()

        step = self._step = Step(run, threading.Thread(target=work, name="fishweir_past", daemon=True))
        step.thread.start()
        return False

    def _finish(self, batches: MicroBatches) -> bool:
        """Commits the results of a thread that has finished. Returns whether it has."""
        step = self._step
        if step is None or step.thread.is_alive():
            return False
        self._step = None
        if step.failure is not None:
            raise step.failure
        assert step.summary is not None, "a thread that has ended has found something or failed"
        if step.run in self.runs:
            self._commit(step.run, step.summary, batches)
        return True

    def _commit(self, run: BackfillRun, summary: Summary, batches: MicroBatches) -> None:
        is_over = run.is_over(batches.offsets)
        if summary.files or is_over or (run.reports and not run.repeats):
            states = self._move_state(run, batches.last.batch + 1) if is_over else []
            found = BackfillResult(run.queries, run.version, summary, dict(run.at), run.watermarks, is_over, states)
            batches.commit_backfill(run.rows, found)
            run.shown = dict(run.at)
        if is_over:
            self.runs.remove(run)
            shutil.rmtree(run.folder, ignore_errors=True)

    def _move_state(self, run: BackfillRun, batch: int) -> list[StateFile]:
        """Moves the state that the job gets to the job's folder."""
        moved: list[StateFile] = []
        self.home.state.mkdir(exist_ok=True)
        for place, file in enumerate(run.loaded or ()):
            moved.append(replace(file, name=f"past-{batch:09d}-{place:06d}{SUFFIX}"))
            (run.folder / "loaded" / file.name).rename(self.home.state / moved[-1].name)
        return moved

    # Which queries

    def _update_runs(self, batches: MicroBatches, version: int) -> None:
        """Updates the runs, since queries may have been added or dropped."""
        if version <= self._version:
            return
        starting = self.catalog.starting(self._version, version)
        self._version = version
        queries = self.catalog.queries_by_number([number for run in self.runs for number in run.queries])
        self.runs = [run for run in self.runs if any(queries[number].dropped is None for number in run.queries)]
        if starting:
            over = {number for commit in self.table.commits() if commit.is_over for number in commit.past}
            self._add([one for one in starting if one[0] not in over], batches, version)

    def _add(self, starting: Sequence[tuple[int, int, float]], batches: MicroBatches, version: int) -> None:
        kinds: dict[int, set[str]] = {}
        for row in self.catalog.planned_queries([number for number, _, _ in starting]):
            kinds.setdefault(row[0], set()).add(row[1].kind)
        found: dict[Any, list[int]] = {}
        shown: dict[int, Offsets] = {}
        for commit in self.table.commits():
            shown |= dict.fromkeys(commit.past, commit.upto)
        queries = self.catalog.queries_by_number([number for number, _, _ in starting])
        for number, added, start in starting:
            query = queries[number]
            begin, live = self._between(query.shape.sources, start, self._live_from(added, batches))
            if begin != live:
                follows = bool(kinds.get(number, set()) - set(STATELESS))
                patience = _patience(query) if follows else 0.0
                streams = [stream for _, stream in self.catalog.streams().values()]
                endless = patience == math.inf and can_be_handed_over(query, streams)
                reports = isinstance(query.shape, Shape) and query.shape.unless is not None
                offsets = (begin, live, shown.get(number, {}))  # before a restart, only some may have been evaluated
                key = tuple((*one.items(),) for one in offsets), follows, reports, patience, endless
                found.setdefault(key, []).append(number)
        for (known, follows, reports, _, endless), numbers in found.items():
            first, last, seen = map(dict, known)
            self.runs.append(self._run(numbers, version, first, last, seen, follows, reports))
            self.runs[-1].is_endless = endless

    def _live_from(self, added: int, batches: MicroBatches) -> Mapping[str, int]:
        """The offsets of the streams before the first micro-batch of a query."""
        before: dict[str, int] = {}
        for commit in self.table.commits():
            if commit.version >= added and not commit.past and not commit.absences:
                return before
            before |= commit.offsets
        return dict(batches.offsets)

    def _between(self, read: Iterable[Source], start: float, live: Mapping[str, int]) -> tuple[Offsets, Offsets]:
        """For the streams that queries read, the last entries before their start and before their first micro-batch."""
        begin, upto, sources = Offsets(), Offsets(), set(read)
        for id, stream in self.catalog.streams().values():
            if sources.intersection(sources_of(stream)):
                upto[str(id)] = live.get(str(id), 0)
                begin[str(id)] = min(_before(open_log(self.home.streams, id), start), upto[str(id)])
        return begin, upto

    def _committed_offsets(self, query: int) -> Offsets:
        """The offsets up to which the results of a query are in the table."""
        for commit in reversed(self.table.commits()):
            if query in commit.past:
                return dict(commit.upto)
        return {}

    def _run(
        self,
        queries: Sequence[int],
        version: int,
        begin: Offsets,
        live: Offsets,
        shown: Offsets,
        follows: bool,
        reports: bool,
    ) -> BackfillRun:
        id = f"{SIDE}-{secrets.token_hex(4)}"
        write_segment(self.home.plan, planned_segment(id, build_groups(self.catalog.planned_queries(queries), {}), {}))
        folder = self.home.results / SIDE / id
        assert self._batches is not None, "it is called for micro-batches"
        job = self._batches.event_time
        time = BackfillEventTime(self.home, self.table, job.began, job.idle_after)
        logger.info("%d queries start in the past: evaluating documents that have arrived since then", len(queries))
        return BackfillRun(
            self.home, self.table.sets, id, folder, tuple(queries), version, begin, live, shown, follows, reports, time
        )


def _patience(query: Query) -> float:
    """The order of magnitude of a query's windows: a query that waits for years must not prolong the run of others."""
    shape = query.shape
    if isinstance(shape, Shape):
        windows: Iterable[SideWindow] = (shape.unless or shape).windows
    else:
        windows = [join.window for join in getattr(shape, "joins", ())]
    slots = [window.end for window in windows if window.end is not None and not window.rows]
    seconds = [float(query.constants[slot.index]) for slot in slots]
    return math.ceil(math.log10(max([1.0, *seconds]))) if math.inf not in seconds else math.inf


def _before(log: Any, start: float) -> int:
    """The number of the last entry that arrived before a time."""
    last = 0
    for arrival, upto in log.arrivals(0):
        if arrival >= start:
            break
        last = upto
    return last
