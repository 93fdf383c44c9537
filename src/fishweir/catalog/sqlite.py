"""SQLite, called directly: the catalog of a home unless another database is chosen.

Connections are kept open and reused. Readers do not wait for writers; writers wait for each other. An error of the
file, as opposed to one of a statement, is raised as a HomeError that says what to do.
"""

from __future__ import annotations

import errno
import json
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fishweir.catalog.checksums import RESTORE, Column, add_functions, damaged_row, whole_test, with_checksum
from fishweir.catalog.database import MANY, SQLITE, Connection, Database, Rows
from fishweir.catalog.schema import definitions
from fishweir.errors import CannotWrite, HomeError

PATIENCE = 60
"""Seconds to wait for another process's write."""
DAMAGE = (sqlite3.DatabaseError, sqlite3.OperationalError, UnicodeDecodeError)
"""What SQLite raises for a damaged file, in which names and messages may no longer be valid text."""
NOT_WRITTEN = ("full", "readonly", "disk I/O error")
ROWS_PER_FETCH = 10_000
MOST_VALUES = 999
"""The number of values that a statement may have in every build of SQLite."""


@lru_cache(maxsize=1_000)
def _row_type(names: tuple[str, ...]) -> type[tuple[Any, ...]]:
    """A class of tuples with these columns as attributes. Defining it takes a tenth of the time of a named tuple."""
    columns = {name: property(itemgetter(place)) for place, name in enumerate(names)}
    return type("Row", (tuple,), {**columns, "_mapping": property(lambda row: dict(zip(names, row, strict=True)))})


def _is_shared(column: Sequence[Any]) -> bool:
    return bool(column[0] == column[-1]) and column.count(column[0]) == len(column)


def _rows(cursor: sqlite3.Cursor, rows: list[tuple[Any, ...]]) -> Iterator[Any]:
    return map(_row_type(tuple([column[0] for column in cursor.description])), rows)


