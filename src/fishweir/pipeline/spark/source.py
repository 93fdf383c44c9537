"""The Spark source: all streams' logs by offset, as rows that say which entries to read.

An offset is the number of the last entry taken of each stream. A row names a slice of a log; the
worker that gets it maps the log's file and reads the entries itself, so bodies never pass through the
JVM. All streams are one source: a new stream is just one more key in the offset, and no restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from fishweir.pipeline.home import Home, open_log

FORMAT = "fishweir_logs"
Offset = dict[str, int]


@dataclass(frozen=True)
class LogSlice:
    """Entries with after < number <= upto of one stream."""

    stream: int
    after: int
    upto: int


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
        return LogsReader(self.options["home"], int(self.options["documents"]), int(self.options["tasks"]))


class LogsReader(DataSourceStreamReader):
    def __init__(self, home: str, documents: int, tasks: int) -> None:
        self.home, self.documents, self.tasks = Home(Path(home)), documents, tasks

    def initialOffset(self) -> Offset:
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.documents)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        heads = {str(id): open_log(self.home.streams, id).head() for id in self.home.stream_ids()}
        waiting = {id: head for id, head in heads.items() if head > start.get(id, 0)}
        if isinstance(limit, ReadAllAvailable) or not waiting:
            return {**start, **waiting}
        share = max(1, self.documents // len(waiting))
        return {**start, **{id: min(head, start.get(id, 0) + share) for id, head in waiting.items()}}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        slices = [LogSlice(int(id), start.get(id, 0), upto) for id, upto in end.items() if upto > start.get(id, 0)]
        return [SlicesPartition(part) for part in spread(slices, self.tasks)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int, int]]:
        assert isinstance(partition, SlicesPartition)
        return iter([(s.stream, s.after, s.upto) for s in partition.slices])


def spread(slices: Sequence[LogSlice], tasks: int) -> list[list[LogSlice]]:
    """At most `tasks` parts with about equally many entries; slices are cut where needed."""
    total = sum(s.upto - s.after for s in slices)
    share = -(-total // tasks)
    parts: list[list[LogSlice]] = [[]]
    room = share
    for whole in slices:
        after = whole.after
        while after < whole.upto:
            if not room:
                parts.append([])
                room = share
            upto = min(whole.upto, after + room)
            parts[-1].append(LogSlice(whole.stream, after, upto))
            room -= upto - after
            after = upto
    return parts if total else []
