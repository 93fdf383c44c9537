"""The catalog: one database, many processes.

Every change runs in one transaction that first takes its numbers from the version counter. This write also locks out
other writers until the commit, so names can be checked and rows added without races. Each change number belongs to one
row; the version is the number of changes so far.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishweir.algebra.clauses import AnyNormal, constants_of, to_normals
from fishweir.algebra.codec import from_json
from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import Constant, Schedule, Shape, StreamDefinition
from fishweir.algebra.path_queries import Paths, own_shape
from fishweir.catalog.change import Change
from fishweir.catalog.checksums import RESTORE, verified
from fishweir.catalog.database import Database, chunks, open_database
from fishweir.catalog.schema import GENERATION, NOT_YET, PENDING_START
from fishweir.catalog.subscribers import Subscription, current_subscriptions
from fishweir.errors import HomeError
from fishweir.records import dataclass

if TYPE_CHECKING:
    from fishweir.catalog.increments import Increments, QuerySet, Tombstones

_DUE = (
    "select min(expire) from queries where expire is not null and dropped is null",
    "select min(expire) from subscriptions where expire is not null and dropped is null",
    f"select min(start) from queries where added = {NOT_YET} and start is not null and dropped is null",
)
"""When the next query or subscription expires or starts."""


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
    """Its current number and those from before it was replaced."""
    preferred: bool = False
    """Whether it has a preference."""


class Catalog:
    def __init__(self, url: str | Path, home: str = "", is_new: bool = True) -> None:
        """`url` is the path of a SQLite file or an SQLAlchemy URL, `home` the id of the home that the catalog belongs
        to. If the home is not new, the catalog must exist."""
        self.database = open_database(url)
        self.place = self.database.place
        self._next_due = -1, 0.0
        self._streams: tuple[int, dict[str, tuple[int, StreamDefinition]]] | None = None
        if not is_new and isinstance(url, Path) and not url.exists():  # SQLite would create an empty one
            raise self._lost()
        try:
            self._open(home, is_new)
        except HomeError:
            self.close()
            raise

    def _open(self, home: str, is_new: bool) -> None:
        if not self.database.has_tables():
            if not is_new:
                raise self._lost()
            self._create(home)
        elif home and self.database.scalar("select id from home") != home:
            raise HomeError(f"the catalog {self.place} belongs to another home: {RESTORE}")

    def _lost(self) -> HomeError:
        return HomeError(f"the catalog {self.place} is missing or empty, but the home has streams: {RESTORE}")

    def _create(self, home: str) -> None:
        """Creates all tables in one transaction, since several processes may open a new home at the same time."""
        with self.database.begin() as connection:
            self.database.create_tables(connection)
            if connection.scalar("select value from counters") is None:
                connection.insert("counters", name="version", value=0)
                connection.insert("home", id=home)

    def version(self) -> int:
        return int(self.database.scalar("select value from counters") or 0)

    def generation(self) -> int:
        """The number of job runs that have started and ended."""
        return int(self.database.scalar("select value from facts where name = :name", name=GENERATION) or 0)

    def next_generation(self) -> int:
        new = self.generation() + 1
        with self.database.begin() as connection:
            connection.execute("delete from facts where name = :name", name=GENERATION)
            connection.insert("facts", name=GENERATION, value=str(new))
        return new

    def verify(self) -> None:
        """Reads the whole catalog and raises a HomeError if any of it is damaged."""
        self.database.verify()

    @contextmanager
    def change(self) -> Iterator[Change]:
        """A transaction: all changes inside are committed at the end, or none."""
        with self.database.begin() as connection:
            yield Change(connection)

    def streams(self) -> dict[str, tuple[int, StreamDefinition]]:
        """All streams by name, with their ids; read again only after a change."""
        version = self.version()
        if self._streams is None or self._streams[0] != version:
            self._streams = version, self._read_streams()
        return dict(self._streams[1])

    def _read_streams(self) -> dict[str, tuple[int, StreamDefinition]]:
        with self.database.connect() as connection:
            select = f"select id, definition, {connection.whole('streams')} from streams where dropped is null"
            rows = verified(connection.execute(f"{select} order by id"), "streams", self.place)
            found = [(row.id, from_json(json.loads(row.definition))) for row in rows]
        return {stream.name: (id, stream) for id, stream in found}

    def stream_names(self) -> dict[int, str]:
        """The names of all streams by id, including dropped ones."""
        with self.database.connect() as connection:
            return {row.id: row.name for row in connection.execute("select id, name from streams")}

    def stream_versions(self) -> dict[int, int]:
        """The change that added each active stream."""
        with self.database.connect() as connection:
            rows = connection.execute("select id, added from streams where dropped is null")
            return {row.id: row.added for row in rows}

    def count_active(self, after: int, upto: int) -> int:
        """The number of active queries with change numbers in (after, upto]."""
        count = "select count(*) from queries where added > :after and added <= :upto and dropped is null"
        return int(self.database.scalar(count, after=after, upto=upto))

    def planned(self, after: int, upto: int) -> Iterator[tuple[int, Any, list[Constant]]]:
        """The active queries in (after, upto], in the form that the planner uses: number, template, constants."""
        return self._rows("added > :after and added <= :upto", after=after, upto=upto)

    def planned_queries(self, numbers: Sequence[int]) -> Iterator[tuple[int, Any, list[Constant]]]:
        """The same as `planned`, by number."""
        for some in chunks(numbers):
            yield from self._rows("number in :numbers", numbers=[int(number) for number in some])

    def starting(self, after: int, upto: int) -> list[tuple[int, int, float]]:
        """The active queries in (after, upto] whose start had passed when they were registered and that do not replace
        others: number, change, start."""
        with self.database.connect() as connection:
            found = connection.execute(
                """
                select number, added, start from queries
                where added > :after and added <= :upto and start is not null and dropped is null and replaces is null
                    and not exists (select 1 from facts where facts.name = :waited || cast(queries.number as varchar))
                """,
                after=after,
                upto=upto,
                waited=PENDING_START,
            )
            return [(row.number, row.added, row.start) for row in found]

    def _rows(self, chosen: str, **values: Any) -> Iterator[tuple[int, Any, list[Constant]]]:
        with self.database.connect() as connection:
            select = f"select number, shape, constants, {connection.whole('queries')} from queries"
            select = f"{select} where {chosen} and dropped is null order by added"
            for row in connection.stream(select, **values):
                number, shape, constants, is_whole = row
                if not is_whole:
                    verified([row], "queries", self.place)
                bound = tuple(json.loads(constants))
                normals = _normals(self.database, shape)
                if not normals:
                    own, bound = own_shape(_shape(self.database, shape), bound)
                    normals = to_normals(own)
                for normal in normals:
                    yield number, normal.template, constants_of(normal, bound)

    def segments(self, after: int) -> list[tuple[int, int, int, str, str]]:
        """The segments written by registrations after a change: after, upto, size, plan, requested strategies."""
        select = "select after, upto, size, plan, asked from segments where after >= :after order by after"
        with self.database.connect() as connection:
            return [tuple(row) for row in connection.execute(select, after=after)]

    def query(self, name: str) -> Query | None:
        """The active query with this name, or else the one dropped last."""
        with self.database.connect() as connection:
            select = f"select *, {connection.whole('queries')} from queries where name = :name"
            newest = "order by case when dropped is null then 0 else 1 end, number desc limit 1"
            row = connection.execute(f"{select} {newest}", name=name).first()
            if row is None:
                return None
            numbers, before = [row.number], row.replaces
            while before is not None:
                numbers.append(before)
                before = connection.scalar("select replaces from queries where number = :number", number=before)
        return replace(self._query(row), numbers=tuple(numbers))

    def queries_named(self, names: Sequence[str]) -> dict[str, Query]:
        """The same as `query`, for many names; without those that never existed."""
        found: dict[str, Query] = {}
        with self.database.connect() as connection:
            select = f"select *, {connection.whole('queries')} from queries where name in :names and dropped is null"
            for some in chunks(names):
                rows = connection.execute(select, names=list(some))
                found |= {row.name: self._query(row) for row in rows if row.replaces is None}
        others = {name: self.query(name) for name in names if name not in found}
        return found | {name: query for name, query in others.items() if query is not None}

    def query_columns(self, numbers: Sequence[int]) -> tuple[list[Any], ...]:
        """Some queries in columns, in any order: numbers, names, ids of shapes, changes that added them, and whether
        they have a preference. For very many queries, this takes a fraction of the time of `queries_by_number`."""
        found: tuple[list[Any], ...] = ([], [], [], [], [])
        is_whole = True
        try:
            with self.database.connect() as connection:
                selected = ["number", "name", "shape", "added", "preference is not null"]
                selected.append(connection.is_whole("queries"))
                for some in chunks(numbers):
                    *columns, whole = connection.columns(
                        selected, "from queries where number in :numbers", numbers=[int(number) for number in some]
                    )
                    for all_values, values in zip(found, columns, strict=True):
                        all_values += values
                    is_whole &= all(whole)
        except HomeError:
            self.queries_by_number(numbers)  # if a row is damaged, this names it
            raise
        if not is_whole or len(found[0]) < len(numbers):
            self.queries_by_number(numbers)
        return found

    def shape(self, id: int) -> Shape | Selection | Paths:
        return _shape(self.database, id)

    def constants(self, numbers: Sequence[int]) -> dict[int, tuple[Constant, ...]]:
        """The constants of some queries."""
        found: dict[int, tuple[Constant, ...]] = {}
        with self.database.connect() as connection:
            for some in chunks(numbers):
                of = "from queries where number in :numbers"
                columns = connection.columns(["number", "constants"], of, numbers=[int(number) for number in some])
                found |= {number: tuple(json.loads(texts)) for number, texts in zip(*columns, strict=True)}
        return found

    def queries_by_number(self, numbers: Sequence[int]) -> dict[int, Query]:
        found: dict[int, Query] = {}
        with self.database.connect() as connection:
            select = f"select *, {connection.whole('queries')} from queries where number in :numbers"
            for some in chunks(numbers):
                rows = connection.execute(select, numbers=[int(number) for number in some])
                found |= {row.number: self._query(row) for row in rows}
        if lost := set(numbers) - found.keys():
            raise HomeError(
                f"query {min(lost)}, which has results, is missing from the catalog {self.place}: {RESTORE}"
            )
        return found

    @cached_property
    def _increments(self) -> Increments:
        from fishweir.catalog.increments import Increments  # imported late: registering needs no arrays

        return Increments(self.database)

    def tombstones(self, version: int | None = None) -> Tombstones:
        """The dropped queries as of a version, or of the newest one, and possibly later ones. Reads only those that
        were dropped since the last call."""
        return self._increments.tombstones(self.version() if version is None else version)

    def absences(self, version: int) -> QuerySet:
        """The queries with `NOT FOLLOWED BY` up to a version of the catalog. Reads only those that are new."""
        return self._increments.absences(version)

    def next_due(self, version: int) -> float:
        """When the next query or subscription of the newest version expires or starts; looked up again only after a
        change."""
        if self._next_due[0] != version:
            found = (self.database.scalar(statement) for statement in _DUE)
            self._next_due = version, min((due for due in found if due is not None), default=math.inf)
        return self._next_due[1]

    def expired(self, now: float) -> list[str]:
        with self.database.connect() as connection:
            due = "where dropped is null and expire <= :now"
            names = connection.scalars(f"select name from queries {due}", now=now)
            return names + connection.scalars(f"select feed from subscriptions {due}", now=now)

    def has_due_start(self, now: float) -> bool:
        """Whether the start of a waiting query has come."""
        due = f"dropped is null and added = {NOT_YET} and start <= :now"
        return self.database.scalar(f"select number from queries where {due} limit 1", now=now) is not None

    def names(self) -> list[str]:
        with self.database.connect() as connection:
            return connection.scalars("select name from queries where dropped is null order by number")

    def subscribers(self, name: str | None = None) -> list[Subscription]:
        """The subscriptions (`do` and `subscribe`) to a query or feed, or all subscriptions."""
        with self.database.connect() as connection:
            if name is None:
                return current_subscriptions(connection)
            return current_subscriptions(
                connection, "(subscriptions.query = :name or subscriptions.feed = :name)", name=name
            )

    def subscription(self, id: int) -> Subscription | None:
        with self.database.connect() as connection:
            return next(iter(current_subscriptions(connection, "subscriptions.id = :id", id=id)), None)

    def close(self) -> None:
        self.database.close()

    def _query(self, row: Any) -> Query:
        verified([row], "queries", self.place)
        shape, constants = own_shape(_shape(self.database, row.shape), json.loads(row.constants))
        return Query(
            row.number,
            row.name,
            shape,
            constants,
            row.text,
            Schedule(row.start, row.every, row.expire),
            row.added,
            row.dropped,
            bool(row.paused),
            (row.number,),
            row.preference is not None,
        )


@lru_cache(maxsize=100_000)
def _shape(database: Database, id: int) -> Shape | Selection | Paths:
    with database.connect() as connection:
        select = f"select id, shape, {connection.whole('shapes')} from shapes where id = :id"
        rows = connection.execute(select, id=id)
    if not rows:
        raise HomeError(f"the shape {id} is missing from the catalog {database.place}: {RESTORE}")
    return from_json(json.loads(verified(rows, "shapes", database.place)[0].shape))  # type: ignore[no-any-return]


@lru_cache(maxsize=100_000)
def _normals(database: Database, id: int) -> tuple[AnyNormal, ...]:
    """The normal forms of a shape; none if each query has its own path and therefore its own shape."""
    shape = _shape(database, id)
    return () if isinstance(shape, Paths) else to_normals(shape)
