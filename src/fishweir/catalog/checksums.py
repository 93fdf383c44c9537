"""Checksums of the catalog's rows: SQLite detects damage to its structure, but not a flipped bit in a value.

Each table has a generated column `sum`, which SQLite computes from the other columns on every write, so writers do not
have to handle it. Reads that results depend on verify it (`Connection.whole`); the start of the job and `fishweir
check` verify all rows. Other databases have page checksums, so there is no such column.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import xxhash

from fishweir.catalog.schema import columns_of
from fishweir.errors import HomeError

SUM = "sum"
WRITTEN, NOW, OF_TEXT = "row_sum", "sum_now", "text_sum"
"""Functions. The first two are the same, so that SQLite never uses the stored value instead of computing it."""
INTEGERS = ("integer", "bigint", "boolean")
"""The types of columns with integers."""
RESTORE = "restore catalog.db (with its -wal file) from a backup of this home, together with the rest of it"


def with_checksum(definition: str) -> str:
    """The statement that creates a table, with its generated column."""
    column = f"{SUM} bigint generated always as ({WRITTEN}({', '.join(columns_of(definition))})) stored"
    head, constraint, rest = definition.partition(",\n    primary key")
    return f"{head},\n    {column}{constraint}{rest}" if constraint else f"{head[:-2]},\n    {column}\n)"


def add_functions(connection: sqlite3.Connection) -> None:
    for name in (WRITTEN, NOW):
        connection.create_function(name, -1, _sum, deterministic=True)
    connection.create_function(OF_TEXT, 1, _sum_of_text, deterministic=True)


class Column(NamedTuple):
    name: str
    type: str
    nullable: bool


@lru_cache(maxsize=1_000)
def whole_test(table: str, columns: tuple[Column, ...]) -> str:
    """An SQL expression: whether a row is undamaged.

    For usual values, SQLite assembles the text that the checksum is computed from: passing all values to a function
    takes half as long again or more. If the sum differs, a value may be unusual (such as a text that Python writes with
    an escape), and the function decides.
    """
    sum, values = f"{table}.{SUM}", ", ".join(f"{table}.{column.name}" for column in columns)
    usual, text = _usual_text(table, columns)
    return f"case when {usual} and {sum} = {OF_TEXT}({text}) then 1 else {sum} = {NOW}({values}) end"


def _usual_text(table: str, columns: tuple[Column, ...]) -> tuple[str, str]:
    """Two SQL expressions: whether a row has usual values, and its text if it has. Usual are integers, texts that need
    no escape, zero for other numbers, and null for other optional values.

    A text is read up to its first zero byte. Damage that adds one makes it longer and so moves the stored checksum.
    """
    usual, numbers, texts, shown, values = list[str](), ["0", "0"], ["''", "''"], list[str](), list[str]()
    for name, type, nullable in ((f"{table}.{column.name}", column.type, column.nullable) for column in columns):
        if type in INTEGERS:
            numbers.append(f"ifnull({name}, 0)" if nullable else name)
            shown.append("%s")
            values.append(f"ifnull({name}, 'None')" if nullable else name)
        elif nullable or type == "float":
            usual.append(f"{name} is null" if nullable else f"{name} = 0.0")
            shown.append("None" if nullable else "0.0")
        else:
            texts.append(name)
            shown.append("''%s''")
            values.append(name)
    usual += [f"max({', '.join(numbers)}) < ''", f"max({', '.join(texts)}) < x''"]  # numbers < texts < blobs
    arguments = [f"'({', '.join(shown)}{',' if len(columns) == 1 else ''})'", *values]
    text = f"printf({', '.join(arguments)})"
    if "''%s''" in text:  # Python writes a text with quotes in double quotes; the last text of a row often has some
        before, after = text.rsplit("''%s''", 1)
        text = f"""case when instr({texts[-1]}, '''') then {before}"%s"{after} else {text} end"""
    return " and ".join(usual), f"cast({text} as blob)"


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


def _sum_of_text(text: bytes) -> int:
    return xxhash.xxh3_64_intdigest(text) >> 1
