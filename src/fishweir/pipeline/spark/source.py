"""The Spark source: all streams' logs by offset, as rows that say which entries to read.

Bodies never pass through the JVM: a row is a slice of a log (offsets.py). All streams are one source: a new stream is
one more key in the offset, so no restart is needed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from fishweir.pipeline.home import Home
from fishweir.pipeline.offsets import LogSlice, Offsets, next_offsets, slices_between, spread

FORMAT = "fishweir_logs"
SETTLED = 0.1
"""Seconds after which what arrived is surely in its log; until then another stream's may be there before it."""


class SlicesPartition(InputPartition):
    def __init__(self, slices: list[LogSlice]) -> None:
        self.slices = slices


class LogsSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "stream int, after long, upto long"

    def streamReader(self, schema: StructType) -> LogsReader:
        start = json.loads(self.options["start"])
        return LogsReader(self.options["home"], start, int(self.options["documents"]), int(self.options["tasks"]))


class LogsReader(DataSourceStreamReader):
    def __init__(self, home: str, start: Offsets, documents: int, tasks: int) -> None:
        self.home, self.start, self.documents, self.tasks = Home(Path(home)), start, documents, tasks

    def initialOffset(self) -> Offsets:
        return self.start

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.documents)

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        documents = None if isinstance(limit, ReadAllAvailable) else self.documents
        return next_offsets(self.home, start, documents, time.time() - SETTLED)

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        return [SlicesPartition(part) for part in spread(slices_between(start, end), self.tasks)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int, int]]:
        assert isinstance(partition, SlicesPartition)
        return iter([(s.stream, s.after, s.upto) for s in partition.slices])
