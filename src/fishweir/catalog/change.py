"""One transaction of changes: adds streams and queries, drops queries, assigns numbers.

In: bound statements. Out: the names of the queries. A statement that is already registered verbatim is skipped; a
different definition under an existing name is an error, and nothing is changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fishweir.algebra.codec import from_json, to_json
from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import DERIVED, CreateQuery, CreateStream, Shape, StreamDefinition
from fishweir.algebra.path_queries import Paths, own_shape
from fishweir.algebra.uniform_queries import MixedQueries, UniformQueries, group_uniform
from fishweir.catalog.database import Connection, chunks
from fishweir.catalog.publications import Publications
from fishweir.catalog.query_inserter import QueryInserter
from fishweir.catalog.schema import NOT_YET, PENDING_START
from fishweir.catalog.subscribers import Subscribers
from fishweir.errors import QueryError

CHUNK = 20_000
_WILD = {"%": ".*", "_": "."}
_ACTIVE = "name = :name and dropped is null"
_DERIVED = re.compile(rf'"!": "Source", "name": "({re.escape(DERIVED)}[^"]*)"')
_LIKE = f'%"!": "Source", "name": "{DERIVED}%'
"""A derived stream as a source in the text of a shape."""


class ActiveQuery(NamedTuple):
    """The columns of an active query that dropping it requires; `shape` is an id."""

    name: str
    number: int
    shape: int
    published: bool


class Change:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.publications = Publications(connection)
        self.subscribers = Subscribers(connection, self.take)
        self.adding = QueryInserter(connection, self.take, self.publications, self.subscribers)

    def streams(self) -> dict[str, StreamDefinition]:
        rows = self.connection.scalars("select definition from streams where dropped is null")
        found = [from_json(json.loads(definition)) for definition in rows]
        return {stream.name: stream for stream in found}

    def add_stream(self, statement: CreateStream) -> None:
        definition = json.dumps(to_json(statement.stream))
        name = statement.stream.name
        self.take(0)
        select = "select text, definition from streams where name = :name and dropped is null"
        row = self.connection.execute(select, name=name).first()
        if row is None:
            self.adding.use(name)
            added = self.take(1)
            self.connection.insert("streams", name=name, definition=definition, text=statement.text, added=added)
        elif row.text != statement.text and row.definition != definition:
            raise QueryError(f"the stream {name} already exists with a different definition")

    def drop_stream(self, name: str) -> None:
        self.drop_streams([name])

    def drop_streams(self, names: Sequence[str]) -> None:
        """Drops streams, all with one change number."""
        change = self.take(1)
        dropped = "update streams set dropped = :change where name in :names and dropped is null"
        for some in chunks(names):
            self.connection.execute(dropped, names=some, change=change)

    def reading(self, stream: str) -> list[str]:
        """The active queries, in any language, that read a stream."""
        used = "select id, shape from shapes where id in (select shape from queries where dropped is null)"
        over = [row.id for row in self.connection.execute(used) if _reads(from_json(json.loads(row.shape)), stream)]
        chosen = "select name from queries where shape in :over and dropped is null limit 6"
        return self.connection.scalars(chosen, over=over) if over else []

    def derived_names(self) -> set[str]:
        """The derived streams that active queries read. They are found in the texts of the shapes, since decoding all
        shapes takes long and there may be one for each query."""
        used = "id in (select shape from queries where dropped is null)"
        texts = self.connection.scalars(f"select shape from shapes where shape like :derived and {used}", derived=_LIKE)
        return {name for text in texts for name in _DERIVED.findall(text)}

    def publishes(self, name: str) -> bool:
        """Whether an active query that is not a feed publishes its output under this name."""
        found = f"select number from queries where published and publication is null and {_ACTIVE}"
        return self.connection.scalar(found, name=name) is not None

    def sources(self, name: str) -> list[str]:
        """The streams and feeds that an active query reads."""
        over = f"select publication from queries where {_ACTIVE}"
        feeds = self.connection.scalars(f"select feed from reads where publication in ({over})", name=name)
        shape = self.shape(name)
        own = [] if shape is None else [source.name for source in shape.sources]
        return list(dict.fromkeys([*own, *feeds]))

    def has(self, name: str) -> bool:
        """Whether there is an active query with this name."""
        return self.connection.scalar(f"select number from queries where {_ACTIVE} limit 1", name=name) is not None

    def shape(self, name: str) -> Shape | Selection | None:
        """The shape of an active query."""
        joined = "queries join shapes on shapes.id = queries.shape"
        row = self.connection.execute(
            f"select shapes.shape, queries.constants from {joined} where {_ACTIVE}", name=name
        ).first()
        return None if row is None else own_shape(from_json(json.loads(row.shape)), json.loads(row.constants))[0]  # type: ignore[no-any-return]

    def is_paused(self, name: str) -> bool:
        paused = "select number from queries where name = :name and paused"
        return self.connection.scalar(paused, name=name) is not None

    def replace_queries(self, given: Sequence[UniformQueries]) -> list[str]:
        """Replaces the definitions of active queries; earlier results are kept."""
        self.take(0)
        replaced = [str(name) for some in given for name in some.names]
        for names in chunks(replaced):
            chosen = "name in :names and dropped is null"
            rows = self.connection.execute(f"select name, number, unnamed from queries where {chosen}", names=names)
            self.adding.replaced |= {row.name: (row.number, bool(row.unnamed)) for row in rows}
            dropped = f"update queries set dropped = :change where {chosen}"
            self.connection.execute(dropped, names=names, change=self.take(1))
        self.adding.forget_names()
        return list(self.add_uniform(given))

    def add_queries(self, statements: Iterable[CreateQuery]) -> Iterator[str]:
        """Adds queries and yields their names."""
        return self.add_uniform(group_uniform(iter(statements), CHUNK))

    def add_uniform(self, given: Iterable[UniformQueries | MixedQueries]) -> Iterator[str]:
        """Adds queries in chunks, so that a million of them need little memory, and yields their names."""
        chunk: list[UniformQueries | MixedQueries] = []
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
        dropped = self.connection.execute(
            f"update queries set dropped = :change where {_ACTIVE}", name=name, change=change
        )
        paused = "update queries set paused = false where name = :name and paused"
        if dropped.changed + self.connection.execute(paused, name=name).changed == 0:
            raise QueryError(f"there is no query {name}")
        self.subscribers.end("query = :query", change, query=name)

    def drop_many(self, numbers: Sequence[int]) -> None:
        """Drops queries by number, all with one change number."""
        self.adding.forget_names()
        change = self.take(1)
        for some in chunks([int(number) for number in numbers]):
            dropped = "update queries set dropped = :change where number in :numbers"
            self.connection.execute(dropped, numbers=some, change=change)
            named = "select name from queries where number in :numbers"
            self.subscribers.end(f"query in ({named})", change, numbers=some)

    def active(self, names: Sequence[str]) -> dict[str, ActiveQuery]:
        """The active queries with these names."""
        found: dict[str, ActiveQuery] = {}
        select = "select name, number, shape, published from queries where name in :names and dropped is null"
        for some in chunks(names):
            found |= {row.name: ActiveQuery(*row) for row in self.connection.execute(select, names=some)}
        return found

    def names_like(self, pattern: str) -> list[str]:
        """The names of active queries that match a pattern, newest first; case-sensitive."""
        like = [_WILD.get(part, re.escape(part[-1])) for part in re.findall(r"\\.|.", pattern, re.DOTALL)]
        matching = re.compile("".join(like), re.DOTALL)
        prefix = re.split(r"[%_\\]", pattern, maxsplit=1)[0]
        chosen = "select name from queries where dropped is null and name between :first and :last order by number desc"
        names = self.connection.scalars(chosen, first=prefix, last=prefix + chr(0x10FFFF))
        return [name for name in names if matching.fullmatch(name)]

    def shapes(self, ids: Iterable[int]) -> Iterator[Shape | Selection | Paths]:
        """Some shapes, each once."""
        for some in chunks(sorted(set(ids))):
            for shape in self.connection.scalars("select shape from shapes where id in :ids", ids=some):
                yield from_json(json.loads(shape))

    def sources_of(self, ids: Iterable[int]) -> set[str]:
        """The sources of some shapes."""
        return {source.name for shape in self.shapes(ids) for source in shape.sources}

    def add_segment(self, after: int, upto: int, size: int, plan: str, asked: str) -> None:
        """Records that the queries of this change are in a segment that has been written."""
        self.connection.insert("segments", after=after, upto=upto, size=size, plan=plan, asked=asked)

    def expire(self, now: float) -> None:
        """Drops expired queries and ends expired subscriptions, all with one change number."""
        due = "dropped is null and expire <= :now"
        names = self.connection.scalars(f"select name from queries where {due}", now=now)
        change = self.take(1)
        self.connection.execute(f"update queries set dropped = :change where {due}", now=now, change=change)
        for some in chunks(names):
            self.subscribers.expire("query in :names", change, now, names=some)
        self.subscribers.expire("expire <= :now", change, now)

    def start_due(self, now: float) -> None:
        """Activates the queries whose start has come."""
        due = f"dropped is null and added = {NOT_YET} and start <= :now"
        numbers = self.connection.scalars(f"select number from queries where {due} order by number", now=now)
        for change, number in enumerate(numbers, self.take(len(numbers))):
            self.connection.execute("update queries set added = :change where number = :own", change=change, own=number)
            self.connection.insert("facts", name=f"{PENDING_START}{number}", value=str(now))

    def take(self, count: int) -> int:
        """Reserves `count` change numbers and returns the first. 0 only locks out other writers."""
        self.connection.execute("update counters set value = value + :count", count=count)
        return int(self.connection.scalar("select value from counters") or 0) - count + 1


def _reads(shape: Shape | Selection, stream: str) -> bool:
    return any(source.name == stream and not source.dtd for source in shape.sources)
