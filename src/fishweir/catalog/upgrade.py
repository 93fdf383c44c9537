"""Upgrades the tables of a SQLite catalog that an older version wrote: rows are kept, `sum` is computed."""

from __future__ import annotations

from pathlib import Path

from fishweir.catalog.checksums import SUM, with_checksum
from fishweir.catalog.database import Connection, open_database
from fishweir.catalog.schema import columns_of, definitions
from fishweir.catalog.sqlite import SqliteDatabase


def upgrade_catalog(url: str | Path) -> None:
    """Upgrades all tables in one transaction; tables that are already upgraded are skipped."""
    database = open_database(url)
    try:
        if not isinstance(database, SqliteDatabase) or not database.has_tables():
            return  # other databases have no checksums; Catalog reports a catalog that is missing
        with database.begin() as connection:
            connection.execute("pragma legacy_alter_table = on")  # other tables keep naming this one
            connection.execute("begin immediate")
            for table, (create, *indexes) in definitions().items():
                old = [row.name for row in connection.execute(f"pragma table_xinfo({table})")]
                if not old:
                    connection.execute(with_checksum(create))
                elif SUM not in old:
                    _copy(connection, table, create, old)
                else:
                    continue
                for index in indexes:
                    connection.execute(index)
    finally:
        database.close()


def _copy(connection: Connection, table: str, create: str, old: list[str]) -> None:
    """SQLite adds no stored columns to a table that is there."""
    listed = ", ".join(column for column in old if column in columns_of(create))
    made = "select name from sqlite_master where type = 'index' and tbl_name = :own and sql is not null"
    for index in connection.scalars(made, own=table):
        connection.execute(f"drop index {index}")
    connection.execute(f"alter table {table} rename to old_{table}")
    connection.execute(with_checksum(create))
    connection.execute(f"insert into {table} ({listed}) select {listed} from old_{table}")
    if "autoincrement" in create:  # ids that were assigned once are not assigned again
        connection.execute(f"delete from sqlite_sequence where name = '{table}'")
        connection.execute(f"update sqlite_sequence set name = '{table}' where name = 'old_{table}'")
    connection.execute(f"drop table old_{table}")
