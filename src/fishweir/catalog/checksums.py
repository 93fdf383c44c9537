"""Checksums of the catalog's rows: SQLite detects damage to its structure, but not a flipped bit in a value.

Each table has a generated column `sum`, which SQLite computes from the other columns on every write, so writers do not
have to handle it. Reads that results depend on verify it (`Connection.whole`); the start of the job and `fishweir
check` verify all rows. Other databases have page checksums, so there is no such column.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import xxhash

from fishweir.catalog.schema import columns_of
from fishweir.errors import HomeError

SUM = "sum"
WRITTEN, NOW = "row_sum", "sum_now"
"""One function under two names, so that SQLite never uses the stored value instead of computing it."""
RESTORE = "restore catalog.db (with its -wal file) from a backup of this home, together with the rest of it"


def with_checksum(definition: str) -> str:
    """The statement that creates a table, with its generated column."""
    column = f"{SUM} bigint generated always as ({WRITTEN}({', '.join(columns_of(definition))})) stored"
    head, constraint, rest = definition.partition(",\n    primary key")
    return f"{head},\n    {column}{constraint}{rest}" if constraint else f"{head[:-2]},\n    {column}\n)"


def add_functions(connection: sqlite3.Connection) -> None:
    for name in (WRITTEN, NOW):
        connection.create_function(name, -1, _sum, deterministic=True)


def verified(rows: Sequence[Any], table: str, place: str) -> Sequence[Any]:
    """Returns rows that were selected with `whole`; raises a HomeError if one is damaged."""
    for row in rows:
        if not row.whole:
            raise damaged_row(place, table, row)
    return rows


def damaged_row(place: str, table: str, row: Any) -> HomeError:
    return HomeError(f"the catalog {place} is damaged (row {row[0]} of {table}: checksum mismatch): {RESTORE}")


def _sum(*values: Any) -> int:
    return xxhash.xxh3_64_intdigest(repr(values).encode()) >> 1
