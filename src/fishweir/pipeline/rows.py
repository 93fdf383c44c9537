"""The rows of the results table: what a match and an entry set aside look like in Parquet.

A match row is one document with one binding of the output nodes and the *set* of queries that want
it: slices of a table of a segment, or a list of query numbers. Ten thousand queries are one row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from fishweir.evaluate.select.match import Matches, to_lists
from fishweir.pipeline.chunks import Chunk

NUMBERS = pa.list_(pa.int64())
MATCH = pa.schema([
    ("stream", pa.int32()), ("document", pa.int64()), ("id", pa.string()), ("timestamp", pa.float64()),
    ("segment", pa.string()), ("table", pa.int32()), ("nodes", NUMBERS), ("slices", NUMBERS), ("members", NUMBERS),
])  # fmt: skip
ASIDE = pa.schema([
    ("stream", pa.int32()), ("document", pa.int64()), ("id", pa.string()), ("reason", pa.string()),
])  # fmt: skip


def match_batch(stream: int, chunk: Chunk, segment: str, table: int, matches: Matches) -> pa.RecordBatch:
    size, documents = len(matches), matches.documents
    width = matches.nodes.shape[1]
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(pa.scalar(stream, pa.int32()), size),
            pa.array(np.array(chunk.numbers, dtype=np.int64)[documents]),
            pa.array(chunk.ids, pa.string()).take(pa.array(documents)),
            pa.array(np.array(chunk.timestamps)[documents]),
            pa.repeat(segment, size),
            pa.repeat(pa.scalar(table, pa.int32()), size),
            to_lists(np.arange(size + 1) * width, matches.nodes.ravel()),
            to_lists(matches.slice_offsets, matches.slices),
            to_lists(matches.member_offsets, matches.members),
        ],
        schema=MATCH,
    )


def aside_batch(stream: int, rows: Sequence[tuple[int, str | None, str]]) -> pa.RecordBatch:
    numbers, ids, reasons = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(pa.scalar(stream, pa.int32()), len(rows)),
            pa.array(numbers, pa.int64()),
            pa.array(ids, pa.string()),
            pa.array(reasons, pa.string()),
        ],
        schema=ASIDE,
    )
