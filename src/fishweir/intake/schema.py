"""The schema of log entries, and how batches of entries are built.

An entry that is known to be invalid at intake has the reason in `problem` and its raw bytes in `body`; it still gets a
number. A stream with declared columns has one typed column `c_<name>` for each of them. A stream of published results
has `origin`, the document that was passed on, and `since`: for results of the first joins of a chain, the version of
the catalog when the earliest of their documents arrived.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fishweir.algebra.nodes import StreamDefinition

logger = logging.getLogger("fishweir.intake")

KINDS: dict[str, pa.DataType] = {
    "int": pa.int64(), "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}  # fmt: skip

ENTRY_FIELDS: tuple[tuple[str, pa.DataType], ...] = (
    ("id", pa.string()), ("timestamp", pa.float64()), ("arrival", pa.float64()), ("problem", pa.string()),
    ("change", pa.string()), ("previous", pa.int64()), ("context", pa.string()), ("body", pa.large_binary()),
)  # fmt: skip

PUBLISHED_FIELDS: tuple[tuple[str, pa.DataType], ...] = (("since", pa.int64()), ("origin", pa.int64()))

KEPT_BYTES = 256 * 1024 * 1024
"""The maximum number of bytes of a broken file that are kept with the problem."""

SHOWN_PROBLEMS = 5


def column_name(name: str) -> str:
    """The name of a declared column in the log."""
    return f"c_{name}"


def log_schema(stream: StreamDefinition) -> pa.Schema:
    """The Arrow schema of a stream's log."""
    return _schema(stream.columns, stream.virtual is not None)


@lru_cache(maxsize=1024)
def _schema(columns: tuple[tuple[str, str], ...], is_published: bool) -> pa.Schema:
    declared = [(column_name(name), KINDS[kind]) for name, kind in columns]
    return pa.schema([*ENTRY_FIELDS, *(PUBLISHED_FIELDS if is_published else ()), *declared])


def nulls(count: int, kind: pa.DataType) -> pa.Array:
    """A column that contains only NULLs. All such columns share their memory: offsets, values and marks are zeros."""
    zeros = _zeros(1 << (8 * count + 8).bit_length())
    return pa.Array.from_buffers(kind, count, [zeros] * kind.num_buffers, null_count=count)


@cache
def _zeros(size: int) -> pa.Buffer:
    return pa.py_buffer(np.zeros(size, np.uint8))


def log_batch(
    stream: StreamDefinition, count: int, arrival: float, columns: Mapping[str, Sequence[Any] | pa.Array]
) -> pa.RecordBatch:
    """`count` entries that arrived at one time. Columns that are not given are NULL."""
    schema = log_schema(stream)
    given: dict[str, Any] = {"arrival": np.full(count, arrival), **columns}
    arrays = [
        _typed(given[field.name], field.type) if field.name in given else nulls(count, field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _typed(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def tuple_batch(
    stream: StreamDefinition,
    arrays: Sequence[pa.Array],
    bad: Mapping[int, str],
    raw: Callable[[int], bytes],
    arrival: float,
    given: Mapping[str, Any] | None = None,
) -> pa.RecordBatch:
    """Tuples as entries: `arrays` in the order of the columns, `bad` with the reasons by row, `raw` for the bytes of a
    row.

    An invalid row keeps its position, with NULL in all columns. Valid rows cost no Python time.
    """
    count = len(arrays[0])
    columns: dict[str, Any] = dict(given or {})
    if bad:
        arrays = [_without(array, bad) for array in arrays]
        columns["problem"] = _scattered(count, bad, pa.string())
        columns["body"] = _scattered(count, {row: raw(row) for row in bad}, pa.large_binary())
    names = [column_name(name) for name, _ in stream.columns]
    return log_batch(stream, count, arrival, {**columns, **dict(zip(names, arrays, strict=True))})


def _without(array: pa.Array, rows: Mapping[int, Any]) -> pa.Array:
    keep = np.ones(len(array), dtype=bool)
    keep[list(rows)] = False
    return pc.if_else(pa.array(keep), array, pa.scalar(None, array.type))


def _scattered(count: int, values: Mapping[int, Any], kind: pa.DataType) -> pa.Array:
    column: list[Any] = [None] * count
    for row, value in values.items():
        column[row] = value
    return pa.array(column, kind)


def file_problem(stream: StreamDefinition, path: Path, reason: str, arrival: float) -> pa.RecordBatch:
    """One entry for the rest of a file that cannot be read any further, with the file's bytes."""
    with path.open("rb") as file:
        body = file.read(KEPT_BYTES)
        cut = f"; only the first {KEPT_BYTES:,} bytes are kept" if file.read(1) else ""
    return log_batch(stream, 1, arrival, {"problem": [f"{path}: {reason}{cut}"], "body": [body]})


def warn_problems(stream: StreamDefinition, batch: pa.RecordBatch) -> None:
    """Logs the reasons of the invalid entries of a batch: the first few, and the number of the others."""
    problems = batch.column("problem")
    if problems.null_count == len(problems):
        return
    reasons = problems.drop_null()
    for reason in reasons[:SHOWN_PROBLEMS].to_pylist():
        logger.warning("stream %s: %s", stream.name, reason)
    if len(reasons) > SHOWN_PROBLEMS:
        logger.warning("stream %s: %d more problems like these", stream.name, len(reasons) - SHOWN_PROBLEMS)
