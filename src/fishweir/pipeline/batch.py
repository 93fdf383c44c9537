"""One micro-batch on any executor: plan, match, join, commit.

In: the logs, starting after the last commit. Out: a commit. The Spark job passes an executor that runs tasks on Spark;
tests pass an inline executor. The query set is data that tasks map from files, so queries can be added and dropped
between two micro-batches without a restart.
"""

from __future__ import annotations

import logging
import math
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from fishweir.algebra.nodes import Source, StreamDefinition
from fishweir.evaluate.arrays import PREFIX
from fishweir.evaluate.plan.plan import Plan, cached_plan
from fishweir.evaluate.statistics import PathStatistics, Statistics, statistics_from_json
from fishweir.evaluate.watermarks import Watermarks
from fishweir.evaluate.witnesses.counters import StreamCounters
from fishweir.pipeline.background_work import BackfillResult, BackgroundWork, NoBackgroundWork
from fishweir.pipeline.commits import Commit, ResultsTable, check_written, shared_folder
from fishweir.pipeline.event_time import EventTime, Published
from fishweir.pipeline.home import Home, open_log, read_json, write_json
from fishweir.pipeline.lateness import LEVELS
from fishweir.pipeline.offsets import LogSlice, check_logs, heads, next_offsets, slices_between, spread, waiting_in
from fishweir.pipeline.parts import Parts
from fishweir.pipeline.probe import ProbeTask
from fishweir.pipeline.retained import Retained, remove_others
from fishweir.pipeline.settings import DOCUMENTS_PER_BATCH, STATE_LIMIT
from fishweir.pipeline.shed import Shedder
from fishweir.pipeline.stages import Counting, Executor, InlineExecutor, run_stages
from fishweir.pipeline.states import StateFile, sealed_names
from fishweir.pipeline.summary import Summary
from fishweir.pipeline.walk_counters import add_walk_counters, save_walk_counters
from fishweir.pipeline.worker import MatchTask
from fishweir.records import dataclass
from fishweir.sealed import verify
from fishweir.shedding.decision import StreamShed

logger = logging.getLogger("fishweir.time")

WORTH_REWRITING = 1.25
"""A state above its limit is rewritten if its size exceeds the needed size by this factor."""

SAVE_EVERY = 1.0
"""Seconds between saves of the counters of a busy job. An idle job saves them immediately."""


@dataclass(frozen=True)
class PlanInForce:
    """The plan that a micro-batch runs with."""

    version: int
    segments: tuple[str, ...]
    queries: int
    dead: frozenset[int] = frozenset()
    """Dropped queries. Some of them may still be in segments."""


class Job(Protocol):
    """Runs micro-batches one after another."""

    def start(self) -> None: ...

    def step(self) -> bool:
        """Called repeatedly while the job runs. Raises the error that stopped the job; returns whether this call
        evaluated anything."""

    def rehearse(self, segment: str) -> None:
        """Called in another thread with a new segment, before a micro-batch uses it."""

    def stop(self) -> None: ...


