"""The one streaming query: each micro-batch takes the newest plan, matches, commits.

`foreachBatch` runs on the driver: it brings the plan to the catalog's version, lets the workers match
their slices of the logs, and commits what they wrote. The query set is data that the workers map from
files, so a query comes or goes between two micro-batches and the Spark query never restarts.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType

from fishweir.evaluate.join.annotations.stage import AnnotationStage
from fishweir.evaluate.join.stage import JoinStage
from fishweir.evaluate.plan.source_plan import cached_annotations, cached_stage, sources_of
from fishweir.evaluate.statistics import PathStatistics, Statistics, statistics_from_json
from fishweir.evaluate.witnesses.counters import StreamCounters
from fishweir.pipeline.annotated import PRIMARY, WINDOW
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.home import Home, open_log, read_json, write_json
from fishweir.pipeline.joining import JoinTask
from fishweir.pipeline.retained import RunFile, remove_others, retained
from fishweir.pipeline.spark.source import FORMAT, LogsSource
from fishweir.pipeline.summary import Summary
from fishweir.pipeline.walked import add_walked
from fishweir.pipeline.worker import MatchTask

logger = logging.getLogger("fishweir.job")

DOCUMENTS_PER_BATCH = 20_000
TOO_LATE, ATTEMPTS = "Python worker failed to connect back", 5
"""What Spark says when a Python process is not there in ten seconds, as on a machine that has too much to do."""
SUMMARY = StructType([StructField("summary", StringType())])


@dataclass(frozen=True)
class PlanInForce:
    """What a micro-batch runs with."""

    version: int
    segments: tuple[str, ...]
    queries: int
    dead: frozenset[int] = frozenset()
    """Dropped queries, some of which are still in segments."""


class Job:
    """Runs the streaming query; `newest` gives the plan for the statistics so far, `settled` the micro-batch up to
    which results that are published have become documents, if any do."""

    def __init__(
        self,
        home: Home,
        spark: SparkSession,
        table: ResultsTable,
        newest: Callable[[Statistics], PlanInForce],
        settled: Callable[[], int | None],
        documents: int = DOCUMENTS_PER_BATCH,
    ) -> None:
        self.documents = documents
        self.home, self.spark, self.table, self.newest, self.settled = home, spark, table, newest, settled
        self.statistics = load_statistics(home)
        self.walked: dict[str, StreamCounters] = {}
        self.query: StreamingQuery | None = None
        self.offsets, self.times = table.offsets(), table.newest_times()
        self.queries = 0
        self._late = 0

    def start(self) -> None:
        self.spark.dataSource.register(LogsSource)
        stream = self.spark.readStream.format(FORMAT).option("home", str(self.home.path))
        stream = stream.option("documents", str(self.documents))
        frame = stream.option("tasks", str(self.spark.sparkContext.defaultParallelism)).load()
        writer = frame.writeStream.foreachBatch(self._micro_batch).queryName(f"fishweir {self.home.path.name}")
        self.query = writer.option("checkpointLocation", str(self.home.checkpoint)).start()

    def stop(self) -> None:
        if self.query is not None:
            while self.query.isActive and self.query.status["message"].startswith("Initializing"):
                time.sleep(0.02)  # stopped now, it leaves a Python process that complains on stderr
            self.query.stop()
            self.query = None

    def check(self) -> None:
        """Raises what stopped the query, if anything did; where Spark only did not wait long enough, begins again."""
        if self.query is None or self.query.isActive:
            return
        failure = self.query.exception()
        if failure is not None and TOO_LATE in str(failure) and self._late < ATTEMPTS:
            self._late += 1
            logger.warning("a Python process took more than the ten seconds that Spark gives it: begun again")
            self.start()
        elif failure is not None:
            raise failure

    def _micro_batch(self, frame: DataFrame, batch: int) -> None:
        if self.table.is_committed(batch):
            return
        began, self._late = time.time(), 0
        plan = self.newest(self.statistics)
        self.queries = plan.queries
        folder = self.table.batch_folder(batch)
        task = MatchTask(self.home.streams, self.home.plan, plan.segments, folder, self.home.state, plan.version, batch)
        summary = Summary()
        for row in frame.mapInArrow(task, SUMMARY).collect():
            summary.add(Summary.load(row.summary))
        self.times |= {s: max(newest, self.times.get(s, newest)) for s, (_, newest) in summary.times.items()}
        runs = self._join(summary, plan, batch, folder)
        self._count(summary)
        commit = Commit(
            batch,
            plan.version,
            summary.files,
            summary.documents,
            summary.matches,
            summary.aside,
            summary.offsets,
            began,
            time.time() - began,
            [asdict(run) for run in runs],
            summary.times,
        )
        self.table.commit(commit)
        remove_others(self.home.state, runs)
        self.offsets |= summary.offsets

    def _join(self, summary: Summary, plan: PlanInForce, batch: int, folder: Path) -> list[RunFile]:
        """The second stage, where some query joins documents: pairs of this micro-batch's with those retained."""
        listed = [RunFile(**run) for run in self.table.newest_runs()]
        entered = [run for run in listed if run.name.endswith(WINDOW)]
        old = [run for run in listed if run not in entered]
        names = tuple(sorted(summary.runs))
        new, primaries, windows = (tuple(n for n in names if n.endswith(kind)) for kind in (".run", PRIMARY, WINDOW))
        if new or primaries:
            parts = self.spark.sparkContext.defaultParallelism
            task = JoinTask(
                self.home.plan,
                plan.segments,
                self.home.state,
                new,
                tuple(run.name for run in old),
                folder,
                self.table.sets,
                parts,
                primaries,
                (*(run.name for run in entered), *windows),
            )
            for told in self.spark.sparkContext.parallelize(range(parts), parts).mapPartitions(task.run).collect():
                summary.add(Summary.load(told))
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


def load_statistics(home: Home) -> Statistics:
    raw: dict[str, dict[str, Any]] = read_json(home.statistics, {})
    return {key: statistics_from_json(counted) for key, counted in raw.items()}


def save_statistics(home: Home, statistics: Statistics) -> None:
    write_json(home.statistics, {key: counted.to_json() for key, counted in statistics.items()})
