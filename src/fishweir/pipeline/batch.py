"""One micro-batch, whoever executes its tasks: plan, match, join, commit.

In: the number of the micro-batch and an executor that knows its slices of the logs. Out: a commit. The Spark job passes
Spark as the executor, tests pass one that runs the tasks in line. The query set is data that tasks map from files, so
a query comes or goes between two micro-batches and nothing restarts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from fishweir.evaluate.join.annotations.stage import AnnotationStage
from fishweir.evaluate.join.stage import JoinStage
from fishweir.evaluate.plan.source_plan import cached_annotations, cached_stage, sources_of
from fishweir.evaluate.statistics import PathStatistics, Statistics, statistics_from_json
from fishweir.evaluate.witnesses.counters import StreamCounters
from fishweir.pipeline.annotated import PRIMARY, WINDOW
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.home import Home, open_log, read_json, write_json
from fishweir.pipeline.joining import JoinTask
from fishweir.pipeline.offsets import LogSlice, next_offsets, slices_between, spread
from fishweir.pipeline.retained import RunFile, remove_others, retained
from fishweir.pipeline.summary import Summary
from fishweir.pipeline.walked import add_walked
from fishweir.pipeline.worker import MatchTask

DOCUMENTS_PER_BATCH = 20_000


class Executor(Protocol):
    """Runs the tasks of one micro-batch."""

    parallelism: int

    def match(self, task: Callable[[int, Iterable[LogSlice]], Summary]) -> Iterable[Summary]:
        """Calls the task once per partition of the micro-batch's slices."""

    def probe(self, task: Callable[[int], Summary]) -> Iterable[Summary]:
        """Calls the task once for each part from 0 to `parallelism`."""


@dataclass(frozen=True)
class PlanInForce:
    """What a micro-batch runs with."""

    version: int
    segments: tuple[str, ...]
    queries: int
    dead: frozenset[int] = frozenset()
    """Dropped queries, some of which are still in segments."""


class Job(Protocol):
    """Runs micro-batches, one after the other."""

    def start(self) -> None: ...

    def step(self) -> bool:
        """Called again and again while the job runs: raises what stopped it; whether it evaluated something here."""

    def stop(self) -> None: ...


