"""Runs MMQJP's statements on DuckDB: in memory, on one thread.

Tables are joined in the order of the statement (conjunctive.py). With DuckDB's own order, two documents take as long or
longer, and a stream of 2,000 documents takes forty times as long.
"""

from __future__ import annotations

import pyarrow as pa


class DuckDBEngine:
    def __init__(self, threads: int = 1) -> None:
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute(f"pragma threads={threads}")
        self.connection.execute("set disabled_optimizers = 'join_order'")

    def create(self, name: str, table: pa.Table) -> None:
        self.connection.register("given", table)
        self.connection.execute(f"create or replace table {name} as select * from given")
        self.connection.unregister("given")

    def append(self, name: str, table: pa.Table) -> None:
        self.connection.register("given", table)
        self.connection.execute(f"insert into {name} select * from given")
        self.connection.unregister("given")

    def materialize(self, name: str, query: str) -> None:
        self.connection.execute(f"create or replace table {name} as {query}")

    def run(self, query: str) -> pa.Table:
        return self.connection.sql(query).to_arrow_table()

    def drop(self, name: str) -> None:
        self.connection.execute(f"drop table if exists {name}")
