"""Segments of logs: Arrow IPC without the columns that contain only NULLs, in a pack or in a file of their own.

Most entries have no id, problem, change or context of their own, and a tuple has no body: a segment of tuples takes
half the space without these columns. They are added again when a segment is read.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from fishweir.intake.packs import read_packed
from fishweir.intake.schema import nulls
from fishweir.intake.segment_list import Listed
from fishweir.sealed import SMALL, length_of, read_verified, reading, verify

if TYPE_CHECKING:
    from fishweir.intake.log import StreamLog

OPEN_SEGMENTS = 128
"""The number of segments that a process keeps open over all logs: with more than 1,024 open files, py4j, which calls
`select`, no longer receives Spark's callbacks."""


class Segment(NamedTuple):
    """An open segment. Its batches are views of the file."""

    metadata: dict[bytes, bytes]
    batches: list[pa.RecordBatch]


@lru_cache(OPEN_SEGMENTS)
def open_segment(log: StreamLog, place: str, now: Any, listed: Listed | None) -> Segment:
    """A verified segment, cached per log: a log that was recreated in the same place has different segments. `now`
    distinguishes its file from earlier ones. A small one is read once, to verify it and to open it, which takes half
    the time of mapping it as well."""
    path = Path(place)
    if listed is None:
        with reading(path):
            content = pa.memory_map(str(path))
    elif listed.pack:
        content = pa.py_buffer(read_packed(path, listed.offset, listed.seal))
    elif length_of(listed.seal) <= SMALL:
        content = pa.py_buffer(read_verified(path, listed.seal))
    else:
        verify(path, listed.seal)
        with reading(path):
            content = pa.memory_map(str(path))
    with reading(path):
        reader = pa.ipc.open_file(content)
        stored = map(reader.get_batch, range(reader.num_record_batches))
        return Segment(reader.schema.metadata, [with_null_columns(batch, log.schema) for batch in stored])


def stored_form(entries: pa.RecordBatch | pa.Table, cursor: dict[str, Any] | None) -> pa.RecordBatch | pa.Table:
    """The entries as a segment stores them: with its metadata, without columns of NULLs."""
    metadata = {"rows": str(entries.num_rows)} | ({} if cursor is None else {"cursor": json.dumps(cursor)})
    whole = entries.combine_chunks() if isinstance(entries, pa.Table) else entries
    return without_null_columns(whole).replace_schema_metadata(metadata)


def without_null_columns(entries: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
    return entries.select([i for i, column in enumerate(entries.columns) if column.null_count < len(column)])


def with_null_columns(stored: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The stored columns in the order of the schema, and NULLs for the others."""
    columns = dict(zip(stored.schema.names, stored.columns, strict=True))
    arrays = [columns[field.name] if field.name in columns else nulls(stored.num_rows, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