class MicroBatches:
    """The shared context of micro-batches: the plan in force, statistics, and the offset of each stream.

    `newest` returns the plan for the current statistics, `published` the streams of published results of a version of
    the catalog, with their progress.
    """

    def __init__(
        self,
        home: Home,
        table: ResultsTable,
        newest: Callable[[Statistics], PlanInForce],
        published: Callable[[int], Mapping[int, Published]],
        documents: int = DOCUMENTS_PER_BATCH,
        clock: Callable[[], float] = time.time,
        event_time: EventTime | None = None,
        state_limit: int = STATE_LIMIT,
    ) -> None:
        self.home, self.table, self.newest, self.published, self.documents = home, table, newest, published, documents
        self.clock, self.state_limit = clock, state_limit
        self.event_time = event_time or EventTime(home, table, clock())
        self.troubled: Mapping[int, str] = {}
        """Streams whose source is known to fail, with the reason."""
        self.statistics = load_statistics(home)
        self.walked: dict[str, StreamCounters] = {}
        self.offsets, self.last = table.offsets(), table.newest()
        self.states = [StateFile(**file) for file in self.last.states]
        check_logs(home, self.offsets)
        self.queries, self.parts, self.counting = 0, Parts(), Counting()
        self.shedder: Shedder | None = None
        self.on_commit: Callable[[], None] = lambda: None
        self.between: BackgroundWork = NoBackgroundWork()
        self.must_settle = False
        """Whether the last step found entries that are too new to be evaluated."""
        self._warned = False
        self._changed: set[str] = set()
        """Streams with unsaved counters."""
        self._saved = time.monotonic()

    def step(self, executor: Executor, arrived: float = math.inf) -> bool:
        """Evaluates and commits one micro-batch of the entries that have `arrived` by a time. Returns whether there
        were any, or something else was committed."""
        self.must_settle = False
        if self.between(self):
            return True
        waiting = waiting_in(heads(self.home), self.offsets)
        if not waiting:
            return False
        plan = self.newest(self.statistics)
        stages = cached_plan(self.home.plan, plan.segments)
        by_arrival = any(stage.is_by_arrival for stage in stages.stages.values())
        most = self.shedder.documents(self.documents) if self.shedder else self.documents
        end = next_offsets(self.home, self.offsets, waiting, most, arrived if by_arrival else None)
        slices = slices_between(self.offsets, end)
        if not slices:
            self.must_settle = True
            return False
        entries = {int(id): head - self.offsets.get(id, 0) for id, head in waiting.items()}
        self._run(self.last.batch + 1, slices, entries, plan, stages, executor)
        return True

    def _run(
        self,
        batch: int,
        slices: Sequence[LogSlice],
        waiting: Mapping[int, int],
        plan: PlanInForce,
        stages: Plan,
        executor: Executor,
    ) -> None:
        at, began = self.clock(), time.perf_counter()
        self.queries = plan.queries
        published = self.published(plan.version)
        watched = self.event_time.watched(stages, published)
        shared, hidden = shared_folder(batch), self.between.hidden(self, plan.version)
        folder = self.table.folder / shared
        shedding = self.shedder.decide(batch, plan.version, waiting) if self.shedder else {}
        entries = sum(one.upto - one.after for one in slices)
        parts = spread(slices, self.parts.count(entries, executor.parallelism))
        match, probe = self._tasks(batch, plan, folder, watched, shedding)
        sent = time.perf_counter()
        summary = run_stages(executor, match, probe, parts, partial(self._check_written, folder=folder))
        self.parts.took(entries, summary.seconds, time.perf_counter() - sent, len(parts))
        self.event_time.add(summary.lateness)
        states, level, watermarks = self._retain(summary, plan, stages, batch, watched, published)
        self._count(summary)
        commit = Commit(
            batch=batch,
            version=plan.version,
            files=summary.files,
            folder=shared,
            fired=summary.fired,
            documents=summary.documents,
            matches=summary.matches,
            aside=summary.aside,
            offsets=summary.offsets,
            at=at,
            seconds=time.perf_counter() - began,
            states=[file.to_json() for file in states],
            watermarks=_finite(watermarks.seen()),
            dropped_by=dict(self.event_time.dropped_by),
            missed={stream: seen.missed for stream, seen in summary.lateness.items() if seen.missed},
            level=level,
            shed=summary.shed,
            cut=summary.cut,
            elements=summary.elements,
            shedding={str(stream): one.to_json() for stream, one in shedding.items()},
            hidden=hidden,
        )
        self.table.commit(commit)
        before, self.last, self.states = self.states, commit, states
        self.offsets |= summary.offsets
        if self.shedder:
            self.shedder.took(summary.documents, sum(summary.shed.values()), commit.seconds, summary.matches)
        remove_others(self.home.state, [*states, *before])
        self.on_commit()

    def _tasks(
        self,
        batch: int,
        plan: PlanInForce,
        folder: Path,
        watched: Iterable[int],
        shedding: Mapping[int, StreamShed],
    ) -> tuple[MatchTask, ProbeTask]:
        """The tasks of both stages, which write results to the folder."""
        home, sets = self.home, self.table.sets
        marks, counts = self.event_time.marks(watched), self.counting()
        match = MatchTask(
            home.streams, home.plan, plan.segments, folder, sets, home.state, plan.version, batch, marks, shedding,
            counts=counts,
        )  # fmt: skip
        old = sealed_names(self.states)
        return match, ProbeTask(home.plan, plan.segments, home.state, (), old, folder, sets, parts=1, batch=batch)

    def commit_backfill(self, folder: Path, past: BackfillResult) -> None:
        """Commits the results of a backfill; `folder` contains its files."""
        batch, summary = self.last.batch + 1, past.summary
        target = self.table.own_folder(batch)
        shutil.rmtree(target, ignore_errors=True)
        if summary.files:
            folder.rename(target)
        self._check_written(summary, target)
        others = {id: time for id, time in self.last.watermarks.items() if int(id) not in past.watermarks}
        marks = {"watermarks": others | _finite(past.watermarks), "upto": past.upto}
        which = {"past": list(past.queries), "is_over": past.is_over, "version": max(self.last.version, past.version)}
        found: dict[str, Any] = {"files": summary.files, "fired": summary.fired}
        if past.states:
            self.states = [*self.states, *past.states]
            found |= {"states": [file.to_json() for file in self.states], "handed_over": True}
        self.last = self._without_documents(summary.matches, **found, **which, **marks)
        self.table.commit(self.last)
        self.on_commit()

    def commit_absences(self, version: int, written: Callable[[Path], Summary]) -> None:
        """Commits documents whose window ended without a match, as of a version of the catalog: streams and subscribers
        added since the last micro-batch get them, too. `written` writes the rows to a folder."""
        folder = self.table.own_folder(self.last.batch + 1)
        shutil.rmtree(folder, ignore_errors=True)
        summary = written(folder)
        found: dict[str, Any] = {"files": summary.files, "fired": summary.fired, "is_over": True}
        version = max(self.last.version, version)
        self.last = self._without_documents(summary.matches, absences=True, version=version, **found)
        self.table.commit(self.last)
        self.on_commit()

    def commit_completing(self, source: Commit) -> None:
        """Commits the complete results of a micro-batch that had omitted patterns."""
        self.last = self._without_documents(
            source.matches, completes=source.batch, fired=source.fired, hidden=source.hidden
        )
        self.table.commit(self.last)
        self.on_commit()

    def _without_documents(self, matches: int, **changed: Any) -> Commit:
        """A commit after the last one that evaluates no documents."""
        none: dict[str, Any] = {
            "files": {},
            "folder": "",
            "offsets": {},
            "missed": {},
            "shed": {},
            "cut": {},
            "elements": {},
            "shedding": {},
        }
        counts: dict[str, Any] = {
            "documents": 0,
            "aside": 0,
            "seconds": 0.0,
            "past": [],
            "completes": -1,
            "absences": False,
            "upto": {},
            "handed_over": False,
            "hidden": [],
        }
        now = {"batch": self.last.batch + 1, "at": self.clock(), "matches": matches}
        return replace(self.last, **(none | counts | now | changed))

    def reached(self, source: Source, commit: Commit) -> float:
        """The time before which no more documents of a source are expected after a commit: the source's watermark in
        the commit, or the current time if nothing waits and the stream is idle or prompt.
        """
        now, found = self.clock(), math.inf
        done = commit.upto if commit.past else self.offsets | commit.offsets
        for id in self.home.logs.of_source(source):
            log = open_log(self.home.streams, id)
            waits = log.head() > done.get(str(id), 0) or id in self.troubled
            own = -math.inf if waits or log.stream.virtual else self.event_time.expected(id, log.stream, now)
            found = min(found, max(own, commit.watermarks.get(str(id), -math.inf)))
        return found if math.isfinite(found) else -math.inf

    def _check_written(self, summary: Summary, folder: Path) -> None:
        """Raises an error if the driver does not see the files that the tasks wrote."""
        check_written(folder, summary.files, summary.hosts)
        states = {name: file.seal for name, file in summary.states.items()}
        check_written(self.home.state, states, summary.hosts, partial(verify, start=PREFIX))

    def _retain(
        self,
        summary: Summary,
        plan: PlanInForce,
        stages: Plan,
        batch: int,
        watched: Mapping[int, StreamDefinition],
        published: Mapping[int, Published],
    ) -> tuple[list[StateFile], int, Watermarks]:
        """The state retained after a micro-batch for joins with later documents, and the watermarks that decide it. If
        the state would exceed its limit, the allowed lateness is reduced, unless it was declared.
        """
        before = self.last
        offsets, now = {**self.offsets, **summary.offsets}, self.clock()
        files = [*self.states, *summary.state_files]
        states = Retained(self.home.state, stages.stages, files, plan.dead, self.state_limit)
        level = max(0, before.level - 1) if states.bytes < self.state_limit / 2 else before.level
        while True:
            watermarks = self.event_time.watermarks(watched, offsets, published, before, self.troubled, now, level)
            needed = states.needed(watermarks)
            size = states.size(needed)
            if size <= self.state_limit or level == len(LEVELS) - 1:
                break
            level += 1
        if not files:
            return [], level, watermarks
        if size > self.state_limit and not self._warned:
            self._warned = True
            most = f"{self.state_limit / 2**20:,.0f} MiB"
            logger.warning("the join state exceeds the limit of %s: windows and declared lateness require it", most)
        for one in needed.values():
            self.event_time.drop_by(one.used)
        whole = states.bytes > max(self.state_limit, WORTH_REWRITING * size)
        return states.merged(batch, needed, whole), level, watermarks

    def _count(self, summary: Summary) -> None:
        for key, counted in summary.statistics.items():
            self.statistics[key] = self.statistics.get(key, PathStatistics()).merge(counted)
        add_walk_counters(self.home, self.walked, summary.walked)
        self._changed |= summary.walked.keys()
        if time.monotonic() > self._saved + SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Saves the counters and the observed lateness. They serve display and estimates, so a crash may lose the
        newest ones.
        """
        if self._changed:
            save_statistics(self.home, self.statistics)
            save_walk_counters(self.home, self.walked, self._changed)
            self._changed = set()
        self.event_time.save()
        self._saved = time.monotonic()


class InlineJob:
    """A job without Spark: each step evaluates one micro-batch if entries wait. There is no background
    thread to start or to stop, and segments are rewritten in the same thread."""

    def __init__(self, batches: MicroBatches, parallelism: int = 1) -> None:
        self.batches, self.executor = batches, InlineExecutor(parallelism)

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def rehearse(self, segment: str) -> None: ...

    def step(self) -> bool:
        moved = self.batches.step(self.executor)
        self.batches.save()
        return moved


def _finite(times: Mapping[int, float]) -> dict[str, float]:
    return {str(stream): time for stream, time in times.items() if math.isfinite(time)}


def load_statistics(home: Home) -> Statistics:
    raw: dict[str, dict[str, Any]] = read_json(home.statistics, {}, rebuilt="counting again")
    return {key: statistics_from_json(counted) for key, counted in raw.items()}


def save_statistics(home: Home, statistics: Statistics) -> None:
    write_json(home.statistics, {key: counted.to_json() for key, counted in statistics.items()})
