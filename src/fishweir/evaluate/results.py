"""Result rows, the common output format of all kinds.

A row consists of a document, other documents, and the *set* of queries they satisfy. A selection has no other
documents. In a join of two streams, each of the others makes a separate result (`each`): a document and all documents
that it joins with in the same way form one row. In a join of several streams, the others are one document for each
remaining side. In an annotation join, they are the collected items, with the join that each belongs to. The set of
queries is given by slices of a group of a segment, by a prefix of a named set that is stored once, or by a list, so ten
thousand queries need only one row. Rows are expanded when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints

NUMBERS = pa.list_(pa.int64())

RESULT = pa.schema([
    ("stream", pa.int32()), ("document", pa.int64()), ("side", pa.int8()),
    ("other_streams", NUMBERS), ("others", NUMBERS), ("each", pa.bool_()), ("joins", NUMBERS), ("order", NUMBERS),
    ("timestamp", pa.float64()), ("since", pa.int64()), ("nodes", NUMBERS),
    ("segment", pa.string()), ("group", pa.int32()), ("slices", NUMBERS),
    ("set", pa.string()), ("count", pa.int64()), ("members", NUMBERS),
])  # fmt: skip
"""`stream`, `document` and `side` describe the row's own document. `other_streams` and `others` describe the rest: one
stream for all if `each`, else one stream per document. `order` lists the sides by time. `since` is the catalog version
when the earliest document arrived. Queries registered after it do not see the row. It is null where it does not matter.
`nodes` are the output nodes of all sides, null if each document binds them exactly once. The queries are the `slices`
(from, to) of positions in a group, the first `count` members of the `set`, and `members`."""


@dataclass(frozen=True)
class ResultRows:
    """Rows, the number of results they represent, and the members of the sets they refer to."""

    batch: pa.RecordBatch
    results: int
    sets: Mapping[str, Ints] = field(default_factory=dict)


def result_batch(size: int, **columns: Any) -> pa.RecordBatch:
    """A batch of rows. Omitted columns are null. A scalar applies to all rows."""
    return pa.RecordBatch.from_arrays(
        [_array(size, columns.get(column.name), column.type) for column in RESULT], schema=RESULT
    )


def _array(size: int, value: Any, kind: pa.DataType) -> pa.Array:
    if value is None:
        return pa.nulls(size, kind)
    if isinstance(value, pa.Array):
        return value
    if isinstance(value, np.ndarray):
        return pa.array(value, kind)
    return pa.repeat(pa.scalar(value, kind), size)


def to_lists(offsets: Ints, values: NDArray[np.integer[Any]]) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values, pa.int64()))


def rows_to_lists(matrix: Ints) -> pa.ListArray:
    """One list for each row of a matrix."""
    return to_lists(np.arange(len(matrix) + 1) * matrix.shape[1], matrix.ravel())
