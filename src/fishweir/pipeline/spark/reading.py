"""Reads results in Spark tasks, so that reading scales with cores.

In: parts of the results (shares.py), and a reader that is sent to the tasks. Out: a DataFrame, or an Arrow table. For a
DataFrame, tasks pass their record batches to Spark. For a table, they write them to files that the driver reads, since
batches that pass through the JVM would be converted to rows and back.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from fishweir.pipeline.result_batch import ResultBatch
from fishweir.pipeline.result_columns import LEFT_OUT, SCHEMA, to_record_batch
from fishweir.pipeline.shares import Part
from fishweir.pipeline.spark.extensions import Extensions
from fishweir.pipeline.spark.session import DataFrame, SparkSession
from fishweir.records import dataclass

MANY = 5_000_000
"""The number of results from which a table is read by a Spark job: on two cores, the driver reads 500,000 faster."""
COLUMNS = """query string, documents array<string>, timestamp double,
    bindings map<string, struct<document: string, node: string, value: string>>, output string"""

Read = Callable[[Part], Iterator[ResultBatch]]


@dataclass(frozen=True)
class SparkReading:
    session: SparkSession
    read: Read
    parts: Sequence[Part]
    folder: Path
    """A folder for the files that tasks write."""

    def to_spark(self) -> DataFrame:
        lacking, read = self._may_lack, self.read
        schema = SCHEMA.append(LEFT_OUT) if lacking else SCHEMA

        def batches(part: Part) -> Iterator[pa.RecordBatch]:
            return (_as(schema, to_record_batch(batch)) for batch in read(part))

        return self._in_tasks(batches, f"{COLUMNS}, left_out array<string>" if lacking else COLUMNS)

    def to_arrow(self) -> pa.Table | None:
        if self._may_lack or sum(commit.matches / share.count for part in self.parts for commit, share in part) < MANY:
            return None
        folder, read = self.folder / f"reading-{uuid.uuid4().hex}", self.read

        def written(part: Part) -> Iterator[pa.RecordBatch]:
            path = folder / f"{uuid.uuid4().hex}.arrow"
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, SCHEMA) as writer:
                for batch in read(part):
                    writer.write_batch(to_record_batch(batch))
            yield pa.record_batch({"path": [str(path)]})

        folder.mkdir()
        try:
            paths = [row.path for row in self._in_tasks(written, "path string").collect()]
            return pa.concat_tables([_whole(path) for path in paths]) if paths else SCHEMA.empty_table()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def _may_lack(self) -> bool:
        """Whether patterns may be missing from some results."""
        return any(commit.cut for part in self.parts for commit, _ in part)

    def _in_tasks(self, found: Callable[[Part], Iterator[pa.RecordBatch]], schema: str) -> DataFrame:
        """The output of `found` for each part, one partition per part, in order."""
        parts, extensions = tuple(self.parts), Extensions()

        def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            assert extensions
            for batch in batches:
                for place in batch.column(0).to_pylist():
                    yield from found(parts[place])

        return self.session.range(0, len(parts), 1, max(len(parts), 1)).mapInArrow(task, schema)


def _as(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with the column for omitted patterns, if other batches have it."""
    if len(batch.schema) == len(schema):
        return batch
    return batch.append_column(LEFT_OUT, pa.nulls(batch.num_rows, LEFT_OUT.type))


def _whole(path: str) -> pa.Table:
    with pa.OSFile(path, "rb") as file:
        return pa.ipc.open_file(file).read_all()
