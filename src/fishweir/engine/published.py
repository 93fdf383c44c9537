"""Queries whose output others read by name: `publish NAME` (MMQJP section 2), and feeds that other languages read.

The output becomes a stream of that name when it is first read, so that a hundred thousand published queries need no
streams. Its columns are those of the select list (`algebra/output_streams.py`). `engine/materialize.py` fills it with
the query's results. A query with readers cannot be dropped, and no query reads itself, directly or through others.
Queries over feeds read a feed without a stream, as a view (feeds.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import DERIVED, CreateQuery, CreateStream, Shape, Source, StreamDefinition
from fishweir.algebra.output_streams import output_columns, output_stream
from fishweir.catalog.change import Change
from fishweir.catalog.query_inserter import bound_shape
from fishweir.engine.statement_errors import statement_error
from fishweir.errors import QueryError


class Published:
    """The published queries within one change."""

    def __init__(
        self, change: Change, streams: dict[str, StreamDefinition], add_stream: Callable[[CreateStream], None]
    ) -> None:
        self.change, self.streams, self.add_stream = change, streams, add_stream
        self._bound: set[str] = set()
        self._shapes: dict[str, Shape | Selection] = {}
        """The shapes of the queries and feeds that this change publishes."""

    def __contains__(self, name: str) -> bool:
        return name in self._bound or self.change.publishes(name)

    def bind(self, statement: CreateQuery, sources: Callable[[], Iterable[Source]]) -> None:
        """Checks the name of a publishing query, and makes it available to readers."""
        name = str(statement.name)
        stream = self.streams.get(name)
        if stream is not None:
            if stream.virtual != name:
                raise statement_error(
                    statement, f"query {name}: there is already a stream with this name", name, "publish"
                )
            self.check_cycle(statement, [source.name for source in sources()])
        self.keep_shape(statement)
        self._bound.add(name)

    def keep_shape(self, statement: CreateQuery) -> None:
        """Stores the shape of a query's or feed's output for its readers. The name may have earlier readers: those of
        an expired query, or of a replaced feed. The columns that they read must not change.
        """
        name, shape = str(statement.name), bound_shape(statement)
        stream = self.streams.get(name)
        if stream is not None and stream.is_tuples and output_columns(shape, self.streams) != stream.columns:
            had = ", ".join(f"{column} {kind}" for column, kind in stream.columns)
            readers = ", ".join(self._readers(name)[:5])
            kind = "query" if statement.feed is None else "feed"
            raise statement_error(
                statement, f"{kind} {name}: its readers expect the columns {had}; first drop {readers}", name
            )
        self._shapes[name] = shape

    def publish(self, like: CreateQuery, names: Sequence[str]) -> None:
        """Publishes queries like a bound one, under unused names."""
        self._shapes |= dict.fromkeys(names, bound_shape(like))
        if like.feed is None:
            self._bound.update(names)

    def declare(self, name: str, is_feed: bool = False) -> bool:
        """Creates a stream for a published query or feed that is read. Returns whether there is such a query."""
        if not is_feed and name not in self:
            return False
        shape = self._shapes.get(name) or self.change.shape(name)
        assert shape is not None, "a published query has a shape"
        self.add_stream(CreateStream(output_stream(name, shape, self.streams), text=f"published {name}"))
        return True

    def forget(self, names: Iterable[str]) -> None:
        """Removes dropped queries without readers from the cache."""
        for name in names:
            self._bound.discard(name)
            self._shapes.pop(name, None)

    def withdraw(self, name: str) -> None:
        """Removes the stream of a query that is about to be dropped."""
        self.forget([name])
        if name not in self.streams:
            return
        readers = self._readers(name)
        if readers:
            shown = ", ".join(readers[:5]) + (" and others" if len(readers) > 5 else "")
            raise QueryError(f"the query {name} is read by {shown}; drop them first")
        self.change.drop_stream(name)
        del self.streams[name]

    def sweep(self, names: Iterable[str]) -> None:
        """Drops those queries that are the first joins of chains and no longer have readers, and then those that only
        they read. All of one level are dropped together.
        """
        border = set(names)
        while border := {name for name in border if name.startswith(DERIVED) and self._is_own_stream(name)}:
            unread = border - self._read()
            border = self._drop_unread(unread) if unread else set()

    def _is_own_stream(self, name: str) -> bool:
        return name in self.streams and self.streams[name].virtual == name

    def _read(self) -> set[str]:
        """The derived streams and feeds that have readers."""
        materialized = {stream.virtual for stream in self.streams.values() if stream.virtual not in (None, stream.name)}
        return self.change.derived_names() | self.change.publications.active_names() | materialized

    def _drop_unread(self, names: set[str]) -> set[str]:
        """Drops derived queries and their streams, and returns the names of the streams that they read."""
        queries = self.change.active(sorted(names))
        self.forget(names)
        self.change.drop_streams(sorted(names))
        for name in names:
            del self.streams[name]
        self.change.drop_many([query.number for query in queries.values()])
        return self.change.sources_of(query.shape for query in queries.values())

    def _readers(self, name: str) -> list[str]:
        readers = [*self.change.reading(name), *self.change.publications.reader_names(name)]
        materialized = [stream.name for stream in self.streams.values() if stream.virtual == name != stream.name]
        return sorted({*readers, *materialized})

    def check_cycle(self, statement: CreateQuery, sources: Iterable[str]) -> None:
        """Rejects cycles. The name may have earlier readers: an expired query leaves its stream to them."""
        name = str(statement.name)
        above: dict[str, str] = dict.fromkeys(sources, name)
        border = list(above)
        while border:
            read = border.pop()
            if read == name:
                path = [read]
                while above[path[-1]] != name:
                    path.append(above[path[-1]])
                cycle = " -> ".join([name, *reversed(path)])
                raise statement_error(statement, f"query {name}: the queries read each other: {cycle}", path[-1])
            for one in self._read_by(read):
                if one not in above:
                    above[one] = read
                    border.append(one)

    def _read_by(self, name: str) -> list[str]:
        """The inputs of a stream's documents, or of a query's results."""
        stream = self.streams.get(name)
        if stream is not None and stream.virtual != name:
            return [] if stream.virtual is None else [stream.virtual]
        return self.change.sources(name)
