"""Checksums of the catalog's rows: SQLite detects damage to its structure, but not a flipped bit in a value.

Each table has a generated column `sum`, which SQLite computes from the other columns on every write, so writers do not
have to handle it. Reads that results depend on verify it; the start of the job and `fishweir check` verify all rows.
Other databases have page checksums, so `sum` is 0 there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
import xxhash
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.compiler import compiles

from fishweir.errors import HomeError

SUM = "sum"
WRITTEN, NOW = "row_sum", "sum_now"
"""One function under two names, so that SQLite never takes the stored value for the computed one."""
RESTORE = "restore catalog.db (with its -wal file) from a backup of this home, together with the rest of it"


class RowChecksum(sa.ColumnElement[int]):
    """What the sum of some columns is, when it is written or by now."""

    inherit_cache = True
    type = sa.BigInteger()
    _traverse_internals = [  # noqa: RUF012
        ("function", sa.sql.visitors.InternalTraversal.dp_string),
        ("columns", sa.sql.visitors.InternalTraversal.dp_clauseelement_list),
    ]

    def __init__(self, function: str, columns: Sequence[sa.ColumnElement[Any]]) -> None:
        self.function, self.columns = function, list(columns)


@compiles(RowChecksum, "sqlite")
def _on_sqlite(element: RowChecksum, compiler: Any, **options: Any) -> str:
    return f"{element.function}({', '.join(compiler.process(column, **options) for column in element.columns)})"


@compiles(RowChecksum)
def _elsewhere(element: RowChecksum, compiler: Any, **options: Any) -> str:
    return "0"


def add_checksums(metadata: sa.MetaData) -> None:
    """Gives each table its column."""
    for table in metadata.tables.values():
        table.append_column(
            sa.Column(SUM, sa.BigInteger, sa.Computed(RowChecksum(WRITTEN, list(table.c)), persisted=True))
        )


def add_functions(connection: sqlite3.Connection) -> None:
    for name in (WRITTEN, NOW):
        connection.create_function(name, -1, _sum, deterministic=True)


def whole(*tables: sa.Table) -> sa.Label[bool]:
    """Whether the rows of some tables that a select joins are as they were written: the column `whole`."""
    return sa.and_(*(table.c[SUM] == _now(table) for table in tables)).label("whole")


def verified(rows: Sequence[Any], table: sa.Table, engine: sa.Engine | sa.Connection) -> Sequence[Any]:
    """Rows that were selected with `whole`; raises where one was damaged."""
    for row in rows:
        if not row.whole:
            raise damaged_row(engine, table, row)
    return rows


def damaged_row(engine: sa.Engine | sa.Connection, table: sa.Table, row: Any) -> HomeError:
    place = (engine if isinstance(engine, sa.Engine) else engine.engine).url.database
    return HomeError(f"the catalog {place} is damaged (row {row[0]} of {table.name} has another checksum): {RESTORE}")


def verify_rows(engine: sa.Engine, metadata: sa.MetaData) -> None:
    """Compares all rows, and the indexes with them; raises the first damage."""
    if engine.dialect.name != "sqlite":
        return
    with engine.connect() as connection:
        (said,) = connection.exec_driver_sql("pragma integrity_check(1)").one()
        if said != "ok":
            raise HomeError(f"the catalog {engine.url.database} is damaged ({said}): {RESTORE}")
        for table in metadata.sorted_tables:
            row = connection.exec_driver_sql(_first_damaged(table)).first()
            if row is not None:
                raise damaged_row(engine, table, row)


@cache
def _first_damaged(table: sa.Table) -> str:
    """As a text: each engine would compile it anew, which takes longer than to ask."""
    damaged = sa.select(table).where(table.c[SUM].is_distinct_from(_now(table)))
    return f"{damaged.compile(dialect=sqlite.dialect())} limit 1"


def _now(table: sa.Table) -> RowChecksum:
    return RowChecksum(NOW, [column for column in table.c if column.name != SUM])


def _sum(*values: Any) -> int:
    return xxhash.xxh3_64_intdigest(repr(values).encode()) >> 1
