"""Result rows: the one format in which every kind of query says what it found.

A row is a document, other documents, and the *set* of queries they satisfy. In a selection there are no others. In a
join of two streams, `each` of the others makes a result of its own: one document and all it joins alike are one row. In
a join of several streams, the others are one document for each remaining side. In an annotation join, they are the
items collected, with the join that each belongs to. The set of queries is slices of a group of a segment, a prefix of a
named set that is stored once, or a list: ten thousand queries are one row. Rows are expanded when they are read.
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
"""`stream`, `document` and `side` are those of the row's own document, `other_streams` and `others` of the rest: one
stream for all if `each`, else one for each other. `order` has the sides by time. `since` is the version of the catalog
when the earliest document arrived: a query registered after that does not see the row; null where it does not matter.
`nodes` are the output nodes of all sides, null where each document binds them just once. The queries are `slices`
(from, to) of positions in a group, and the first `count` of the `set`, and `members`."""


@dataclass(frozen=True)
class ResultRows:
    """Some rows, how many results they stand for, and the members of the sets that they name."""

    batch: pa.RecordBatch
    results: int
    sets: Mapping[str, Ints] = field(default_factory=dict)


def result_batch(size: int, **columns: Any) -> pa.RecordBatch:
    """A batch of rows; a column that is not given is null, a plain value stands for all rows."""
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
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, pa.int64()))


def rows_to_lists(matrix: Ints) -> pa.ListArray:
    """One list for each row of a matrix."""
    return to_lists(np.arange(len(matrix) + 1) * matrix.shape[1], matrix.ravel())
