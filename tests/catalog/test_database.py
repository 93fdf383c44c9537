"""The database of the catalog: connections, transactions, lists as parameters, and threads."""

from __future__ import annotations

import re
import sqlite3
import threading
from pathlib import Path

import pytest

from fishweir import HomeError
from fishweir.catalog.catalog import Catalog
from fishweir.catalog.database import Database
from fishweir.catalog.other_databases import _for_postgresql
from fishweir.catalog.schema import columns_of, definitions


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Catalog(tmp_path / "catalog.db").database


def test_a_list_stands_for_its_values(database: Database) -> None:
    with database.begin() as connection:
        connection.insert_tuples("facts", ("name", "value"), [(f"it's {i}", str(i)) for i in range(5)])
    with database.connect() as connection:
        some = "select value from facts where name in :names order by value"
        assert connection.scalars(some, names=["it's 1", "it's 3", "no"]) == ["1", "3"]
        assert connection.scalars(some.replace(" in", " not in"), names=["it's 1", "it's 3"]) == ["0", "2", "4"]
        assert connection.scalars(some, names=[]) == []


def test_columns_are_attributes_and_items(database: Database) -> None:
    with database.connect() as connection:
        row = connection.execute("select name, value as number from counters").first()
    assert (row.name, row.number, row[0], row._mapping) == ("version", 0, "version", {"name": "version", "number": 0})
    with pytest.raises(AttributeError):
        _ = row.other


def test_a_transaction_is_all_or_nothing(database: Database) -> None:
    twice = [("a", "1"), ("a", "1")]
    with pytest.raises(sqlite3.IntegrityError), database.begin() as connection:
        connection.insert_tuples("facts", ("name", "value"), twice)
    with database.begin() as connection:
        assert connection.scalars("select name from facts") == []
        connection.insert("facts", name="b", value="2")
    with database.connect() as connection:
        assert connection.execute("update facts set value = '3' where name = 'b'").changed == 1
    assert database.scalar("select value from facts where name = :name", name="b") == "2", (
        "the transaction was not committed"
    )


@pytest.mark.parametrize("count", [0, 1, 499, 500, 2_001])
def test_columns_are_inserted_as_rows(database: Database, count: int) -> None:
    columns = {
        "number": range(count),
        "name": [f"it's {i}" for i in range(count)],
        "every": [i / 4 for i in range(count)],
    }
    same = {"unnamed": True, "shape": 1, "constants": "[?]", "text": "", "expire": None, "paused": False}
    same |= {"published": False, "added": 2**62}
    with database.begin() as connection:
        connection.insert_tuples("shapes", ("id", "shape", "normal_form", "signature"), [(1, "a", "b", "c")])
        connection.insert_columns("queries", columns, same)
        whole = connection.whole("queries")
        rows = list(connection.execute(f"select number, name, every, {', '.join(same)}, {whole} from queries"))
    assert rows == [(i, f"it's {i}", i / 4, 1, 1, "[?]", "", None, 0, 0, 2**62, 1) for i in range(count)]


def test_statement_errors_are_not_reported_as_file_errors(database: Database) -> None:
    with database.begin() as connection:
        connection.insert("facts", name="a", value="1")
    with pytest.raises(sqlite3.IntegrityError), database.begin() as connection:
        connection.insert("facts", name="a", value="1")
    with pytest.raises(HomeError, match="cannot be used"):
        database.scalar("select 1 from nowhere")


def test_threads_share_connections(database: Database) -> None:
    """Each thread takes one connection, and there may be none left."""
    errors: list[BaseException] = []

    def ask(number: int) -> None:
        try:
            for i in range(300):
                assert database.scalar("select value from counters") == 0
                if i % 30 == 0:
                    with database.begin() as connection:
                        connection.insert("facts", name=f"{number} {i}", value="")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert database.scalar("select count(*) from facts") == 80


def test_a_closed_database_leaves_no_connection_open(database: Database, tmp_path: Path) -> None:
    """A connection that is closed later would remove the -wal file of a home that was restored in the meantime."""
    with database.begin() as connection:
        connection.insert("facts", name="a", value="1")
        database.close()
        assert (tmp_path / "catalog.db-wal").exists()
    assert not (tmp_path / "catalog.db-wal").exists(), "the last connection is closed"
    assert database.scalar("select value from facts") == "1"
    assert not (tmp_path / "catalog.db-wal").exists()


def test_a_removed_file_is_not_created_again(database: Database, tmp_path: Path) -> None:
    database.close()
    (tmp_path / "catalog.db").unlink()
    with pytest.raises(HomeError, match="unable to open"):
        database.scalar("select value from counters")
    assert not (tmp_path / "catalog.db").exists()


def test_postgresql_gets_the_same_tables() -> None:
    for create, *indexes in definitions().values():
        for statement in (create, *indexes):
            other = _for_postgresql(statement)
            assert other.startswith(("create table if not exists", "create index if not", "create unique index if not"))
            assert not re.search(r"\binteger\b|autoincrement", other), "32 bits are too few"
        assert columns_of(_for_postgresql(create)) == columns_of(create)
