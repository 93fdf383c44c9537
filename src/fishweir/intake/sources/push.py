"""Converts pushed arrivals to log entries: XML texts, or tuples as dicts, Arrow tables and pandas DataFrames."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from fishweir.algebra.documents import text_to_body
from fishweir.algebra.nodes import StreamDefinition
from fishweir.algebra.values import to_timestamp
from fishweir.errors import QueryError
from fishweir.intake.convert import Bad, convert, shown, side_by_side
from fishweir.intake.dict_columns import columns_of_dicts, wrong_type
from fishweir.intake.json_documents import json_document
from fishweir.intake.schema import log_batch, tuple_batch, warn_problems


def documents_batch(
    stream: StreamDefinition,
    items: Any,
    timestamps: Sequence[Any] | None = None,
    ids: Sequence[str | None] | None = None,
    now: float = 0.0,
) -> pa.RecordBatch:
    """Entries for published `items` in order, with the arrival time `now`.

    XML streams take str or bytes, unparsed, and dicts, whose members become elements; tuple streams take dicts, an
    Arrow table or a DataFrame. Raises QueryError for lists of different lengths, items of a wrong type and tables with
    unknown columns; nothing is appended then. A single invalid tuple becomes a problem entry with its reason and its
    JSON.
    """
    given = _given(stream, len(items), timestamps, ids)
    batch = _tuples(stream, items, given, now) if stream.is_tuples else _texts(stream, items, given, now)
    warn_problems(stream, batch)
    return batch


def _given(
    stream: StreamDefinition, count: int, timestamps: Sequence[Any] | None, ids: Sequence[str | None] | None
) -> dict[str, pa.Array]:
    given: dict[str, pa.Array] = {}
    for name, values in (("timestamps", timestamps), ("ids", ids)):
        if values is not None and len(values) != count:
            raise QueryError(f"stream {stream.name}: {count} items but {len(values)} {name}")
    if timestamps is not None:
        given["timestamp"] = _times(stream, timestamps)
    if ids is not None:
        if wrong := [value for value in ids if not isinstance(value, str | None)]:
            raise QueryError(f"stream {stream.name}: the id {shown(wrong[0])} is not a string")
        given["id"] = pa.array(ids, pa.string())
    return given


def _times(stream: StreamDefinition, timestamps: Sequence[Any]) -> pa.Array:
    with suppress(struct.error):  # some of them are not numbers
        seconds = np.frombuffer(struct.pack(f"{len(timestamps)}d", *timestamps))
        may_be_booleans = ((seconds == 0) | (seconds == 1)).any()
        if np.isfinite(seconds).all() and not (may_be_booleans and not set(map(type, timestamps)) <= {int, float}):
            return pa.array(seconds)
    return pa.array([_seconds(stream, value) for value in timestamps], pa.float64())


def _seconds(stream: StreamDefinition, value: Any) -> float | None:
    if value is None:
        return None
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    seconds = to_timestamp(text)
    if seconds is None:
        raise QueryError(
            f"stream {stream.name}: {shown(value)} is not a timestamp: expected seconds, ISO 8601 or RFC 822"
        )
    return seconds


def _texts(stream: StreamDefinition, items: Any, given: dict[str, Any], now: float) -> pa.RecordBatch:
    if wrong := wrong_type(items, (str, bytes, Mapping)):
        raise QueryError(f"stream {stream.name} accepts XML as str or bytes, and objects as dicts, not {wrong}")
    problems: list[str | None] = [None] * len(items)
    bodies: list[bytes] = []
    for row, item in enumerate(items):
        try:
            if isinstance(item, Mapping):
                bodies.append(json_document(item, stream.name))
                continue
            bodies.append(text_to_body(item) if isinstance(item, str) else item)
        except RecursionError:
            problems[row] = "the object is nested too deeply"
            bodies.append(b"")
        except UnicodeEncodeError as error:
            problems[row] = f"the text is not Unicode: {error.reason} at position {error.start}"
            bodies.append(item.encode("utf-8", "backslashreplace"))
        except ValueError as error:
            problems[row] = f"the object cannot be converted to a document: {error}"
            bodies.append(_json(item))
    return log_batch(stream, len(items), now, {"body": bodies, "problem": problems, **given})


def _tuples(stream: StreamDefinition, items: Any, given: dict[str, Any], now: float) -> pa.RecordBatch:
    table = _as_table(stream, items)
    if table is not None:
        arrays, bad = _from_table(stream, table)
        raw: Callable[[int], bytes] = lambda row: _json(table.slice(row, 1).to_pylist()[0])  # noqa: E731
    else:
        items = items if isinstance(items, list | tuple) else list(items)  # others need not support slices or indexes
        arrays, bad = columns_of_dicts(stream, items)
        raw = lambda row: _json(items[row])  # noqa: E731
    return tuple_batch(stream, arrays, bad, raw, now, given)


def _json(row: Any) -> bytes:
    return json.dumps(row, default=str).encode()


def _as_table(stream: StreamDefinition, items: Any) -> pa.Table | pa.RecordBatch | None:
    """The items as an Arrow table if they are a table or a DataFrame; otherwise None."""
    if isinstance(items, pa.Table | pa.RecordBatch):
        return items
    if type(items).__module__.partition(".")[0] == "pandas" and hasattr(items, "columns"):
        try:
            return pa.Table.from_pandas(items, preserve_index=False)
        except pa.ArrowException:  # a column of mixed types
            return pa.table({str(n): _mixed(items[n]) for n in items.columns})
    return None


def _mixed(column: Any) -> pa.Array:
    try:
        return pa.Array.from_pandas(column)
    except pa.ArrowException:
        return pa.array([None if value is None or value != value else str(value) for value in column])


def _from_table(stream: StreamDefinition, table: pa.Table | pa.RecordBatch) -> tuple[list[pa.Array], Bad]:
    declared = dict(stream.columns)
    if unknown := [name for name in table.schema.names if name not in declared]:
        raise QueryError(f"stream {stream.name} has no column {unknown[0]}; it has {', '.join(declared)}")
    present = set(table.schema.names)
    return side_by_side(
        [
            (name, convert(table.column(name) if name in present else pa.nulls(table.num_rows), kind))
            for name, kind in stream.columns
        ]
    )
