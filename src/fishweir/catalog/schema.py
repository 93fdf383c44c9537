"""The catalog's tables. Rows are never deleted: a dropped query keeps its row and gets the number of
the change that dropped it, so results of any version can be read. A query whose definition, or that of a
feed it reads, was replaced is a new row that says which one it `replaces`. `publications` are queries over
feeds without their constants, `reads` the feeds they name; `segments` are those that registrations in bulk wrote, by
their changes. What is delivered to whom is in `deliveries.py`. `home` is the id of the one home that the catalog
belongs to."""

from __future__ import annotations

from functools import cache

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, Integer, MetaData, String, Table, Text, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

metadata = MetaData()

NOT_YET = 2**62
"""`added` of a query that has not started: no version of the catalog has it."""

home = Table("home", metadata, Column("id", String, primary_key=True))

counters = Table(
    "counters", metadata,
    Column("name", String, primary_key=True),
    Column("value", Integer, nullable=False),
)  # fmt: skip

streams = Table(
    "streams", metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String, nullable=False),
    Column("definition", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("added", Integer, nullable=False),
    Column("dropped", Integer),
    Index("living_streams", "name", unique=True, sqlite_where=text("dropped is null")),
)  # fmt: skip

PATHS = "paths"
"""The normal form of the shapes whose queries have their path as a constant (algebra/path_queries.py)."""

shapes = Table(
    "shapes", metadata,
    Column("id", Integer, primary_key=True),
    Column("shape", Text, nullable=False, unique=True),
    Column("normal_form", Text, nullable=False),
    Column("signature", Text, nullable=False),
)  # fmt: skip

queries = Table(
    "queries", metadata,
    Column("number", Integer, primary_key=True),
    Column("name", String, nullable=False),
    Column("unnamed", Boolean, nullable=False),
    Column("shape", Integer, ForeignKey("shapes.id"), nullable=False),
    Column("constants", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("start", Float),
    Column("every", Float, nullable=False),
    Column("expire", Float),
    Column("preference", Text),
    Column("paused", Boolean, nullable=False),
    Column("publication", Integer, ForeignKey("publications.id")),
    Column("published", Boolean, nullable=False),
    Column("replaces", Integer),
    Column("added", Integer, nullable=False),
    Column("dropped", Integer),
    Index("living_names", "name", unique=True, sqlite_where=text("dropped is null")),
    Index("queries_by_name", "name"),
    Index("queries_added", "added"),
    Index("queries_over_feeds", "publication", sqlite_where=text("publication is not null")),
    Index("queries_dropped", "dropped", sqlite_where=text("dropped is not null")),
    Index("queries_expire", "expire", sqlite_where=text("expire is not null and dropped is null")),
    Index("queries_start", "added", "start", sqlite_where=text("start is not null and dropped is null")),
)  # fmt: skip

segments = Table(
    "segments", metadata,
    Column("after", Integer, primary_key=True),
    Column("upto", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    Column("plan", String, nullable=False),
    Column("asked", String, nullable=False),
)  # fmt: skip

publications = Table(
    "publications", metadata,
    Column("id", Integer, primary_key=True),
    Column("query", Text, nullable=False, unique=True),
)  # fmt: skip

reads = Table(
    "reads", metadata,
    Column("publication", Integer, ForeignKey("publications.id"), primary_key=True),
    Column("feed", String, primary_key=True),
    Index("reads_of", "feed"),
)  # fmt: skip


def for_postgresql(table: Table) -> None:
    """PostgreSQL's indexes have the same conditions as SQLite's. They are given when they are needed: to name them in a
    definition loads all of SQLAlchemy's PostgreSQL, in each command."""
    for index in table.indexes:
        index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]


@cache
def sqlite_definitions() -> tuple[str, ...]:
    """The statements that make all tables and indexes. To compile them takes longer than to run them."""
    dialect, found = sqlite.dialect(), []
    for table in metadata.sorted_tables:
        found.append(str(CreateTable(table).compile(dialect=dialect)))
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        found.extend(str(CreateIndex(index).compile(dialect=dialect)) for index in indexes)
    return tuple(found)
