"""Rows of CSV, JSON Lines and Parquet files as tuples, in batches of bounded size.

An invalid row becomes a problem entry in its place: the reason names file, line and column, and the raw text is kept.
Extra columns of a file are ignored, missing ones are NULL.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fishweir.algebra.nodes import StreamDefinition
from fishweir.intake.convert import convert, side_by_side
from fishweir.intake.parsing import REFUSED, Parse, parse_csv, parse_json
from fishweir.intake.schema import file_problem, tuple_batch
from fishweir.intake.sources.lines import BLOCK, csv_rows, plain_rows
from fishweir.intake.sources.sections import BOM, Section

PARQUET_ROWS = 65_536
UTF16 = (b"\xff\xfe", b"\xfe\xff")

RowTexts = Callable[[bytes], list[tuple[int, bytes]]]


def csv_batches(stream: StreamDefinition, section: Section, now: float) -> Iterator[pa.RecordBatch]:
    """Rows of a CSV file; its first line is a header if it has the name of a declared column."""
    parse, path = None, section.path
    for line, block in _text_blocks(section, quoted=True):
        if isinstance(block, str):
            yield file_problem(stream, path, block, now)
            return
        if parse is None:
            names, header = _csv_fields(stream, _first_line(path))
            parse = partial(parse_csv, stream, names)
            if line == 1:
                line, block = line + block[:header].count(b"\n"), block[header:]
        if block.strip():
            yield _block_batch(stream, path, now, parse, csv_rows, line, block)


def json_batches(stream: StreamDefinition, section: Section, now: float) -> Iterator[pa.RecordBatch]:
    """Rows of a JSON Lines file: one object per line."""
    for line, block in _text_blocks(section, quoted=False):
        if isinstance(block, str):
            yield file_problem(stream, section.path, block, now)
            return
        if block.strip():
            yield _block_batch(stream, section.path, now, partial(parse_json, stream), plain_rows, line, block)


def _text_blocks(section: Section, quoted: bool) -> Iterator[tuple[int, bytes | str]]:
    """Blocks with their first line, without a byte order mark; or, as a str, the reason why there are none."""
    with section.path.open("rb") as file:
        is_utf16 = file.read(2) in UTF16
    if is_utf16:
        yield 1, "the file is UTF-16, expected UTF-8"
    else:
        yield from section.blocks(quoted)


def _first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline(BLOCK).removeprefix(BOM)


def _block_batch(
    stream: StreamDefinition, path: Path, now: float, parse: Parse, texts: RowTexts, line: int, block: bytes
) -> pa.RecordBatch:
    arrays, bad = parse(block)
    rows = texts(block) if bad else []
    if len(rows) != len(arrays[0]):  # Arrow found different rows, for example if a lone \r ends a line
        rows = [(0, b"")] * len(arrays[0])
    reasons = {row: f"{path}, line {line + rows[row][0]}: {reason}" for row, reason in bad.items()}
    return tuple_batch(stream, arrays, reasons, lambda row: rows[row][1], now)


def _csv_fields(stream: StreamDefinition, block: bytes) -> tuple[list[str], int]:
    """The names of a CSV file's fields, and the number of bytes of its header.

    A field that is not declared, or is repeated, gets a name that no column has.
    """
    declared = [name for name, _ in stream.columns]
    first = block.split(b"\n", 1)[0]
    try:
        fields = [field.strip() for field in next(csv.reader([first.decode("utf-8", "replace").strip()]), [])]
    except csv.Error:  # a field too long for a name
        fields = []
    if not set(fields) & set(declared):
        return declared, 0
    names = [f if f in declared and f not in fields[:i] else f"#{i}" for i, f in enumerate(fields)]
    return names, min(len(first) + 1, len(block))


def parquet_batches(stream: StreamDefinition, path: Path, now: float) -> Iterator[pa.RecordBatch]:
    """Rows of a Parquet file; an unreadable remainder becomes one problem entry at the end."""
    done = 0
    with path.open("rb") as file:
        try:
            parquet = pq.ParquetFile(file)
            names = [n for n, _ in stream.columns if n in parquet.schema_arrow.names]
            for batch in parquet.iter_batches(PARQUET_ROWS, columns=names):
                yield _parquet_batch(stream, path, now, batch, done)
                done += batch.num_rows
        except REFUSED as error:
            yield file_problem(stream, path, f"after {done} rows: not readable as Parquet: {error}", now)


def _parquet_batch(
    stream: StreamDefinition, path: Path, now: float, batch: pa.RecordBatch, before: int
) -> pa.RecordBatch:
    names, count = set(batch.schema.names), batch.num_rows
    arrays, bad = side_by_side(
        [(n, convert(batch.column(n) if n in names else pa.nulls(count), kind)) for n, kind in stream.columns]
    )
    reasons = {row: f"{path}, row {before + row + 1}: {reason}" for row, reason in bad.items()}

    def raw(row: int) -> bytes:
        return json.dumps(batch.slice(row, 1).to_pylist()[0], default=str).encode()

    return tuple_batch(stream, arrays, reasons, raw, now)
