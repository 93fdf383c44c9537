"""Converts pushed arrivals to log entries: XML texts, or tuples as dicts, Arrow tables and pandas DataFrames."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from operator import countOf, itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from fishweir.algebra.documents import text_to_body
from fishweir.algebra.nodes import StreamDefinition
from fishweir.algebra.values import to_timestamp
from fishweir.errors import QueryError
from fishweir.intake.convert import Bad, convert, convert_list, shown, side_by_side
from fishweir.intake.json_documents import json_document
from fishweir.intake.schema import log_batch, tuple_batch, warn_problems

TOGETHER = 2_000
"""Number of items that are converted at a time."""


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
    if wrong := _wrong_type(items, (str, bytes, Mapping)):
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


def _wrong_type(items: Any, kinds: tuple[type, ...]) -> str:
    """The name of the first type of items that is not one of these; empty if there is none. Checks each type once."""
    return next((kind.__name__ for kind in dict.fromkeys(map(type, items)) if not issubclass(kind, kinds)), "")


def _tuples(stream: StreamDefinition, items: Any, given: dict[str, Any], now: float) -> pa.RecordBatch:
    table = _as_table(stream, items)
    if table is not None:
        arrays, bad = _from_table(stream, table)
        raw: Callable[[int], bytes] = lambda row: _json(table.slice(row, 1).to_pylist()[0])  # noqa: E731
    else:
        arrays, bad = _from_dicts(stream, items)
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


def _columns(items: Sequence[Any], names: Sequence[str], plain: bool) -> tuple[list[list[Any]], bool]:
    """The values of the declared columns, and whether items may have other columns."""
    if plain:  # other mappings may compute missing keys
        with suppress(KeyError):
            columns = [list(map(itemgetter(name), items)) for name in names]
            return columns, sum(map(len, items)) > len(names) * len(items)
    return [[row.get(name) for row in items] for name in names], True


def _from_dicts(stream: StreamDefinition, items: Sequence[Any]) -> tuple[list[pa.Array], Bad]:
    """Takes some items at a time, which stay in the processor's cache while they are read several times."""
    if len(items) <= TOGETHER:
        return _from_few_dicts(stream, items)
    portions: list[list[pa.Array]] = []
    bad: Bad = {}
    for start in range(0, len(items), TOGETHER):
        arrays, wrong = _from_few_dicts(stream, items[start : start + TOGETHER])
        portions.append(arrays)
        bad |= {start + row: reason for row, reason in wrong.items()}
    return [pa.concat_arrays(parts) for parts in zip(*portions, strict=True)], bad


def _from_few_dicts(stream: StreamDefinition, items: Sequence[Any]) -> tuple[list[pa.Array], Bad]:
    plain = countOf(map(type, items), dict) == len(items)
    if not plain and (wrong := _wrong_type(items, (Mapping,))):
        raise QueryError(f"stream {stream.name} accepts tuples as dicts, not {wrong}")
    names = [name for name, _ in stream.columns]
    columns, may_have_others = _columns(items, names, plain)
    converted = (convert_list(values, kind) for values, (_, kind) in zip(columns, stream.columns, strict=True))
    arrays, bad = side_by_side(list(zip(names, converted, strict=True)))
    declared = set(names)
    if may_have_others and set().union(*items) - declared:
        for row, item in enumerate(items):
            if unknown := [name for name in item if name not in declared]:
                bad[row] = f"unknown column {shown(unknown[0])} with value {shown(item[unknown[0]])}"
    return arrays, bad
