"""The loop that evaluates micro-batches (batch.py) on Spark, and the one streaming query that represents it.

Long-running tasks (worker_pool.py) evaluate as many micro-batches as there are, and each is committed by the driver
(commits.py). Commits are the one truth of how far each stream was evaluated: Spark's offsets say nothing, and each
start begins with a new checkpoint.

The loop begins as soon as Spark can run tasks. Spark's query is the frame: one micro-batch of it, held open while the
loop lasts, and failing with it. To open it takes seconds in a young JVM, and half a second in any other. So it is
opened beside the loop once the job stays; a run that is over before that has none.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from pyspark import InheritableThread, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from fishweir.pipeline.batch import MicroBatches
from fishweir.pipeline.offsets import is_waiting
from fishweir.pipeline.spark.checkpoint import begin_anew, finish
from fishweir.pipeline.spark.worker_pool import WorkerPool, WorkerPoolLost
from fishweir.pipeline.wakeup import WakeUpPipe, wake_up

logger = logging.getLogger("fishweir.job")

ATTEMPTS = 5
"""Times that a micro-batch is tried: a task may die for reasons outside, such as too little memory."""
SETTLED = 0.1
"""Seconds after which what arrived is surely in its log; until then another stream's may be there before it."""
AT_REST, UNSETTLED = 0.5, 0.02
"""Seconds after which the job looks by itself whether something arrived: nobody may have rung, or it must settle."""
STAYS, STAYS_ANYWAY = 2.0, 10.0
"""Seconds after which a job is one that stays: since its tasks are there and nothing waited, or since its start."""
NOTE_EVERY = 1.0
"""Seconds after which a job that is idle in between writes down its counters and how far it is."""
LOOK_EVERY = 1.0
"""Seconds after which the driver asks Spark whether the query is alive."""


class SparkJob:
    def __init__(self, batches: MicroBatches, context: SparkContext, session: Callable[[], SparkSession]) -> None:
        self.batches, self.context, self.session = batches, context, session
        self.query: StreamingQuery | None = None
        self.framed = threading.Event()
        """Set once Spark's query is there."""
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._failure: Exception | None = None
        self._looked, self._wrote, self._noted = 0.0, 0.0, -1
        self._loop: threading.Thread | None = None
        self._frame: threading.Thread | None = None

    def start(self) -> None:
        begin_anew(self.batches.home.checkpoint, self.batches.offsets)
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
            self.pool.shut_down()  # it may have been started again in the meantime
            if self._frame is not None:
                self._frame.join()
            if self.query is not None:
                self.query.stop()
            self.wakeup.close()
            self.query = self._loop = self._frame = None

    def step(self) -> bool:
        """Raises what stopped the job, if anything did."""
        if self._failure is not None:
            raise self._failure
        if self.query is not None and time.monotonic() > self._looked + LOOK_EVERY:
            self._looked = time.monotonic()
            if not self.query.isActive and (failure := self.query.exception()) is not None:
                raise failure
        return False

    def _evaluate(self) -> None:
        """One micro-batch after the other, as long as the job lasts."""
        try:
            try:
                self._go_round()
            finally:
                self._note(ends=True)
        except Exception as failure:
            self._failure = failure
        finally:
            self._ended.set()

    def _go_round(self) -> None:
        stays_from = time.monotonic() + STAYS_ANYWAY
        while not self._stopping.is_set():
            evaluated = self._evaluated()
            if not evaluated and self.pool.is_ready:
                stays_from = min(stays_from, time.monotonic() + STAYS)
            if self._frame is None and time.monotonic() >= stays_from:
                self._frame = InheritableThread(target=self._open_frame, name="fishweir frame", daemon=True)
                self._frame.start()
            if not evaluated:
                self._note()
                self.pool.rest()
                self.wakeup.wait(UNSETTLED if is_waiting(self.batches.home, self.batches.offsets) else AT_REST)

    def _open_frame(self) -> None:
        """Starts Spark's query, which then waits for the loop to end."""
        home = self.batches.home
        try:
            frame = self.session().readStream.format("rate-micro-batch").option("rowsPerBatch", "1").load()
            writer = frame.writeStream.foreachBatch(self._hold).queryName(f"fishweir {home.path.name}")
            self.query = writer.option("checkpointLocation", str(home.checkpoint)).start()
        except Exception as failure:
            self._failure = self._failure or failure

    def _hold(self, _: DataFrame, __: int) -> None:
        """One micro-batch of Spark, which lasts as long as the job does."""
        self.framed.set()
        self._ended.wait()
        if self._failure is not None:
            raise self._failure

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
        """Evaluates one micro-batch, if entries are waiting, with a new pool if one is lost; whether there were any."""
        for attempt in range(ATTEMPTS):
            try:
                return self.batches.step(self.pool, time.time() - SETTLED)
            except WorkerPoolLost as lost:
                self.pool.shut_down()
                if self._stopping.is_set():
                    return False
                if attempt == ATTEMPTS - 1:
                    raise
                logger.warning("a task of the job died, starting new tasks: %s", str(lost).partition("\n")[0])
        return False