class SqliteConnection(Connection):
    def __init__(self, raw: sqlite3.Connection, place: str) -> None:
        self.raw, self.place, self.is_damaged = raw, place, False

    def execute(self, statement: str, **values: Any) -> Rows:
        with self.file_errors():
            cursor = self.raw.execute(*_with_lists(statement, values))
            rows = cursor.fetchall()
            return Rows(_rows(cursor, rows) if rows else (), cursor.rowcount)

    def execute_many(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        with self.file_errors():
            self.raw.executemany(statement, rows)

    def stream(self, statement: str, **values: Any) -> Iterator[Any]:
        with self.file_errors():
            cursor = self.raw.execute(*_with_lists(statement, values))
            while rows := cursor.fetchmany(ROWS_PER_FETCH):
                yield from _rows(cursor, rows)

    def insert_tuples(self, table: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        if len(rows) >= MANY:
            self._insert(table, names, rows, {})
            return
        marks = ", ".join("?" * len(names))
        with self.file_errors():
            self.raw.executemany(f"insert into {table} ({', '.join(names)}) values ({marks})", rows)

    def insert_columns(
        self, table: str, columns: Mapping[str, Sequence[Any]], same: Mapping[str, Any] | None = None
    ) -> None:
        """A value that all rows share is passed once per statement, which takes half of the time."""
        first, *others = columns
        if len(columns[first]) < MANY:
            super().insert_columns(table, columns, same)
            return
        shared = {name: columns[name][0] for name in others if _is_shared(columns[name])}
        own = {name: column for name, column in columns.items() if name not in shared}
        self._insert(table, tuple(own), zip(*own.values(), strict=True), {**shared, **(same or {})})

    def _insert(
        self, table: str, names: Sequence[str], rows: Iterable[tuple[Any, ...]], same: Mapping[str, Any]
    ) -> None:
        """Inserts many rows with each statement: a statement for each row would take twice as long."""
        width, shared = len(names), tuple(same.values())
        most = (MOST_VALUES - len(same)) // width * width
        head = f"insert into {table} ({', '.join([*names, *same])}) select *{', ?' * len(same)} from (values "
        marks = f"({', '.join('?' * width)})"
        values = list(chain.from_iterable(rows))
        with self.file_errors():
            for start in range(0, len(values), most):
                some = values[start : start + most]
                self.raw.execute(f"{head}{', '.join([marks] * (len(some) // width))})", (*shared, *some))

    def columns(self, selected: Sequence[str], of: str, **values: Any) -> list[list[Any]]:
        """Each column as one JSON value, which takes a third of the time of fetching rows."""
        lists = ", ".join(f"json_group_array({one})" for one in selected)
        (found,) = self.execute(f"select {lists} {of}", **values)
        return [json.loads(one) for one in found]

    def is_whole(self, *tables: str) -> str:
        return " and ".join(whole_test(table, self._columns(table)) for table in tables)

    def first_damaged(self, table: str) -> Any:
        """The first damaged row, or None."""
        return self.execute(f"select * from {table} where {self.is_whole(table)} is not 1 limit 1").first()

    def _columns(self, table: str) -> tuple[Column, ...]:
        """The columns that the checksum covers: all but the generated one, which `table_info` does not list."""
        rows = self.execute(f"pragma table_info({table})")
        return tuple(Column(row.name, row.type.lower(), not (row.notnull or row.pk)) for row in rows)

    @contextmanager
    def file_errors(self) -> Iterator[None]:
        """Raises errors of the file as HomeErrors."""
        try:
            yield
        except DAMAGE as error:
            if _is_file_error(error):
                self.is_damaged = True
                raise home_error(self.place, error) from error
            raise


class SqliteDatabase(Database):
    def __init__(self, path: Path, place: str) -> None:
        self.path, self.place, self.address = path, place, f"{SQLITE}{path}"
        self._idle: list[sqlite3.Connection] = []
        self._is_there = self._is_closed = False

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        connection = SqliteConnection(self._acquire(), self.place)
        try:
            yield connection
        finally:
            if connection.is_damaged:
                connection.raw.close()
            else:
                if connection.raw.in_transaction:
                    connection.raw.rollback()
                self._release(connection.raw)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        with self.connect() as connection:
            yield connection
            assert isinstance(connection, SqliteConnection)
            with connection.file_errors():
                connection.raw.commit()

    def has_tables(self) -> bool:
        return self.scalar("select 1 from sqlite_master where name = 'home'") is not None

    def create_tables(self, connection: Connection) -> None:
        """Creates the tables unless another process has created them in the meantime."""
        connection.execute("begin immediate")
        if connection.scalar("select 1 from sqlite_master where name = 'home'") is None:
            for create, *indexes in definitions().values():
                for statement in (with_checksum(create), *indexes):
                    connection.execute(statement)

    def verify(self) -> None:
        with self.connect() as connection:
            assert isinstance(connection, SqliteConnection)
            message = connection.scalar("pragma integrity_check(1)")
            if message != "ok":
                raise HomeError(f"the catalog {self.place} is damaged ({message}): {RESTORE}")
            for table in definitions():
                row = connection.first_damaged(table)
                if row is not None:
                    raise damaged_row(self.place, table, row)

    def scalar(self, statement: str, **values: Any) -> Any:
        """Without a Connection object: twice as fast, and each micro-batch looks up about twenty values."""
        raw = self._acquire()
        try:
            row = raw.execute(statement, values).fetchone()
        except DAMAGE as error:
            raw.close()
            if _is_file_error(error):
                raise home_error(self.place, error) from error
            raise
        self._release(raw)
        return None if row is None else row[0]

    def close(self) -> None:
        """Closes idle connections; those in use are closed when they are released. A connection that stayed open would
        remove the -wal file when finally closed, even if the home has been restored from a backup in the meantime."""
        self._is_closed = True
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _release(self, raw: sqlite3.Connection) -> None:
        if self._is_closed:
            raw.close()
        else:
            self._idle.append(raw)

    def _acquire(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()  # no check of its length: other threads take connections, too
        except IndexError:
            return self._open()

    def _open(self) -> sqlite3.Connection:
        mode = "rw" if self._is_there else "rwc"  # does not recreate a file that has been removed
        raw = None
        try:
            raw = sqlite3.connect(
                f"file:{quote(str(self.path))}?mode={mode}", PATIENCE, check_same_thread=False, uri=True
            )
            add_functions(raw)
            tune(raw)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if raw is not None:
                raw.close()
            raise home_error(self.place, error) from error
        self._is_there = True
        return raw


def tune(raw: sqlite3.Connection) -> None:
    raw.execute("pragma synchronous = normal")
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            raw.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError as error:  # two processes open a new file: SQLite does not wait here
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _is_file_error(error: BaseException) -> bool:
    """Whether an error concerns the file, not a statement or waiting for another process."""
    return type(error) in DAMAGE and "locked" not in str(error)


def home_error(place: str, error: BaseException) -> HomeError:
    if any(words in str(error) for words in NOT_WRITTEN):
        to_do = "free some space, or grant the user of the job write permission; nothing is lost"
        return CannotWrite(errno.ENOSPC, f"the catalog {place} cannot be written ({error}): {to_do}")
    return HomeError(f"the catalog {place} cannot be used ({error}): {RESTORE}")


def _with_lists(statement: str, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The statement with lists passed as one JSON value: a parameter for each value would cost more than the lookup."""
    lists = {name: json.dumps(value) for name, value in values.items() if isinstance(value, list)}
    for name in lists:
        statement = re.sub(rf"\bin :{name}\b", f"in (select value from json_each(:{name}))", statement)
    return statement, values | lists
