"""One transaction of changes: adds streams and queries, drops queries, assigns numbers.

In: bound statements. Out: the names of the queries. A statement that is already registered verbatim is skipped; a
different definition under an existing name is an error, and nothing is changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from fishweir.algebra.alike import Alike, runs
from fishweir.algebra.codec import from_json, to_json
from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import CreateQuery, CreateStream, Shape, StreamDefinition
from fishweir.algebra.path_queries import own_shape
from fishweir.catalog.deliveries import WAITED, facts, subscriptions
from fishweir.catalog.publications import Publications
from fishweir.catalog.query_inserter import QueryInserter
from fishweir.catalog.schema import NOT_YET, counters, queries, reads, segments, shapes, streams
from fishweir.catalog.subscribers import Subscribers
from fishweir.errors import QueryError

CHUNK = 20_000
_WILD = {"%": ".*", "_": "."}
_LIVING = (queries.c.name, queries.c.number, queries.c.shape, queries.c.published)


class Living(NamedTuple):
    """What dropping a query needs to know of it; `shape` is a number."""

    name: str
    number: int
    shape: int
    published: bool


_COUNT = sa.update(counters).values(value=counters.c.value + sa.bindparam("count"))
_COUNTED = sa.select(counters.c.value)
_HAS = sa.select(queries.c.number).where(queries.c.name == sa.bindparam("own"), queries.c.dropped.is_(None)).limit(1)


class Change:
    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.publications = Publications(connection)
        self.subscribers = Subscribers(connection, self.take)
        self.adding = QueryInserter(connection, self.take, self.publications, self.subscribers)

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
            self.adding.use(name)
            added = self.take(1)
            self.connection.execute(
                sa.insert(streams).values(name=name, definition=definition, text=statement.text, added=added)
            )
        elif row.text != statement.text and row.definition != definition:
            raise QueryError(f"the stream {name} already exists with a different definition")

    def drop_stream(self, name: str) -> None:
        dropped = sa.update(streams).where(streams.c.name == name, streams.c.dropped.is_(None))
        self.connection.execute(dropped.values(dropped=self.take(1)))

    def reading(self, stream: str) -> list[str]:
        """The active queries, in any language, that read a stream."""
        used = sa.select(queries.c.shape).where(queries.c.dropped.is_(None)).distinct()
        rows = self.connection.execute(sa.select(shapes.c.id, shapes.c.shape).where(shapes.c.id.in_(used)))
        over = [row.id for row in rows if _reads(from_json(json.loads(row.shape)), stream)]
        chosen = queries.c.shape.in_(over) & queries.c.dropped.is_(None)
        return list(self.connection.scalars(sa.select(queries.c.name).where(chosen).limit(6))) if over else []

    def publishes(self, name: str) -> bool:
        """Whether an active query that is not a feed publishes its output under this name."""
        chosen = queries.c.published & (queries.c.name == name) & queries.c.dropped.is_(None)
        found = sa.select(queries.c.number).where(chosen & queries.c.publication.is_(None))
        return self.connection.scalar(found) is not None

    def sources(self, name: str) -> list[str]:
        """The streams and feeds that an active query reads."""
        over = sa.select(queries.c.publication).where(_living(name))
        feeds = self.connection.scalars(sa.select(reads.c.feed).where(reads.c.publication.in_(over)))
        shape = self.shape(name)
        own = [] if shape is None else [source.name for source in shape.sources]
        return list(dict.fromkeys([*own, *feeds]))

    def has(self, name: str) -> bool:
        """Whether there is an active query of that name."""
        return self.connection.scalar(_HAS, {"own": name}) is not None

    def shape(self, name: str) -> Shape | Selection | None:
        """The shape of an active query."""
        chosen = sa.select(shapes.c.shape, queries.c.constants).join(queries).where(_living(name))
        row = self.connection.execute(chosen).first()
        return None if row is None else own_shape(from_json(json.loads(row.shape)), json.loads(row.constants))[0]  # type: ignore[no-any-return]

    def is_paused(self, name: str) -> bool:
        paused = sa.select(queries.c.number).where(queries.c.name == name, queries.c.paused)
        return self.connection.scalar(paused) is not None

    def replace_queries(self, given: Sequence[Alike]) -> list[str]:
        """Replaces the definitions of active queries; earlier results are kept."""
        self.take(0)
        replaced = [str(name) for some in given for name in some.names]
        for i in range(0, len(replaced), 5_000):
            names = replaced[i : i + 5_000]
            chosen = queries.c.name.in_(names) & queries.c.dropped.is_(None)
            rows = self.connection.execute(sa.select(queries.c.name, queries.c.number, queries.c.unnamed).where(chosen))
            self.adding.replaced |= {row.name: (row.number, row.unnamed) for row in rows}
            self.connection.execute(sa.update(queries).where(chosen).values(dropped=self.take(1)))
        self.adding.forget_names()
        return list(self.add_alike(given))

    def add_queries(self, statements: Iterable[CreateQuery]) -> Iterator[str]:
        """Adds queries one by one; yields the names."""
        return self.add_alike(runs(iter(statements), CHUNK))

    def add_alike(self, given: Iterable[Alike]) -> Iterator[str]:
        """Adds queries in chunks, so that a million of them need little memory; yields the names."""
        chunk: list[Alike] = []
        size = 0
        for some in given:
            chunk.append(some)
            size += len(some)
            if size >= CHUNK:
                yield from self.adding.add(chunk)
                chunk, size = [], 0
        if chunk:
            yield from self.adding.add(chunk)

    def drop(self, name: str) -> None:
        self.adding.forget_names()
        change = self.take(1)
        dropped = self.connection.execute(sa.update(queries).where(_living(name)).values(dropped=change))
        paused = (queries.c.name == name) & queries.c.paused
        ended = self.connection.execute(sa.update(queries).where(paused).values(paused=False))
        if dropped.rowcount + ended.rowcount == 0:
            raise QueryError(f"there is no query {name}")
        self.subscribers.end(subscriptions.c.query == name, change)

    def drop_many(self, numbers: Sequence[int]) -> None:
        """Drops queries by their numbers; one change number for all of them."""
        self.adding.forget_names()
        change = self.take(1)
        for i in range(0, len(numbers), 10_000):
            some = queries.c.number.in_(numbers[i : i + 10_000])
            self.connection.execute(sa.update(queries).where(some).values(dropped=change))
            self.subscribers.end(subscriptions.c.query.in_(sa.select(queries.c.name).where(some)), change)

    def living(self, names: Sequence[str]) -> dict[str, Living]:
        """The active queries with these names."""
        found: dict[str, Living] = {}
        for i in range(0, len(names), 10_000):
            chosen = queries.c.name.in_(names[i : i + 10_000]) & queries.c.dropped.is_(None)
            rows = self.connection.execute(sa.select(*_LIVING).where(chosen))
            found |= {row.name: Living(*row) for row in rows}
        return found

    def names_like(self, pattern: str) -> list[str]:
        """The names of active queries that match a pattern, newest first; case-sensitive."""
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
            self.connection.execute(sa.insert(facts).values(name=f"{WAITED}{number}", value=str(now)))

    def take(self, count: int) -> int:
        """The first of `count` new change numbers; 0 only keeps other writers out."""
        self.connection.execute(_COUNT, {"count": count})
        return int(self.connection.scalar(_COUNTED) or 0) - count + 1


def _living(name: str) -> sa.ColumnElement[bool]:
    return (queries.c.name == name) & queries.c.dropped.is_(None)


def _reads(shape: Shape | Selection, stream: str) -> bool:
    return any(source.name == stream and not source.dtd for source in shape.sources)