class MicroBatches:
    """What micro-batches share: the plan in force, statistics, how far each stream has been evaluated.

    `newest` gives the plan for the statistics so far, `settled` the micro-batch up to which results that are published
    have become documents, if any do.
    """

    def __init__(
        self,
        home: Home,
        table: ResultsTable,
        newest: Callable[[Statistics], PlanInForce],
        settled: Callable[[], int | None],
        documents: int = DOCUMENTS_PER_BATCH,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.home, self.table, self.newest, self.settled, self.documents = home, table, newest, settled, documents
        self.clock = clock
        self.statistics = load_statistics(home)
        self.walked: dict[str, StreamCounters] = {}
        self.offsets, self.times = table.offsets(), table.newest_times()
        self.queries = 0

    def run(self, batch: int, executor: Executor) -> None:
        """Evaluates and commits a micro-batch, unless it is committed already."""
        if self.table.is_committed(batch):
            return
        at, began = self.clock(), time.perf_counter()
        plan = self.newest(self.statistics)
        self.queries = plan.queries
        folder = self.table.batch_folder(batch)
        task = MatchTask(self.home.streams, self.home.plan, plan.segments, folder, self.home.state, plan.version, batch)
        summary = Summary()
        for part in executor.match(task):
            summary.add(part)
        self.times |= {s: max(newest, self.times.get(s, newest)) for s, (_, newest) in summary.times.items()}
        runs = self._join(summary, plan, batch, folder, executor)
        self._count(summary)
        self.table.commit(
            Commit(
                batch=batch,
                version=plan.version,
                files=summary.files,
                documents=summary.documents,
                matches=summary.matches,
                aside=summary.aside,
                offsets=summary.offsets,
                at=at,
                seconds=time.perf_counter() - began,
                runs=[asdict(run) for run in runs],
                times=summary.times,
            )
        )
        remove_others(self.home.state, runs)
        self.offsets |= summary.offsets

    def _join(self, summary: Summary, plan: PlanInForce, batch: int, folder: Path, executor: Executor) -> list[RunFile]:
        """The second stage, where some query joins documents: pairs of this micro-batch's with those retained."""
        listed = [RunFile(**run) for run in self.table.newest_runs()]
        entered = [run for run in listed if run.name.endswith(WINDOW)]
        old = [run for run in listed if run not in entered]
        names = tuple(sorted(summary.runs))
        new, primaries, windows = (tuple(n for n in names if n.endswith(kind)) for kind in (".run", PRIMARY, WINDOW))
        if new or primaries:
            task = JoinTask(
                self.home.plan,
                plan.segments,
                self.home.state,
                new,
                tuple(run.name for run in old),
                folder,
                self.table.sets,
                executor.parallelism,
                primaries,
                (*(run.name for run in entered), *windows),
            )
            for part in executor.probe(task):
                summary.add(part)
        stage, notes = cached_stage(self.home.plan, plan.segments), cached_annotations(self.home.plan, plan.segments)
        clock = math.inf if stage.is_empty and notes.is_empty else self._clock(summary, stage, notes)
        kept = retained(self.home.state, stage, batch, old, new, plan.dead, clock)
        return kept + retained(self.home.state, notes, batch, entered, windows, clock=clock)

    def _clock(self, summary: Summary, stage: JoinStage, notes: AnnotationStage) -> float:
        """How far back documents are known to come yet: from where a stream stands that has more in its log, and from
        the oldest document of which something published has not become a document yet."""
        clock, settled = math.inf, self.settled()
        if settled is not None:
            times = [summary.times, *(commit.times for commit in self.table.commits(after=settled))]
            clock = min((oldest for some in times for oldest, _ in some.values()), default=math.inf)
        for id in self.home.stream_ids():
            log, key = open_log(self.home.streams, id), str(id)
            sources = sources_of(log.stream)
            if log.head() > max(self.offsets.get(key, 0), summary.offsets.get(key, 0)) and (
                stage.reads(sources) or notes.reads(sources)
            ):
                clock = min(clock, self.times.get(key, -math.inf))
        return clock

    def _count(self, summary: Summary) -> None:
        for key, counted in summary.statistics.items():
            self.statistics[key] = self.statistics.get(key, PathStatistics()).merge(counted)
        save_statistics(self.home, self.statistics)
        add_walked(self.home, self.walked, summary.walked)


class InlineExecutor:
    """Runs tasks where it is called, one after the other."""

    def __init__(self, partitions: list[list[LogSlice]], parallelism: int = 1) -> None:
        self.partitions, self.parallelism = partitions, parallelism

    def match(self, task: Callable[[int, Iterable[LogSlice]], Summary]) -> Iterable[Summary]:
        return [task(number, slices) for number, slices in enumerate(self.partitions)]

    def probe(self, task: Callable[[int], Summary]) -> Iterable[Summary]:
        return [task(part) for part in range(self.parallelism)]


class InlineJob:
    """A job without Spark: each step evaluates one micro-batch, if anything waits."""

    def __init__(self, batches: MicroBatches, parallelism: int = 1) -> None:
        self.batches, self.parallelism = batches, parallelism

    def start(self) -> None:
        """Nothing runs beside the caller."""

    def stop(self) -> None:
        """Nothing is left running."""

    def step(self) -> bool:
        start = self.batches.offsets
        slices = slices_between(start, next_offsets(self.batches.home, start, self.batches.documents))
        if not slices:
            return False
        number = self.batches.table.next_batch()
        self.batches.run(number, InlineExecutor(spread(slices, self.parallelism), self.parallelism))
        return True


def load_statistics(home: Home) -> Statistics:
    raw: dict[str, dict[str, Any]] = read_json(home.statistics, {})
    return {key: statistics_from_json(counted) for key, counted in raw.items()}


def save_statistics(home: Home, statistics: Statistics) -> None:
    write_json(home.statistics, {key: counted.to_json() for key, counted in statistics.items()})
