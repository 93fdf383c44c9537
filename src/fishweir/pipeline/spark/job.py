"""The one streaming query: Spark gives the micro-batches and runs their tasks (batch.py).

`foreachBatch` runs on the driver. The tasks run in Spark's Python workers: matching as `mapInArrow` over the rows of
the source, probing as tasks of an RDD, since planning a query of Spark SQL takes longer than most joins do.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark import SparkContext, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType

from fishweir.pipeline.batch import MicroBatches
from fishweir.pipeline.offsets import LogSlice
from fishweir.pipeline.spark.checkpoint import begin_anew
from fishweir.pipeline.spark.extensions import Extensions
from fishweir.pipeline.spark.source import FORMAT, LogsSource
from fishweir.pipeline.summary import Summary

logger = logging.getLogger("fishweir.job")

TOO_LATE, ATTEMPTS = "Python worker failed to connect back", 5
"""What Spark says when a Python process does not start within ten seconds, as on an overloaded machine."""
SUMMARY = StructType([StructField("summary", StringType())])


class SparkJob:
    def __init__(self, batches: MicroBatches, spark: SparkSession) -> None:
        self.batches, self.spark = batches, spark
        self.query: StreamingQuery | None = None
        self._late = 0

    def start(self) -> None:
        self.batches.prepare()
        begin_anew(self.batches.home.checkpoint, self.batches.offsets)
        self.spark.dataSource.register(LogsSource)
        stream = self.spark.readStream.format(FORMAT).option("home", str(self.batches.home.path))
        stream = stream.option("documents", str(self.batches.documents))
        stream = stream.option("start", json.dumps(self.batches.offsets))
        frame = stream.option("tasks", str(self.spark.sparkContext.defaultParallelism)).load()
        writer = frame.writeStream.foreachBatch(self._micro_batch).queryName(f"fishweir {self.batches.home.path.name}")
        self.query = writer.option("checkpointLocation", str(self.batches.home.checkpoint)).start()

    def stop(self) -> None:
        if self.query is not None:
            while self.query.isActive and self.query.status["message"].startswith("Initializing"):
                time.sleep(0.02)  # stopped now, it leaves a Python process that complains on stderr
            self.query.stop()
            self.query = None

    def step(self) -> bool:
        """Raises what stopped the query, if anything did; restarts it where only a Python process was too late."""
        if self.query is None or self.query.isActive:
            return False
        failure = self.query.exception()
        if failure is not None and TOO_LATE in str(failure) and self._late < ATTEMPTS:
            self._late += 1
            logger.warning("a Python process did not start within the ten seconds Spark allows: restarting the query")
            self.start()
        elif failure is not None:
            raise failure
        return False

    def _micro_batch(self, frame: DataFrame, _: int) -> None:
        self._late = 0
        self.batches.run(SparkExecutor(frame, self.spark.sparkContext))


class SparkExecutor:
    """The tasks of a micro-batch on Spark; `frame` has its slices as rows."""

    def __init__(self, frame: DataFrame, context: SparkContext) -> None:
        self.frame, self.context = frame, context
        self.parallelism = int(context.defaultParallelism)

    def match(self, task: Callable[[int, Iterable[LogSlice]], Summary]) -> Iterable[Summary]:
        rows = self.frame.mapInArrow(MatchPartition(task), SUMMARY).collect()
        return [Summary.load(row.summary) for row in rows]

    def probe(self, task: Callable[[int], Summary]) -> Iterable[Summary]:
        parts = self.context.parallelize(range(self.parallelism), self.parallelism)
        return [Summary.load(text) for text in parts.map(ProbePart(task)).collect()]


@dataclass(frozen=True)
class MatchPartition:
    """The function of `mapInArrow`: small, since it is sent with every micro-batch."""

    task: Callable[[int, Iterable[LogSlice]], Summary]
    extensions: Extensions = field(default_factory=Extensions)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context: Any = TaskContext.get()
        slices = (LogSlice(**row) for batch in batches for row in batch.to_pylist())
        summary = self.task(context.partitionId() if context else 0, slices)
        yield pa.RecordBatch.from_arrays([pa.array([summary.dump()])], ["summary"])


@dataclass(frozen=True)
class ProbePart:
    task: Callable[[int], Summary]
    extensions: Extensions = field(default_factory=Extensions)

    def __call__(self, part: int) -> str:
        return self.task(part).dump()
