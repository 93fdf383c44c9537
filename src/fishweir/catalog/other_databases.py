"""PostgreSQL through SQLAlchemy, with the same statements as SQLite."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from fishweir.catalog.database import Connection, Database, Rows
from fishweir.catalog.schema import definitions

ROWS_PER_FETCH = 10_000


class OtherConnection(Connection):
    def __init__(self, raw: sa.Connection, place: str) -> None:
        self.raw, self.place = raw, place

    def execute(self, statement: str, **values: Any) -> Rows:
        result = self.raw.execute(_text(statement, values))
        return Rows(result.all() if result.returns_rows else (), result.rowcount)

    def execute_many(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self.raw.execute(sa.text(statement), [dict(row) for row in rows])

    def stream(self, statement: str, **values: Any) -> Iterator[Any]:
        streaming = self.raw.execution_options(yield_per=ROWS_PER_FETCH)
        yield from streaming.execute(_text(statement, values))

    def insert_tuples(self, table: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        marks = ", ".join(f":{name}" for name in names)
        values = [dict(zip(names, row, strict=True)) for row in rows]
        self.execute_many(f"insert into {table} ({', '.join(names)}) values ({marks})", values)

    def columns(self, selected: Sequence[str], of: str, **values: Any) -> list[list[Any]]:
        rows = self.execute(f"select {', '.join(selected)} {of}", **values)
        return [[row[place] for row in rows] for place in range(len(selected))]

    def is_whole(self, *tables: str) -> str:
        return "true"  # they have their own checksums


class OtherDatabase(Database):
    def __init__(self, url: str) -> None:
        self.engine = sa.create_engine(url)
        self.place = self.engine.url.render_as_string()
        self.address = self.engine.url.render_as_string(hide_password=False)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        with self.engine.connect() as raw:
            yield OtherConnection(raw, self.place)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        with self.engine.begin() as raw:
            yield OtherConnection(raw, self.place)

    def has_tables(self) -> bool:
        return sa.inspect(self.engine).has_table("home")

    def create_tables(self, connection: Connection) -> None:
        for statements in definitions().values():
            for statement in statements:
                connection.execute(_for_postgresql(statement))

    def verify(self) -> None:
        """Does nothing: these databases verify their pages themselves."""

    def close(self) -> None:
        self.engine.dispose()


def _for_postgresql(definition: str) -> str:
    """The definition for PostgreSQL, where `integer` has 32 bits and only a sequence numbers a primary key. Another
    process may create the tables at the same time."""
    definition = re.sub(r"^create (table|(?:unique )?index)", r"create \1 if not exists", definition)
    numbered = re.sub(r"integer (not null )?primary key( autoincrement)?", "bigserial primary key", definition)
    return re.sub(r"\binteger\b", "bigint", numbered)


def _text(statement: str, values: dict[str, Any]) -> sa.TextClause:
    """The statement, with those values bound that it uses."""
    named = {name: value for name, value in values.items() if re.search(rf":{name}\b", statement)}
    return sa.text(statement).bindparams(
        *(sa.bindparam(name, value, expanding=isinstance(value, list)) for name, value in named.items())
    )
