"""Bulk inserts, and lookups of many values with one statement."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

ROWS_PER_STATEMENT = 5_000
"""Values per lookup statement."""


def insert_tuples(
    connection: sa.Connection, table: sa.Table, names: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """By the driver's own executemany: SQLAlchemy's costs more than SQLite's work."""
    if not rows:
        return
    compiled = sa.insert(table).values({name: sa.bindparam(name) for name in names}).compile(dialect=connection.dialect)
    if compiled.positional and compiled.positiontup == list(names):
        connection.exec_driver_sql(str(compiled), rows)  # type: ignore[arg-type]
    else:
        connection.execute(sa.insert(table), [dict(zip(names, row, strict=True)) for row in rows])


def insert_rows(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """The same for rows by name, which all have the same columns."""
    names = [column.name for column in table.columns if rows and column.name in rows[0]]
    insert_tuples(connection, table, names, [tuple([row[name] for name in names]) for row in rows])


def among(connection: sa.Connection, column: sa.Column[Any], texts: Sequence[str]) -> sa.ColumnElement[bool]:
    """Whether a column is one of some texts. SQLite gets them as one value: a parameter for each would cost more than
    its look-up."""
    if connection.dialect.name != "sqlite":
        return column.in_(texts)
    given = sa.func.json_each(json.dumps(texts)).table_valued("value")
    return column.in_(sa.select(given.c.value))


def chunks(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """So many at a time as one statement takes."""
    return (values[i : i + ROWS_PER_STATEMENT] for i in range(0, len(values), ROWS_PER_STATEMENT))
