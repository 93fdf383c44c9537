"""Columns of number lists as NumPy arrays, for reading result rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fishweir.evaluate.arrays import Ints


def lengths_of(rows: pa.Table, column: str) -> Ints:
    lists = rows.column(column).combine_chunks()
    if not lists.null_count:
        return np.diff(lists.offsets.to_numpy()).astype(np.int64)
    if lists.null_count == len(lists):
        return np.zeros(len(lists), np.int64)
    return lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def flat_of(rows: pa.Table, column: str) -> tuple[Ints, Ints]:
    """All elements of a column of lists, and the row of each."""
    values = values_of(rows, column)
    return np.repeat(np.arange(len(rows)), lengths_of(rows, column)) if len(values) else values, values


def values_of(rows: pa.Table, column: str) -> Ints:
    """All elements of a column of lists."""
    flat = rows.column(column).combine_chunks().flatten()
    return flat.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


def first_of(rows: pa.Table, column: str) -> Ints:
    """The first element of each list, -1 where there is none."""
    found, (row, flat) = np.full(len(rows), -1, np.int64), flat_of(rows, column)
    found[row[::-1]] = flat[::-1]
    return found


def since_of(rows: pa.Table) -> Ints:
    """The version of the catalog when the first document of each row arrived; very high if it does not matter."""
    since = rows.column("since").combine_chunks().fill_null(np.iinfo(np.int64).max)
    return since.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
