"""A feeder: appends an attached streaming DataFrame to the log of its stream.

The log then provides numbers, replay and retention as for any other source, and a stalled DataFrame holds up no other
stream. Each micro-batch of the feeder is appended once: its number is the log's cursor.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pyarrow as pa
from pyspark.errors import StreamingQueryException
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
    """The stream for a DataFrame: documents if it has a body (or Kafka's value), else tuples."""
    if body_column(frame):
        return StreamDefinition(name)
    columns = []
    for field in frame.schema.fields:
        kind = COLUMN_TYPES.get(type(field.dataType))
        if kind is None:
            raise QueryError(f"stream {name}: column {field.name} has unsupported type {field.dataType.simpleString()}")
        columns.append((field.name, kind))
    return StreamDefinition(name, tuple(columns))


def body_column(frame: DataFrame) -> str | None:
    """The column with the documents; a numeric `value`, as in the rate source, does not count."""
    texts = (spark_types.StringType, spark_types.BinaryType)
    named = {field.name for field in frame.schema.fields if isinstance(field.dataType, texts)}
    return next((name for name in BODIES if name in named), None)


class Feeder:
    def __init__(self, frame: DataFrame, log: StreamLog, checkpoint: Path) -> None:
        if not frame.isStreaming:
            raise QueryError(f"stream {log.stream.name}: the DataFrame is not a streaming DataFrame")
        if not log.stream.is_tuples and body_column(frame) is None:
            wanted = " or ".join(BODIES)
            raise QueryError(f"stream {log.stream.name}: the DataFrame has no column {wanted} with the documents")
        self.frame, self.log, self.checkpoint = frame, log, checkpoint
        self.query: StreamingQuery | None = None
        self._draining: Thread | None = None

    def start(self) -> None:
        self._draining = None
        self.landed = max((c["attached"] for c in self.log.cursors() if "attached" in c), default=-1)
        writer = self.frame.writeStream.foreachBatch(self._land).queryName(f"feeder {self.log.stream.name}")
        self.query = writer.option("checkpointLocation", str(self.checkpoint)).start()

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()
            self.query = None

    def drained(self) -> bool:
        """Whether everything that the DataFrame had at the first call is in the log. Raises the error that stopped it.

        Does not wait: a DataFrame that always has more data would hold up everything.
        """
        if self.query is None:
            return True
        if self._draining is None:
            self._draining = Thread(target=self._drain, args=(self.query,), daemon=True)
            self._draining.start()
        if self._draining.is_alive():
            return False
        self._draining = None
        failure = self.query.exception()
        if failure is not None:
            raise failure
        return True

    def _drain(self, query: StreamingQuery) -> None:
        with suppress(StreamingQueryException):  # the query keeps it for `drained`
            query.processAllAvailable()

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
        bodies = [body or b"" for body in table.column(body_column(self.frame)).to_pylist()]
        ids = table.column("id").cast(pa.string()).to_pylist() if "id" in table.column_names else None
        return documents_batch(stream, bodies, None, ids, time.time())
