"""The database of the catalog: statements are SQL texts with named parameters, in one dialect for all databases.

In: the path of a SQLite file or an SQLAlchemy URL. Out: connections. SQLite is called directly (`sqlite.py`). Other
databases are reached through SQLAlchemy (`other_databases.py`), which is imported only for them: that takes 0.2 s, and
a short command should take less. A list can be a parameter: `where name in :names`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

VALUES_PER_STATEMENT = 10_000
"""Values per lookup statement."""
MANY = 100
"""The number of rows from which several are inserted with one statement."""
SQLITE = "sqlite:///"


class Rows(list[Any]):
    """The rows of a result, with their columns as attributes and items; `changed` is the number of changed rows."""

    def __init__(self, rows: Iterable[Any] = (), changed: int = 0) -> None:
        super().__init__(rows)
        self.changed = changed

    def first(self) -> Any:
        """The first row, or None."""
        return self[0] if self else None


class Connection(ABC):
    place: str
    """The location of the database, for messages."""

    @abstractmethod
    def execute(self, statement: str, **values: Any) -> Rows: ...

    @abstractmethod
    def execute_many(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Executes a statement once for each row of values."""

    @abstractmethod
    def stream(self, statement: str, **values: Any) -> Iterator[Any]:
        """The rows of a result, fetched in chunks."""

    @abstractmethod
    def insert_tuples(self, table: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None: ...

    @abstractmethod
    def columns(self, selected: Sequence[str], of: str, **values: Any) -> list[list[Any]]:
        """The columns of a result without an object for each row: integers, texts and nulls, but no floats, whose last
        digits are lost in some databases. `of` is the statement from its `from` on."""

    @abstractmethod
    def is_whole(self, *tables: str) -> str:
        """An expression: whether the rows of these tables are undamaged."""

    def whole(self, *tables: str) -> str:
        """The same for a select list, as the column `whole`."""
        return f"{self.is_whole(*tables)} as whole"

    def scalars(self, statement: str, **values: Any) -> list[Any]:
        """The first value of each row."""
        return [row[0] for row in self.execute(statement, **values)]

    def scalar(self, statement: str, **values: Any) -> Any:
        """The first value of the first row, or None."""
        row = self.execute(statement, **values).first()
        return None if row is None else row[0]

    def insert_columns(
        self, table: str, columns: Mapping[str, Sequence[Any]], same: Mapping[str, Any] | None = None
    ) -> None:
        """Inserts rows, given as columns; `same` contains the values that all rows share."""
        shared = same or {}
        rows = [(*row, *shared.values()) for row in zip(*columns.values(), strict=True)]
        self.insert_tuples(table, (*columns, *shared), rows)

    def insert_rows(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Inserts rows that all have the same columns."""
        if rows:
            self.insert_tuples(table, tuple(rows[0]), [tuple(row.values()) for row in rows])

    def insert(self, table: str, **row: Any) -> None:
        self.insert_rows(table, [row])


class Database(ABC):
    """Thread-safe: each connection has one user at a time."""

    place: str
    address: str
    """The URL by which another process can open it."""

    @abstractmethod
    def connect(self) -> AbstractContextManager[Connection]:
        """A connection for reading."""

    @abstractmethod
    def begin(self) -> AbstractContextManager[Connection]:
        """A transaction: it is committed at the end of the block, or rolled back on an exception."""

    @abstractmethod
    def has_tables(self) -> bool: ...

    @abstractmethod
    def create_tables(self, connection: Connection) -> None: ...

    @abstractmethod
    def verify(self) -> None:
        """Reads all rows and raises a HomeError if one is damaged."""

    @abstractmethod
    def close(self) -> None: ...

    def scalar(self, statement: str, **values: Any) -> Any:
        """The first value of the first row, or None. Parameters cannot be lists."""
        with self.connect() as connection:
            return connection.scalar(statement, **values)


def open_database(url: str | Path) -> Database:
    if isinstance(url, Path) or url.startswith(SQLITE):
        from fishweir.catalog.sqlite import SqliteDatabase

        return SqliteDatabase(Path(str(url).removeprefix(SQLITE)), str(url))
    from fishweir.catalog.other_databases import OtherDatabase

    return OtherDatabase(url)


def chunks(values: Sequence[Any], size: int = VALUES_PER_STATEMENT) -> Iterator[list[Any]]:
    """The values in chunks of the size that one statement takes."""
    return (list(values[i : i + size]) for i in range(0, len(values), size))
