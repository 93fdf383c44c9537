"""Upgrades the tables of a catalog that an older version wrote: rows are kept, `sum` is computed."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.schema import CreateColumn, CreateIndex, CreateTable

from fishweir.catalog.catalog import Catalog
from fishweir.catalog.checksums import SUM
from fishweir.catalog.schema import metadata


def upgrade_catalog(url: str | Path) -> None:
    """Upgrades all tables in one transaction; tables that are already upgraded are skipped."""
    catalog = Catalog(url, is_new=False)
    try:
        with catalog.engine.connect() as connection:
            is_sqlite = catalog.engine.dialect.name == "sqlite"
            if is_sqlite:
                connection.exec_driver_sql("pragma legacy_alter_table = on")  # other tables keep naming this one
                connection.commit()
                connection.exec_driver_sql("begin immediate")
            there = sa.inspect(connection)
            old = {name: [column["name"] for column in there.get_columns(name)] for name in there.get_table_names()}
            for table in metadata.sorted_tables:
                if table.name not in old:
                    table.create(connection)
                elif SUM not in old[table.name]:
                    (_copy if is_sqlite else _add)(connection, table, old[table.name])
            connection.commit()
    finally:
        catalog.close()


def _add(connection: sa.Connection, table: sa.Table, _: list[str]) -> None:
    column = CreateColumn(table.c[SUM]).compile(dialect=connection.dialect)
    connection.exec_driver_sql(f"alter table {table.name} add column {column}")


def _copy(connection: sa.Connection, table: sa.Table, columns: list[str]) -> None:
    """SQLite adds no stored columns to a table that is there."""
    name, listed = table.name, ", ".join(f'"{column}"' for column in columns if column in table.c)
    for index in table.indexes:
        connection.exec_driver_sql(f"drop index if exists {index.name}")
    connection.exec_driver_sql(f"alter table {name} rename to old_{name}")
    connection.execute(CreateTable(table))
    connection.exec_driver_sql(f"insert into {name} ({listed}) select {listed} from old_{name}")
    if table.dialect_options["sqlite"]["autoincrement"]:  # ids that were given once are not given again
        connection.exec_driver_sql(f"delete from sqlite_sequence where name = '{name}'")
        connection.exec_driver_sql(f"update sqlite_sequence set name = '{name}' where name = 'old_{name}'")
    connection.exec_driver_sql(f"drop table old_{name}")
    for index in table.indexes:
        connection.execute(CreateIndex(index))
