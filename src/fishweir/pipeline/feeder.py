"""A feeder: lands an attached streaming DataFrame in the log of its stream.

The log then gives it numbers, replay and retention like any other source, and a DataFrame that stalls
holds up nobody else. Each micro-batch of the feeder is appended once: its number is the log's cursor.
"""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as spark_types
from pyspark.sql.streaming import StreamingQuery

from fishweir.algebra.nodes import StreamDefinition
from fishweir.errors import QueryError
from fishweir.intake import StreamLog, documents_batch

COLUMN_TYPES: dict[type[spark_types.DataType], str] = {
    spark_types.StringType: "string", spark_types.IntegerType: "int", spark_types.LongType: "int",
    spark_types.ShortType: "int", spark_types.ByteType: "int", spark_types.DoubleType: "double",
    spark_types.FloatType: "double", spark_types.BooleanType: "boolean", spark_types.TimestampType: "timestamp",
}  # fmt: skip
BODIES = ("body", "value")


def stream_of(name: str, frame: DataFrame) -> StreamDefinition:
    """The stream a DataFrame makes: documents where it has a body (or Kafka's value), else tuples."""
    if body_column(frame):
        return StreamDefinition(name)
    columns = []
    for field in frame.schema.fields:
        kind = COLUMN_TYPES.get(type(field.dataType))
        if kind is None:
            raise QueryError(
                f"stream {name}: column {field.name} has the type {field.dataType.simpleString()}"
            )
        columns.append((field.name, kind))
    return StreamDefinition(name, tuple(columns))


def body_column(frame: DataFrame) -> str | None:
    return next((name for name in BODIES if name in frame.columns), None)


class Feeder:
    def __init__(self, frame: DataFrame, log: StreamLog, checkpoint: Path) -> None:
        if not frame.isStreaming:
            raise QueryError(f"stream {log.stream.name}: the DataFrame is not a streaming one")
        if not log.stream.is_tuples and body_column(frame) is None:
            wanted = " or ".join(BODIES)
            raise QueryError(
                f"stream {log.stream.name}: the DataFrame has no column {wanted} with the documents"
            )
        self.frame, self.log, self.checkpoint = frame, log, checkpoint
        self.query: StreamingQuery | None = None

    def start(self) -> None:
        self.landed = max((c["attached"] for c in self.log.cursors() if "attached" in c), default=-1)
        writer = self.frame.writeStream.foreachBatch(self._land).queryName(f"feeder {self.log.stream.name}")
        self.query = writer.option("checkpointLocation", str(self.checkpoint)).start()

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()
            self.query = None

    def drained(self) -> bool:
        """Whether all that the DataFrame has now is in the log; raises what stopped the feeder."""
        if self.query is None:
            return True
        failure = self.query.exception()
        if failure is not None:
            raise failure
        self.query.processAllAvailable()
        return True

    def _land(self, frame: DataFrame, batch: int) -> None:
        if batch <= self.landed:
            return
        table = frame.toArrow()
        if len(table):
            self.log.append(self._entries(table), cursor={"attached": batch})
        self.landed = batch

    def _entries(self, table: pa.Table) -> pa.RecordBatch:
        stream = self.log.stream
        if stream.is_tuples:
            declared = [name for name, _ in stream.columns if name in table.column_names]
            return documents_batch(stream, table.select(declared), None, None, time.time())
        body = next(name for name in BODIES if name in table.column_names)
        ids = table.column("id").to_pylist() if "id" in table.column_names else None
        return documents_batch(stream, table.column(body).to_pylist(), None, ids, time.time())
