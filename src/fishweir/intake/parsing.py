"""Parses blocks of CSV and JSON Lines into typed columns with Arrow.

A block that Arrow rejects is split until only the neighbourhood of the invalid row is left for Python. An invalid row
keeps its position: NULL in all columns, and an error message.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from fishweir.algebra.nodes import StreamDefinition
from fishweir.intake.convert import PIECES, SMALL, Bad, convert, convert_values, side_by_side
from fishweir.intake.schema import KINDS
from fishweir.intake.sources.lines import OTHER_LINE, csv_rows, line_count, plain_rows

REFUSED = (pa.ArrowException, ValueError, OSError)

Rows = tuple[list[pa.Array], Bad]
"""One array per declared column, and the reasons of the invalid rows."""

Parse = Callable[[bytes], Rows]


def parse_csv(stream: StreamDefinition, names: list[str], block: bytes) -> Rows:
    """The rows of a block with these fields. A row with a wrong number of fields is invalid."""
    try:
        block.decode()  # Arrow's handler of invalid rows must be able to decode them
        table, wrong = _read_csv(block, names, [n for n, _ in stream.columns if n in names])
    except REFUSED as error:
        rows = [text for _, text in csv_rows(block)]
        if len(rows) <= 1:
            return [pa.nulls(1, KINDS[kind]) for _, kind in stream.columns], {0: f"not CSV: {error}"}
        return _joined([parse_csv(stream, names, piece) for piece in _pieces(rows)])
    order = _with_gaps(table.num_rows, wrong)

    def column(name: str) -> pa.Array:
        if name not in table.schema.names:
            return pa.nulls(len(order))
        whole = table.column(name).combine_chunks()
        return whole.take(order) if wrong else whole

    arrays, bad = side_by_side([(name, convert(column(name), kind)) for name, kind in stream.columns])
    return arrays, bad | wrong


def _with_gaps(good: int, wrong: Bad) -> pa.Array:
    """For each row of the block, its position among the valid rows; NULL for an invalid one."""
    count = good + len(wrong)
    index = np.full(count, -1)
    index[np.delete(np.arange(count), list(wrong))] = np.arange(good)
    return pa.array(index, mask=index < 0)


def _read_csv(block: bytes, names: list[str], columns: list[str]) -> tuple[pa.Table, Bad]:
    wrong: Bad = {}

    def set_aside(row: Any) -> str:
        wrong[row.number - 1] = f"{row.actual_columns} fields, expected {row.expected_columns}"
        return "skip"

    table = pa_csv.read_csv(
        io.BytesIO(block),
        pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1),
        pa_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=set_aside),
        pa_csv.ConvertOptions(
            column_types={name: pa.binary() for name in names},
            include_columns=columns,
            strings_can_be_null=True,
            null_values=[""],
        ),
    )
    return table, wrong


def parse_json(stream: StreamDefinition, block: bytes) -> Rows:
    """The objects of a block, one per line: parsed by Arrow if possible, otherwise in pieces and finally by Python."""
    count = line_count(block)
    has_moments = any(kind == "timestamp" for _, kind in stream.columns)
    for moments in (pa.string(), pa.float64()) if has_moments else (pa.string(),):
        try:
            table = _read_json(stream, block, moments)
        except REFUSED:
            continue
        if table.num_rows == count:
            return side_by_side([(n, convert(table.column(n), kind)) for n, kind in stream.columns])
    rows = [text for _, text in plain_rows(block)]
    if count <= SMALL:
        return _parse_lines(stream, rows)
    return _joined([parse_json(stream, piece) for piece in _pieces(rows)])


def _read_json(stream: StreamDefinition, block: bytes, moments: pa.DataType) -> pa.Table:
    block.decode()  # Arrow does not check the encoding
    if OTHER_LINE.search(block):  # Arrow treats `null` as a row, or crashes on it (apache/arrow#47409)
        raise ValueError("a line that is not an object")
    schema = pa.schema([(n, moments if kind == "timestamp" else KINDS[kind]) for n, kind in stream.columns])
    return pa_json.read_json(
        io.BytesIO(block),
        pa_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )


def _parse_lines(stream: StreamDefinition, rows: list[bytes]) -> Rows:
    objects: list[dict[str, Any]] = []
    broken: Bad = {}
    for row, text in enumerate(rows):
        try:
            value = json.loads(text)
            if not isinstance(value, dict):
                raise ValueError("expected an object")
        except (ValueError, RecursionError) as error:
            broken[row], value = f"not JSON: {error}", {}
        objects.append(value)
    columns = [(n, convert_values([o.get(n) for o in objects], kind)) for n, kind in stream.columns]
    arrays, bad = side_by_side(columns)
    return arrays, bad | broken


def _pieces(rows: list[bytes]) -> Iterator[bytes]:
    size = max(1, -(-len(rows) // PIECES))
    for start in range(0, len(rows), size):
        yield b"\n".join(rows[start : start + size]) + b"\n"


def _joined(parts: list[Rows]) -> Rows:
    bad: Bad = {}
    start = 0
    for arrays, wrong in parts:
        bad |= {start + row: reason for row, reason in wrong.items()}
        start += len(arrays[0])
    columns = zip(*(arrays for arrays, _ in parts), strict=True)
    return [pa.concat_arrays(list(pieces)) for pieces in columns], bad
