"""The one streaming query, and the loop inside it that evaluates micro-batches (batch.py).

Spark's micro-batch is the frame: one, held open while the job runs. In it, long-running tasks (crew.py) evaluate as
many of our micro-batches as there are, and each is committed by the driver (commits.py). Commits are the one truth of
how far each stream was evaluated: Spark's offsets say nothing, and each start begins with a new checkpoint.
"""

from __future__ import annotations

import logging
import threading
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from fishweir.pipeline.batch import MicroBatches
from fishweir.pipeline.bell import Bell, ring
from fishweir.pipeline.offsets import is_waiting
from fishweir.pipeline.spark.checkpoint import begin_anew, finish
from fishweir.pipeline.spark.crew import Crew, CrewLost

logger = logging.getLogger("fishweir.job")

ATTEMPTS = 5
"""Times that a micro-batch is tried: a task may die for reasons outside, such as too little memory."""
SETTLED = 0.1
"""Seconds after which what arrived is surely in its log; until then another stream's may be there before it."""
AT_REST, UNSETTLED = 0.5, 0.02
"""Seconds after which the job looks by itself whether something arrived: nobody may have rung, or it must settle."""
NOTE_EVERY = 1.0
"""Seconds after which a job that is idle in between writes down its counters and how far it is."""
LOOK_EVERY = 1.0
"""Seconds after which the driver asks Spark whether the query is alive."""


class SparkJob:
    def __init__(self, batches: MicroBatches, spark: SparkSession) -> None:
        self.batches, self.spark = batches, spark
        self.query: StreamingQuery | None = None
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._looked, self._wrote, self._noted = 0.0, 0.0, -1

    def start(self) -> None:
        checkpoint = self.batches.home.checkpoint
        begin_anew(checkpoint, self.batches.offsets)
        self.crew, self.bell = Crew(self.spark.sparkContext), Bell(self.batches.home)
        self.crew.begin()
        frame = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "1").load()
        writer = frame.writeStream.foreachBatch(self._hold).queryName(f"fishweir {self.batches.home.path.name}")
        self.query = writer.option("checkpointLocation", str(checkpoint)).start()

    def stop(self) -> None:
        if self.query is not None:
            self._stopping.set()
            ring(self.batches.home)
            self.crew.leave()
            self.query.stop()
            self.bell.close()
            self.query = None

    def step(self) -> bool:
        """Raises what stopped the query, if anything did."""
        if self._failure is not None:
            raise self._failure
        if self.query is not None and time.monotonic() > self._looked + LOOK_EVERY:
            self._looked = time.monotonic()
            if not self.query.isActive and (failure := self.query.exception()) is not None:
                raise failure
        return False

    def _hold(self, _: DataFrame, __: int) -> None:
        """One micro-batch of Spark, which lasts as long as the job does."""
        try:
            while not self._stopping.is_set():
                if not self._evaluated():
                    self._note()
                    self.crew.rest()
                    self.bell.wait(UNSETTLED if is_waiting(self.batches.home, self.batches.offsets) else AT_REST)
        except Exception as failure:
            self._failure = failure
            raise
        finally:
            self._note(ends=True)

    def _note(self, ends: bool = False) -> None:
        """Writes down what a job that ends at once may lose; while it runs, from time to time."""
        if not ends and time.monotonic() < self._wrote + NOTE_EVERY:
            return
        self._wrote = time.monotonic()
        self.batches.save()
        if self.batches.last.batch != self._noted:
            finish(self.batches.home.checkpoint, self.batches.offsets)
            self._noted = self.batches.last.batch

    def _evaluated(self) -> bool:
        """One of our micro-batches, if anything waits, with another crew where one is lost; whether anything did."""
        for attempt in range(ATTEMPTS):
            try:
                return self.batches.step(self.crew, time.time() - SETTLED)
            except CrewLost as lost:
                self.crew.leave()
                if self._stopping.is_set():
                    return False
                if attempt == ATTEMPTS - 1:
                    raise
                logger.warning("a task of the job died, starting others: %s", str(lost).partition("\n")[0])
        return False
