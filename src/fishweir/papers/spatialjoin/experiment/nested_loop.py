"""Spark as a contestant: joins the batch with the broadcast table of queries by a nested-loop join on one core.

The pairs are produced and dropped inside Spark (its `noop` sink), so that the transfer to Python does not count. The
time is wall time, since Spark runs in a separate process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from fishweir.papers.spatialjoin.experiment.contestants import Pairs
from fishweir.papers.spatialjoin.experiment.outsiders import Outsider
from fishweir.papers.spatialjoin.experiment.work import Floats, Work


class NestedLoopJoin(Outsider):
    name = "Spark nested loop"
    clock: ClassVar[Callable[[], float]] = time.perf_counter

    def __init__(self, work: Work, session: Any) -> None:
        super().__init__(work)
        self.session = session
        columns = pa.table(self.query_columns(np.arange(work.queries)))
        queries = session.createDataFrame(columns).coalesce(1).cache()
        queries.count()
        queries.createOrReplaceTempView("queries")
        on = " and ".join(self.conditions("l", "h"))
        self.text = f"select /*+ broadcast(queries) */ row, number from batch join queries on {on}"

    def match(self, tuples: Floats) -> Any:
        batch = self.session.createDataFrame(pa.table(self.tuple_columns(tuples))).coalesce(1)
        batch.createOrReplaceTempView("batch")
        frame = self.session.sql(self.text)
        frame.write.format("noop").mode("overwrite").save()
        return frame

    def pairs(self, found: Any) -> Pairs:
        table = found.toArrow()
        return table["row"].to_numpy(), table["number"].to_numpy()
