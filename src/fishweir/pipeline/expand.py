"""Expanding sets: from match rows to (row, query) pairs, only for those who take them.

In: match rows of one micro-batch and the queries that were dropped. Out: pairs in row order. A query
that was not alive at the version the micro-batch ran with is left out here: segments may hold it still.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.plan.segments import AnyTable
from fishweir.evaluate.plan.source_plan import cached_segment


def expand_rows(rows: pa.Table, plan: Path, dead: Ints, wanted: Ints | None = None) -> tuple[Ints, Ints]:
    """Row indexes and query numbers, sorted; `dead` are query numbers to leave out, `wanted` to keep."""
    found_rows, found_numbers = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for chosen, table in _by_table(rows, plan):
        part = rows.take(pa.array(chosen))
        row, numbers = _of_table(part, table) if wanted is None else _wanted(part, table, wanted)
        found_rows.append(chosen[row])
        found_numbers.append(numbers)
    row, numbers = np.concatenate(found_rows), np.concatenate(found_numbers)
    keep = ~np.isin(numbers, dead)
    row, numbers = row[keep], numbers[keep]
    order = np.lexsort((numbers, row))
    return row[order], numbers[order]


def count_fired(rows: pa.Table, plan: Path, dead: Ints, number: int) -> NDArray[np.float64]:
    """The timestamps of one query's results in these rows."""
    row, _ = expand_rows(rows, plan, dead, np.array([number]))
    found = rows.take(pa.array(row)).select(["stream", "document", "nodes", "timestamp"]).to_pylist()
    once = {(r["stream"], r["document"], tuple(r["nodes"])): r["timestamp"] for r in found}
    return np.array(list(once.values()), dtype=np.float64)


def _by_table(rows: pa.Table, plan: Path) -> list[tuple[Ints, AnyTable]]:
    if not len(rows):
        return []
    segments = rows.column("segment").combine_chunks().dictionary_encode()
    tables = rows.column("table").to_numpy().astype(np.int64)
    keys = segments.indices.to_numpy().astype(np.int64) * (tables.max() + 1) + tables
    found = []
    for key in np.unique(keys):
        chosen = np.flatnonzero(keys == key)
        segment = cached_segment(plan, segments.dictionary[int(key // (tables.max() + 1))].as_py())
        found.append((chosen, segment.tables[int(tables[chosen[0]])]))
    return found


def _of_table(rows: pa.Table, table: AnyTable) -> tuple[Ints, Ints]:
    slice_rows, lo, hi = _slices(rows)
    source, positions = expand(lo, hi)
    member_rows, members = _flat(rows, "members")
    return (
        np.concatenate([slice_rows[source], member_rows]),
        np.concatenate([np.asarray(table.members)[positions], members]),
    )


def _wanted(rows: pa.Table, table: AnyTable, wanted: Ints) -> tuple[Ints, Ints]:
    """The pairs of some queries, found by their positions: the sets are not expanded."""
    slice_rows, lo, hi = _slices(rows)
    found_rows, found = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for number in wanted if len(lo) else []:
        for position in table.positions_of(int(number)):
            inside = slice_rows[(lo <= position) & (position < hi)]
            found_rows.append(inside)
            found.append(np.full(len(inside), number))
    member_rows, members = _flat(rows, "members")
    keep = np.isin(members, wanted)
    return np.concatenate([*found_rows, member_rows[keep]]), np.concatenate([*found, members[keep]])


def _slices(rows: pa.Table) -> tuple[Ints, Ints, Ints]:
    row, flat = _flat(rows, "slices")
    return row[::2], flat[::2], flat[1::2]


def _flat(rows: pa.Table, column: str) -> tuple[Ints, Ints]:
    lists = rows.column(column).combine_chunks()
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    return np.repeat(np.arange(len(rows)), lengths), lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
