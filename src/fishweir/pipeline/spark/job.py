"""The loop that evaluates micro-batches (batch.py) on Spark, and the one streaming query that represents it.

Long-running tasks (worker_pool.py) evaluate the micro-batches, and the driver commits each of them (commits.py). Only
the commits record how far each stream was evaluated: Spark's offsets are not used, and each start begins with a new
checkpoint.

The loop begins as soon as Spark can run tasks. Spark's query is the frame: a single micro-batch of Spark that stays
open while the loop runs, and fails with it. Opening it takes seconds in a new JVM, and half a second otherwise. It is
therefore opened in parallel with the loop, once the job has run for a while. A run that ends before has no frame.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from pyspark import InheritableThread, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from fishweir.evaluate.plan.plan import cached_plan
from fishweir.pipeline.batch import MicroBatches
from fishweir.pipeline.long_lived import LongLivedObjects
from fishweir.pipeline.rehearsal import Rehearsal
from fishweir.pipeline.spark.checkpoint import record_offsets, reset_checkpoint
from fishweir.pipeline.spark.worker_pool import WorkerPool, WorkerPoolLost
from fishweir.pipeline.wakeup import WakeUpPipe, wake_up

logger = logging.getLogger("fishweir.job")

ATTEMPTS = 5
"""The maximum number of attempts for a micro-batch: a task may die for external reasons, such as too little memory."""
SETTLED = 0.1
"""Seconds after which an arrived entry is certainly in its log. Until then, later entries of other streams may be
first.
"""
AT_REST, UNSETTLED = 0.5, 0.02
"""Seconds between polls for new entries: without a wake-up call, and while entries must settle."""
STAYS, STAYS_ANYWAY = 2.0, 10.0
"""Seconds after which a job is considered long-running: idle since its tasks are running, or since its start."""
SAVE_EVERY = 1.0
"""Seconds between saves of counters and offsets in a job that is idle in between."""
CHECK_EVERY = 1.0
"""Seconds between checks whether Spark's query is alive."""


class SparkJob:
    def __init__(self, batches: MicroBatches, context: SparkContext, session: Callable[[], SparkSession]) -> None:
        self.batches, self.context, self.session = batches, context, session
        self.query: StreamingQuery | None = None
        self.framed = threading.Event()
        """Set once Spark's query is running."""
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._long_lived = LongLivedObjects()
        self._failure: Exception | None = None
        self._checked_at, self._saved_at, self._saved_batch = 0.0, 0.0, -1
        self._loop: threading.Thread | None = None
        self._frame: threading.Thread | None = None

    def start(self) -> None:
        reset_checkpoint(self.batches.home.checkpoint, self.batches.offsets)
        self.pool, self.wakeup = WorkerPool(self.context), WakeUpPipe(self.batches.home)
        self.pool.begin()
        self._loop = InheritableThread(target=self._evaluate, name="fishweir job", daemon=True)
        self._loop.start()

    def stop(self) -> None:
        if self._loop is not None:
            self._stopping.set()
            wake_up(self.batches.home)
            self.pool.shut_down()
            self._loop.join()
            self.pool.shut_down()  # it may have been restarted in the meantime
            if self._frame is not None:
                self._frame.join()
            if self.query is not None:
                self.query.stop()
            self.wakeup.close()
            self._long_lived.end()
            self.query = self._loop = self._frame = None

    def step(self) -> bool:
        """Raises the error that stopped the job, if any."""
        if self._failure is not None:
            raise self._failure
        if self.query is not None and time.monotonic() > self._checked_at + CHECK_EVERY:
            self._checked_at = time.monotonic()
            if not self.query.isActive and (failure := self.query.exception()) is not None:
                raise failure
        return False

    def rehearse(self, segment: str) -> None:
        """Opens a segment that is not in force yet, here and in the tasks, concurrently with micro-batches."""
        home = self.batches.home
        any(stage.is_by_arrival for stage in cached_plan(home.plan, (segment,)).stages.values())
        self.pool.rehearse(Rehearsal.of(home, segment, dict(self.batches.offsets)))

    def _evaluate(self) -> None:
        """Evaluates micro-batches one after another, as long as the job runs."""
        try:
            try:
                self._run_loop()
            finally:
                self._save(ends=True)
        except Exception as failure:
            self._failure = failure
        finally:
            self._ended.set()

    def _run_loop(self) -> None:
        stays_from = time.monotonic() + STAYS_ANYWAY
        while not self._stopping.is_set():
            evaluated = self._evaluated()
            if not evaluated and self.pool.is_ready:
                stays_from = min(stays_from, time.monotonic() + STAYS)
            if self._frame is None and time.monotonic() >= stays_from:
                self._frame = InheritableThread(target=self._open_frame, name="fishweir frame", daemon=True)
                self._frame.start()
            if not evaluated:
                self._save()
                self.pool.rest()
                self.wakeup.wait(UNSETTLED if self.batches.must_settle else AT_REST)

    def _open_frame(self) -> None:
        """Starts Spark's query, which then waits for the end of the loop."""
        home = self.batches.home
        try:
            frame = self.session().readStream.format("rate-micro-batch").option("rowsPerBatch", "1").load()
            writer = frame.writeStream.foreachBatch(self._hold).queryName(f"fishweir {home.path.name}")
            self.query = writer.option("checkpointLocation", str(home.checkpoint)).start()
            self._long_lived.begin()
        except Exception as failure:
            self._failure = self._failure or failure

    def _hold(self, _: DataFrame, __: int) -> None:
        """One micro-batch of Spark, which lasts as long as the job."""
        self.framed.set()
        self._ended.wait()
        if self._failure is not None:
            raise self._failure

    def _save(self, ends: bool = False) -> None:
        """Saves counters and offsets, which the job would lose if it crashed; while it runs, only from time to time."""
        if not ends and time.monotonic() < self._saved_at + SAVE_EVERY:
            return
        self._saved_at = time.monotonic()
        self.batches.save()
        if self.batches.last.batch != self._saved_batch:
            record_offsets(self.batches.home.checkpoint, self.batches.offsets)
            self._saved_batch = self.batches.last.batch

    def _evaluated(self) -> bool:
        """Evaluates one micro-batch if entries are waiting, with a new pool if the old one is lost. Returns whether
        entries were waiting.
        """
        for attempt in range(ATTEMPTS):
            try:
                return self.batches.step(self.pool, time.time() - SETTLED)
            except WorkerPoolLost as lost:
                self.pool.shut_down()
                if self._stopping.is_set():
                    return False
                if attempt == ATTEMPTS - 1:
                    raise
                logger.warning("a task of the job died; starting new tasks: %s", str(lost).partition("\n")[0])
        return False
