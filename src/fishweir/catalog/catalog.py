"""The catalog: one database, many processes.

Every change runs in one transaction that first takes its numbers from the version counter. This write also locks out
other writers until the commit, so names can be checked and rows added without races. Each change number belongs to one
row; the version is the number of changes so far.
"""

from __future__ import annotations

import errno
import json
import math
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from fishweir.algebra.clauses import AnyNormal, constants_of, to_normals
from fishweir.algebra.codec import from_json
from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import Constant, Schedule, Shape, StreamDefinition
from fishweir.algebra.path_queries import Paths, own_shape
from fishweir.catalog.change import Change
from fishweir.catalog.checksums import RESTORE, add_functions, verified, verify_rows, whole
from fishweir.catalog.deliveries import WAITED, facts, subscriptions
from fishweir.catalog.fast_lookup import FastLookup
from fishweir.catalog.schema import (
    NOT_YET,
    counters,
    for_postgresql,
    metadata,
    queries,
    segments,
    shapes,
    sqlite_definitions,
    streams,
)
from fishweir.catalog.schema import home as home_table
from fishweir.catalog.subscribers import Subscription, standing
from fishweir.errors import CannotWrite, HomeError
from fishweir.records import dataclass

if TYPE_CHECKING:
    from fishweir.catalog.increments import Increments, Tombstones

PATIENCE = 60  # seconds to wait for another process's write
DAMAGE = (sqlite3.DatabaseError, sqlite3.OperationalError, UnicodeDecodeError)
"""What SQLite raises over a damaged file, whose names and messages may be no texts any more."""
NOT_WRITTEN = ("full", "readonly", "disk I/O error")
GENERATION = "generation"
"""The fact that counts the runs of the job: a catalog with fewer than the home knows of is an older one."""

_DUE = (
    f"select min(expire) from {queries.name} where expire is not null and dropped is null",
    f"select min(expire) from {subscriptions.name} where expire is not null and dropped is null",
    f"select min(start) from {queries.name} where added = {NOT_YET} and start is not null and dropped is null",
)
"""When something expires or begins next."""


@dataclass(frozen=True, slots=True)
class Query:
    """A registered query, as stored."""

    number: int
    name: str
    shape: Shape | Selection
    constants: tuple[Constant, ...]
    text: str
    schedule: Schedule
    added: int
    dropped: int | None
    paused: bool = False
    numbers: tuple[int, ...] = ()
    """Its own number and those it had before it was replaced."""
    preferred: bool = False
    """Whether it has a preference."""


