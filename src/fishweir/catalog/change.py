"""One transaction of changes: streams and queries added, queries dropped, numbers given.

In: bound statements. Out: the names of the queries. A statement that is already registered word for
word is passed over; another definition under a taken name is an error, and nothing is changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Any, NamedTuple

import sqlalchemy as sa

from fishweir.algebra.clauses import to_normals
from fishweir.algebra.codec import from_json, to_json
from fishweir.algebra.feeds import FeedQuery, Selection
from fishweir.algebra.nodes import Constant, CreateQuery, CreateStream, Shape, StreamDefinition
from fishweir.catalog.deliveries import subscriptions
from fishweir.catalog.publications import Publications
from fishweir.catalog.schema import NOT_YET, counters, queries, reads, segments, shapes, streams
from fishweir.catalog.subscribers import Subscribers
from fishweir.errors import QueryError

CHUNK = 20_000
_WILD = {"%": ".*", "_": "."}
_LIVING = (queries.c.name, queries.c.number, queries.c.shape, queries.c.published)


class Added(NamedTuple):
    """A query as it has just been stored: its change and number, its shape and constants."""

    change: int
    number: int
    shape: Shape | Selection
    constants: tuple[Constant, ...]


class Living(NamedTuple):
    """What dropping a query needs to know of it; `shape` is a number."""

    name: str
    number: int
    shape: int
    published: bool


class Change:
    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self._shapes: dict[int, tuple[Shape | Selection, int]] = {}
        self._number = 0
        self._unnamed: dict[str, str] | None = None
        self._used: set[str | None] = set()
        self._replaced: dict[str, tuple[int, bool]] = {}
        self.publications = Publications(connection)
        self.subscribers = Subscribers(connection, self.take)
        self.on_added: Callable[[Sequence[Added]], None] | None = None
        """Called with queries once they are stored."""

    def streams(self) -> dict[str, StreamDefinition]:
        rows = self.connection.scalars(sa.select(streams.c.definition).where(streams.c.dropped.is_(None)))
        found = [from_json(json.loads(definition)) for definition in rows]
        return {stream.name: stream for stream in found}

    def add_stream(self, statement: CreateStream) -> None:
        definition = json.dumps(to_json(statement.stream))
        name = statement.stream.name
        self.take(0)
        row = self.connection.execute(
            sa.select(streams.c.text, streams.c.definition).where(streams.c.name == name, streams.c.dropped.is_(None))
        ).first()
        if row is None:
            self._used.add(name)
            added = self.take(1)
            self.connection.execute(
                sa.insert(streams).values(name=name, definition=definition, text=statement.text, added=added)
            )
        elif row.text != statement.text and row.definition != definition:
            raise QueryError(f"the stream {name} exists already, with another definition")

    def drop_stream(self, name: str) -> None:
        dropped = sa.update(streams).where(streams.c.name == name, streams.c.dropped.is_(None))
        self.connection.execute(dropped.values(dropped=self.take(1)))

    def reading(self, stream: str) -> list[str]:
        """The living queries of any language that read a stream."""
        used = sa.select(queries.c.shape).where(queries.c.dropped.is_(None)).distinct()
        rows = self.connection.execute(sa.select(shapes.c.id, shapes.c.shape).where(shapes.c.id.in_(used)))
        over = [row.id for row in rows if _reads(from_json(json.loads(row.shape)), stream)]
        chosen = queries.c.shape.in_(over) & queries.c.dropped.is_(None)
        return list(self.connection.scalars(sa.select(queries.c.name).where(chosen).limit(6))) if over else []

    def publishes(self, name: str) -> bool:
        """Whether a living query that is no feed publishes its output under this name."""
        chosen = queries.c.published & (queries.c.name == name) & queries.c.dropped.is_(None)
        found = sa.select(queries.c.number).where(chosen & queries.c.publication.is_(None))
        return self.connection.scalar(found) is not None

    def sources(self, name: str) -> list[str]:
        """The streams and feeds that a living query reads."""
        over = sa.select(queries.c.publication).where(_living(name))
        feeds = self.connection.scalars(sa.select(reads.c.feed).where(reads.c.publication.in_(over)))
        shape = self.shape(name)
        own = [] if shape is None else [source.name for source in shape.sources]
        return list(dict.fromkeys([*own, *feeds]))

    def shape(self, name: str) -> Shape | Selection | None:
        """The shape of a living query."""
        shape = self.connection.scalar(sa.select(shapes.c.shape).join(queries).where(_living(name)))
        return None if shape is None else from_json(json.loads(shape))  # type: ignore[no-any-return]

    def replace_queries(self, statements: Sequence[CreateQuery]) -> list[str]:
        """Other definitions under living names: the results so far stay theirs."""
        self.take(0)
        for i in range(0, len(statements), 5_000):
            names = [str(statement.name) for statement in statements[i : i + 5_000]]
            chosen = queries.c.name.in_(names) & queries.c.dropped.is_(None)
            rows = self.connection.execute(sa.select(queries.c.name, queries.c.number, queries.c.unnamed).where(chosen))
            self._replaced |= {row.name: (row.number, row.unnamed) for row in rows}
            self.connection.execute(sa.update(queries).where(chosen).values(dropped=self.take(1)))
        self._unnamed = None
        return list(self.add_queries(statements))

    def add_queries(self, statements: Iterable[CreateQuery]) -> Iterator[str]:
        """Adds queries in chunks, so that a million of them need little memory; yields the names."""
        source = iter(statements)
        while chunk := list(islice(source, CHUNK)):
            yield from self._add_chunk(chunk)

    def drop(self, name: str) -> None:
        self._unnamed = None
        change = self.take(1)
        dropped = self.connection.execute(sa.update(queries).where(_living(name)).values(dropped=change))
        paused = (queries.c.name == name) & queries.c.paused
        ended = self.connection.execute(sa.update(queries).where(paused).values(paused=False))
        if dropped.rowcount + ended.rowcount == 0:
            raise QueryError(f"there is no query {name}")
        self.subscribers.end(subscriptions.c.query == name, change)

    def drop_many(self, numbers: Sequence[int]) -> None:
        """Drops queries by their numbers; one change number for all of them."""
        self._unnamed = None
        change = self.take(1)
        for i in range(0, len(numbers), 10_000):
            some = queries.c.number.in_(numbers[i : i + 10_000])
            self.connection.execute(sa.update(queries).where(some).values(dropped=change))
            self.subscribers.end(subscriptions.c.query.in_(sa.select(queries.c.name).where(some)), change)

    def living(self, names: Sequence[str]) -> dict[str, Living]:
        """The living queries of some names."""
        found: dict[str, Living] = {}
        for i in range(0, len(names), 10_000):
            chosen = queries.c.name.in_(names[i : i + 10_000]) & queries.c.dropped.is_(None)
            rows = self.connection.execute(sa.select(*_LIVING).where(chosen))
            found |= {row.name: Living(*row) for row in rows}
        return found

    def names_like(self, pattern: str) -> list[str]:
        """The names of living queries that match a pattern, the newest first; upper and lower case differ."""
        like = [_WILD.get(part, re.escape(part[-1])) for part in re.findall(r"\\.|.", pattern, re.DOTALL)]
        wanted = re.compile("".join(like), re.DOTALL)
        prefix = re.split(r"[%_\\]", pattern, maxsplit=1)[0]
        chosen: sa.ColumnElement[bool] = queries.c.dropped.is_(None)
        if prefix:
            chosen &= queries.c.name.between(prefix, prefix + chr(0x10FFFF))
        names = self.connection.scalars(sa.select(queries.c.name).where(chosen).order_by(queries.c.number.desc()))
        return [name for name in names if wanted.fullmatch(name)]

    def sources_of(self, ids: Iterable[int]) -> set[str]:
        """What the shapes of some queries read."""
        found = set[str]()
        wanted = sorted(set(ids))
        for i in range(0, len(wanted), 10_000):
            chosen = sa.select(shapes.c.shape).where(shapes.c.id.in_(wanted[i : i + 10_000]))
            for shape in self.connection.scalars(chosen):
                found |= {source.name for source in from_json(json.loads(shape)).sources}
        return found

    def add_segment(self, after: int, upto: int, size: int, plan: str, asked: str) -> None:
        """Queries of this change are in a segment that has been written."""
        row = {"after": after, "upto": upto, "size": size, "plan": plan, "asked": asked}
        self.connection.execute(sa.insert(segments).values(row))

    def expire(self, now: float) -> None:
        """Drops what has expired; one change number for all of it."""
        due = queries.c.dropped.is_(None) & (queries.c.expire <= now)
        names = list(self.connection.scalars(sa.select(queries.c.name).where(due)))
        change = self.take(1)
        self.connection.execute(sa.update(queries).where(due).values(dropped=change))
        for i in range(0, len(names), 5_000):
            self.subscribers.expire(subscriptions.c.query.in_(names[i : i + 5_000]), change, now)
        self.subscribers.expire(subscriptions.c.expire <= now, change, now)

    def begin(self, now: float) -> None:
        """Queries whose start has come are seen from now on."""
        due = queries.c.dropped.is_(None) & (queries.c.added == NOT_YET) & (queries.c.start <= now)
        numbers = list(self.connection.scalars(sa.select(queries.c.number).where(due).order_by(queries.c.number)))
        for change, number in enumerate(numbers, self.take(len(numbers))):
            self.connection.execute(sa.update(queries).where(queries.c.number == number).values(added=change))

    def take(self, count: int) -> int:
        """The first of `count` new change numbers; 0 only keeps other writers out."""
        self.connection.execute(sa.update(counters).values(value=counters.c.value + count))
        return int(self.connection.scalar(sa.select(counters.c.value)) or 0) - count + 1

    def _add_chunk(self, chunk: list[CreateQuery]) -> list[str]:
        self.take(0)
        if not self._number:
            self._number = int(self.connection.scalar(sa.select(sa.func.max(queries.c.number))) or 0)
        named = self._name(chunk)
        taken = self._texts([statement.name for statement in named if statement.name])
        rows, new, seen = [], list[CreateQuery](), dict(taken)
        for i, statement in enumerate(named):
            name = str(statement.name)
            if name not in seen:
                self._number += 1
                rows.append(self._row(statement, self._number, chunk[i].name is None))
                new.append(statement)
            elif seen[name] != statement.text:
                kind = "feed" if statement.published and statement.feed else "query"
                raise QueryError(f"the {kind} {name} exists already, with another definition")
            seen[name] = statement.text
        actions = []
        for change, row in enumerate(rows, self.take(len(rows))):
            row["added"] = NOT_YET if (row["start"] or 0.0) > self.subscribers.now else change
            actions += [{**action, "added": change} for action in row.pop("actions")]
        insert_rows(self.connection, queries, rows)
        insert_rows(self.connection, subscriptions, actions)
        if self.on_added is not None:
            started = ((row, of) for row, of in zip(rows, new, strict=True) if row["added"] != NOT_YET)
            self.on_added([Added(row["added"], row["number"], bound_shape(of), of.constants) for row, of in started])
        return [str(statement.name) for statement in named]

    def _name(self, chunk: list[CreateQuery]) -> list[CreateQuery]:
        """Queries without a name become q1, q2, ...; one registered before keeps its name."""
        if all(statement.name for statement in chunk):
            return chunk
        if self._unnamed is None:
            self._unnamed, self._used = self._names_given()
        known, used = self._unnamed, self._used | {statement.name for statement in chunk}
        fresh = (f"q{i}" for i in count(len(known) + 1) if f"q{i}" not in used)
        named = []
        for statement in chunk:
            if statement.name is None:
                if statement.text not in known:
                    known[statement.text] = next(fresh)
                    self._used.add(known[statement.text])
                statement = replace(statement, name=known[statement.text])
            named.append(statement)
        return named

    def _names_given(self) -> tuple[dict[str, str], set[str | None]]:
        """Names of the living unnamed queries by text, and all names that look like theirs, of streams too; read
        once."""
        mine = sa.select(queries.c.text, queries.c.name).where(queries.c.unnamed, queries.c.dropped.is_(None))
        known = {row.text: row.name for row in self.connection.execute(mine)}
        alike = sa.union(*(sa.select(table.c.name).where(table.c.name.like("q%")) for table in (queries, streams)))
        return known, set(self.connection.scalars(alike))

    def _texts(self, names: Sequence[str]) -> dict[str, str]:
        """The texts of the living queries with these names."""
        found: dict[str, str] = {}
        for i in range(0, len(names), 5_000):
            there = queries.c.dropped.is_(None) | queries.c.paused
            chosen = queries.c.name.in_(names[i : i + 5_000]) & there
            rows = self.connection.execute(sa.select(queries.c.name, queries.c.text).where(chosen))
            found |= {row.name: row.text for row in rows}
        return found

    def _row(self, statement: CreateQuery, number: int, unnamed: bool) -> dict[str, Any]:
        schedule = statement.schedule
        replaces, unnamed = self._replaced.pop(str(statement.name), (None, unnamed))
        return {
            "publication": self.publications.id_of(statement.feed) if statement.feed else None,
            "published": statement.published,
            "replaces": replaces,
            "number": number,
            "name": statement.name,
            "unnamed": unnamed,
            "shape": self._shape(bound_shape(statement)),
            "constants": json.dumps(statement.constants),
            "text": statement.text,
            "start": schedule.start,
            "every": schedule.every or 0.0,
            "expire": schedule.expire,
            "preference": json.dumps(to_json(statement.preference)) if statement.preference else None,
            "paused": False,
            "dropped": None,
            "actions": [] if replaces else self._actions(statement),
        }

    def _actions(self, statement: CreateQuery) -> list[dict[str, Any]]:
        """What the query does with its results; a query that replaces another goes on with what that did."""
        name, schedule, text = str(statement.name), statement.schedule, statement.text
        return [self.subscribers.row(name, name, one, schedule, text, None, True) for one in statement.actions]

    def _shape(self, shape: Shape | Selection) -> int:
        """Queries of one kind come with the same object, so its address is looked up, not its hash."""
        known = self._shapes.get(id(shape))
        if known is None:
            known = self._shapes[id(shape)] = (shape, self._store_shape(shape))
        return known[1]

    def _store_shape(self, shape: Shape | Selection) -> int:
        text = json.dumps(to_json(shape))
        found = self.connection.scalar(sa.select(shapes.c.id).where(shapes.c.shape == text))
        if found is None:
            templates = [normal.template for normal in to_normals(shape)]
            normal_form = " or ".join(str(template) for template in templates)
            inserted = self.connection.execute(
                sa.insert(shapes).values(shape=text, normal_form=normal_form, signature=" or ".join(signature(shape)))
            )
            found = inserted.inserted_primary_key[0] if inserted.inserted_primary_key else None
        assert found is not None
        return int(found)


def _living(name: str) -> sa.ColumnElement[bool]:
    return (queries.c.name == name) & queries.c.dropped.is_(None)


def _reads(shape: Shape | Selection, stream: str) -> bool:
    return any(source.name == stream and not source.dtd for source in shape.sources)


def bound_shape(statement: CreateQuery) -> Shape | Selection:
    """A feed query is resolved to its sources before it comes here."""
    assert not isinstance(statement.shape, FeedQuery)
    return statement.shape


def insert_rows(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    """Many rows by the driver's own executemany: SQLAlchemy's costs more than SQLite's work."""
    if not rows:
        return
    statement = sa.insert(table).values({name: sa.bindparam(name) for name in rows[0]})
    compiled = statement.compile(dialect=connection.dialect)
    if compiled.positional and compiled.positiontup:
        names = compiled.positiontup
        connection.exec_driver_sql(str(compiled), [tuple(row[name] for name in names) for row in rows])
    else:
        connection.execute(sa.insert(table), rows)


def signature(shape: Shape | Selection) -> list[str]:
    """The expression signatures of a shape: its conditions with a placeholder for each constant."""
    return [" and ".join(normal.template.signatures) for normal in to_normals(shape)]