class Catalog:
    def __init__(self, url: str | Path, home: str = "", is_new: bool = True) -> None:
        """`url` is a path of a SQLite file or an SQLAlchemy URL, `home` the id of the home that it belongs to.
        Where the home is not new, there must be a catalog already."""
        address = f"sqlite:///{url}" if isinstance(url, Path) else url
        self.engine = sa.create_engine(address)
        self._asking = FastLookup(self.engine)
        self._next_due = -1, 0.0
        self._streams: tuple[int, dict[str, tuple[int, StreamDefinition]]] | None = None
        self.place = str(url) if isinstance(url, Path) else self.engine.url.render_as_string()
        if self.engine.dialect.name == "sqlite":
            sa.event.listen(self.engine, "connect", self._tune)
        sa.event.listen(self.engine, "handle_error", self._blame)
        if not is_new and isinstance(url, Path) and not url.exists():  # SQLite would make an empty one
            raise self._lost()
        try:
            is_made = sa.inspect(self.engine).has_table(home_table.name)
        except (sa.exc.SQLAlchemyError, UnicodeDecodeError) as error:
            raise self._damaged(getattr(error, "orig", None) or error) from error
        if not is_made:
            if not is_new:
                raise self._lost()
            self._create(home)
        elif home and self._home() != home:
            raise HomeError(f"the catalog {self.place} belongs to another home: {RESTORE}")

    def _tune(self, connection: Any, _: Any) -> None:
        try:
            add_functions(connection)
            _tune_sqlite(connection)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise self._damaged(error) from error

    def _blame(self, context: Any) -> HomeError | None:
        """What is wrong with the database, not with a statement, concerns the home."""
        error = context.original_exception
        is_its_own = type(error) in DAMAGE and "locked" not in str(error)
        return self._damaged(error) if is_its_own else None

    def _lost(self) -> HomeError:
        return HomeError(f"the catalog {self.place} is missing or empty, but the home has streams: {RESTORE}")

    def _damaged(self, error: BaseException) -> HomeError:
        if any(words in str(error) for words in NOT_WRITTEN):
            to_do = "free some space, or give the user of the job the right to write it; nothing is lost"
            return CannotWrite(errno.ENOSPC, f"the catalog {self.place} cannot be written ({error}): {to_do}")
        return HomeError(f"the catalog {self.place} cannot be used ({error}): {RESTORE}")

    def _home(self) -> str | None:
        with self.engine.connect() as connection:
            return connection.scalar(sa.select(home_table.c.id))

    def _create(self, home: str) -> None:
        """Creates all tables in one transaction, since several processes may open a new home at the same time."""
        with self.engine.begin() as connection:
            if self.engine.dialect.name == "sqlite":
                connection.exec_driver_sql("begin immediate")
                if not sa.inspect(connection).has_table(home_table.name):
                    for definition in sqlite_definitions():
                        connection.exec_driver_sql(definition)
            else:
                if self.engine.dialect.name == "postgresql":
                    for table in metadata.tables.values():
                        for_postgresql(table)
                metadata.create_all(connection)
            if connection.scalar(sa.select(counters.c.value)) is None:
                connection.execute(sa.insert(counters).values(name="version", value=0))
                connection.execute(sa.insert(home_table).values(id=home))

    def version(self) -> int:
        return int(self._asking.first(f"select value from {counters.name}") or 0)

    def generation(self) -> int:
        """The number of job runs that have started and ended."""
        return int(self._asking.first(f"select value from {facts.name} where name = '{GENERATION}'") or 0)

    def next_generation(self) -> int:
        new = self.generation() + 1
        with self.engine.begin() as connection:
            connection.execute(sa.delete(facts).where(facts.c.name == GENERATION))
            connection.execute(sa.insert(facts).values(name=GENERATION, value=str(new)))
        return new

    def verify(self) -> None:
        """Raises what is damaged; reads all of it."""
        verify_rows(self.engine, metadata)

    @contextmanager
    def change(self) -> Iterator[Change]:
        """Atomic: all changes inside are committed at the end, or none."""
        with self.engine.begin() as connection:
            yield Change(connection)

    def streams(self) -> dict[str, tuple[int, StreamDefinition]]:
        """All streams by name, with their ids; read when something has changed."""
        version = self.version()
        if self._streams is None or self._streams[0] != version:
            self._streams = version, self._read_streams()
        return dict(self._streams[1])

    def _read_streams(self) -> dict[str, tuple[int, StreamDefinition]]:
        with self.engine.connect() as connection:
            chosen = sa.select(streams.c.id, streams.c.definition, whole(streams)).where(streams.c.dropped.is_(None))
            rows = verified(connection.execute(chosen.order_by(streams.c.id)).all(), streams, self.engine)
            found = [(row.id, from_json(json.loads(row.definition))) for row in rows]
        return {stream.name: (id, stream) for id, stream in found}

    def stream_names(self) -> dict[int, str]:
        """The names of all streams, dropped ones too, by id."""
        with self.engine.connect() as connection:
            return {row.id: row.name for row in connection.execute(sa.select(streams.c.id, streams.c.name))}

    def stream_versions(self) -> dict[int, int]:
        """The change that added each active stream."""
        chosen = sa.select(streams.c.id, streams.c.added).where(streams.c.dropped.is_(None))
        with self.engine.connect() as connection:
            return {row.id: row.added for row in connection.execute(chosen)}

    def living(self, after: int, upto: int) -> int:
        """The number of active queries with change numbers in (after, upto]."""
        with self.engine.connect() as connection:
            chosen = queries.c.added.between(after + 1, upto) & queries.c.dropped.is_(None)
            return int(connection.scalar(sa.select(sa.func.count()).select_from(queries).where(chosen)) or 0)

    def planned(self, after: int, upto: int) -> Iterator[tuple[int, Any, list[Constant]]]:
        """Living queries in (after, upto] as the planner wants them: number, template, constants."""
        return self._rows(queries.c.added.between(after + 1, upto))

    def planned_queries(self, numbers: Sequence[int]) -> Iterator[tuple[int, Any, list[Constant]]]:
        """As `planned`, by number."""
        for i in range(0, len(numbers), 10_000):
            yield from self._rows(queries.c.number.in_(numbers[i : i + 10_000]))

    def starting(self, after: int, upto: int) -> list[tuple[int, int, float]]:
        """Living queries in (after, upto] whose start had passed when they were registered and that replace no others:
        number, change, start."""
        chosen = queries.c.added.between(after + 1, upto) & queries.c.start.is_not(None)
        chosen &= queries.c.dropped.is_(None) & queries.c.replaces.is_(None)
        waited = sa.literal(WAITED) + sa.cast(queries.c.number, sa.String)
        chosen &= ~sa.exists().where(facts.c.name == waited)
        with self.engine.connect() as connection:
            found = connection.execute(sa.select(queries.c.number, queries.c.added, queries.c.start).where(chosen))
            return [(row.number, row.added, row.start) for row in found]

    def _rows(self, chosen: sa.ColumnElement[bool]) -> Iterator[tuple[int, Any, list[Constant]]]:
        wanted = sa.select(queries.c.number, queries.c.shape, queries.c.constants, whole(queries))
        wanted = wanted.where(chosen, queries.c.dropped.is_(None))
        with self.engine.connect() as connection:
            result = connection.execution_options(yield_per=10_000).execute(wanted.order_by(queries.c.added))
            for row in result:
                number, shape, constants, _ = row
                verified([row], queries, self.engine)
                values = tuple(json.loads(constants))
                normals = _normals(self.engine, shape)
                if not normals:
                    own, values = own_shape(_shape(self.engine, shape), values)
                    normals = to_normals(own)
                for normal in normals:
                    yield number, normal.template, constants_of(normal, values)

    def segments(self, after: int) -> list[tuple[int, int, int, str, str]]:
        """The segments that came with registrations behind a change: after, upto, size, plan, strategies asked for."""
        with self.engine.connect() as connection:
            rows = connection.execute(sa.select(segments).where(segments.c.after >= after).order_by(segments.c.after))
            return [(row.after, row.upto, row.size, row.plan, row.asked) for row in rows]

    def query(self, name: str) -> Query | None:
        """The active query of that name, or else the one that was dropped last."""
        newest = queries.c.dropped.is_(None).desc(), queries.c.number.desc()
        with self.engine.connect() as connection:
            chosen = sa.select(queries, whole(queries)).where(queries.c.name == name)
            row = connection.execute(chosen.order_by(*newest)).first()
            if row is None:
                return None
            numbers, before = [row.number], row.replaces
            while before is not None:
                numbers.append(before)
                before = connection.scalar(sa.select(queries.c.replaces).where(queries.c.number == before))
        return replace(self._query(row), numbers=tuple(numbers))

    def queries_by_number(self, numbers: Sequence[int]) -> dict[int, Query]:
        found: dict[int, Query] = {}
        with self.engine.connect() as connection:
            for i in range(0, len(numbers), 10_000):
                some = [int(n) for n in numbers[i : i + 10_000]]
                rows = connection.execute(sa.select(queries, whole(queries)).where(queries.c.number.in_(some)))
                found |= {row.number: self._query(row) for row in rows}
        if lost := set(numbers) - found.keys():
            raise HomeError(f"the catalog {self.place} has lost query {min(lost)}, which results name: {RESTORE}")
        return found

    @cached_property
    def _increments(self) -> Increments:
        from fishweir.catalog.increments import Increments  # late: who registers needs no arrays

        return Increments(self.engine)

    def tombstones(self) -> Tombstones:
        """The dropped queries; only those are read that were dropped since the last call."""
        return self._increments.tombstones(self.version())

    def next_due(self) -> float:
        """When the next query or subscription expires or begins; looked up when something has changed."""
        version = self.version()
        if self._next_due[0] != version:
            found = (self._asking.first(question) for question in _DUE)
            self._next_due = version, min((due for due in found if due is not None), default=math.inf)
        return self._next_due[1]

    def expired(self, now: float) -> list[str]:
        with self.engine.connect() as connection:
            chosen = queries.c.dropped.is_(None) & (queries.c.expire <= now)
            names = list(connection.scalars(sa.select(queries.c.name).where(chosen)))
            ended = subscriptions.c.dropped.is_(None) & (subscriptions.c.expire <= now)
            return names + list(connection.scalars(sa.select(subscriptions.c.feed).where(ended)))

    def beginning(self, now: float) -> bool:
        """Whether queries wait whose start has come."""
        with self.engine.connect() as connection:
            due = queries.c.dropped.is_(None) & (queries.c.added == NOT_YET) & (queries.c.start <= now)
            return connection.scalar(sa.select(queries.c.number).where(due).limit(1)) is not None

    def names(self) -> list[str]:
        with self.engine.connect() as connection:
            chosen = sa.select(queries.c.name).where(queries.c.dropped.is_(None)).order_by(queries.c.number)
            return list(connection.scalars(chosen))

    def subscribers(self, name: str | None = None) -> list[Subscription]:
        """What is delivered of a query or feed, or of all of them, by `do` and by `subscribe`."""
        chosen = None if name is None else (subscriptions.c.query == name) | (subscriptions.c.feed == name)
        with self.engine.connect() as connection:
            return standing(connection, chosen)

    def subscription(self, id: int) -> Subscription | None:
        with self.engine.connect() as connection:
            return next(iter(standing(connection, subscriptions.c.id == id)), None)

    def close(self) -> None:
        self.engine.dispose()

    def _query(self, row: Any) -> Query:
        verified([row], queries, self.engine)
        shape, constants = own_shape(_shape(self.engine, row.shape), json.loads(row.constants))
        return Query(
            row.number,
            row.name,
            shape,
            constants,
            row.text,
            Schedule(row.start, row.every, row.expire),
            row.added,
            row.dropped,
            row.paused,
            (row.number,),
            row.preference is not None,
        )


def _tune_sqlite(connection: Any) -> None:
    """Readers do not wait for writers; writers wait for each other."""
    connection.execute(f"pragma busy_timeout = {PATIENCE * 1000}")
    connection.execute("pragma synchronous = normal")
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError as error:  # a new file that two open at once: SQLite does not wait here
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@lru_cache(maxsize=100_000)
def _shape(engine: sa.Engine, id: int) -> Shape | Selection | Paths:
    with engine.connect() as connection:
        rows = connection.execute(sa.select(shapes.c.id, shapes.c.shape, whole(shapes)).where(shapes.c.id == id)).all()
    if not rows:
        raise HomeError(f"the catalog {engine.url.database} has lost the shape {id}: {RESTORE}")
    return from_json(json.loads(verified(rows, shapes, engine)[0].shape))  # type: ignore[no-any-return]


@lru_cache(maxsize=100_000)
def _normals(engine: sa.Engine, id: int) -> tuple[AnyNormal, ...]:
    """The normal forms of a shape; none where each query has a path, and so a shape, of its own."""
    shape = _shape(engine, id)
    return () if isinstance(shape, Paths) else to_normals(shape)
