"""Registration: statements bound to what there is, then stored, all or nothing.

Binding checks what a parser cannot know: that sources and actions exist. A source that is no declared
stream but an existing file is declared by being named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from fishweir.algebra.clauses import to_normals
from fishweir.algebra.column_joins import block_of
from fishweir.algebra.documents import xml_name
from fishweir.algebra.feeds import CreateFeed, DropFeed, FeedQuery, RegisterFeed, Selection, Subscribe, Unsubscribe
from fishweir.algebra.formula import RelativePath, paths_of
from fishweir.algebra.joins import edge_variables
from fishweir.algebra.nodes import (
    DERIVED,
    Action,
    ColumnOutput,
    CreateQuery,
    CreateStream,
    DropQuery,
    Shape,
    Source,
    Statement,
    StreamDefinition,
)
from fishweir.algebra.views import Publication, reads
from fishweir.catalog.change import Change, bound_shape
from fishweir.delivery.actions import Actions
from fishweir.engine.dated import Mixed, dated_slots, in_seconds, time_text
from fishweir.engine.feeds import Feeds
from fishweir.engine.places import refused
from fishweir.engine.published import Published
from fishweir.engine.registering import FeedRegistration
from fishweir.errors import QueryError
from fishweir.intake import check_source, is_url


class Registration:
    """Binds and stores statements within one change of the catalog."""

    def __init__(self, change: Change, actions: Actions, base: Path) -> None:
        self.change, self.actions, self.base = change, actions, base
        self.streams = change.streams()
        self.feeds = Feeds(change, self.streams, self._declare_feed)
        self.published = Published(change, self.streams, self._add_stream)
        self.registering = FeedRegistration(change, self.streams, self.feeds, base, self._add_stream)
        self.derived: set[str] = set()
        self._bound: dict[tuple[int, Action | None], tuple[object, Shape | Selection | FeedQuery, dict[int, str]]] = {}

    def run(self, statements: Sequence[Statement]) -> list[str]:
        """Stores the statements in order; the names of the queries they create."""
        names: list[str] = []
        for is_query, group in groupby(statements, _is_query):
            if is_query:
                names += self.add_queries(group)  # type: ignore[arg-type]
                continue
            for statement in group:
                names += self._other(statement)
        return names

    def add_queries(self, statements: Iterable[CreateQuery | CreateFeed]) -> Iterator[str]:
        """Adds the queries; the names of those that somebody has written."""
        names = self.change.add_queries(self._bind(to_query(statement)) for statement in statements)
        return (name for name in names if name not in self.derived)

    def _other(self, statement: Statement) -> list[str]:
        match statement:
            case CreateStream(stream):
                self._add_stream(replace(statement, stream=self._absolute(stream)))
            case CreateFeed():
                return self._replace(to_query(statement))
            case RegisterFeed():
                self.registering.register(statement)
            case Subscribe():
                self.registering.subscribe(statement)
            case Unsubscribe():
                self.registering.unsubscribe(statement)
            case DropFeed(name) | DropQuery(name):
                self._drop(name, isinstance(statement, DropFeed))
        return []

    def _replace(self, statement: CreateQuery) -> list[str]:
        """`create or replace feed`: what reads the feed is bound anew, with effect from the next micro-batch."""
        before = self.change.publications.published(str(statement.name))
        if before is None:
            return list(self.add_queries([statement]))
        if before.text != statement.text:
            self._bound.clear()
            queries = self.feeds.replaced(statement)
            self.published.check_cycle(statement, reads(Publication(statement.shape)))  # type: ignore[arg-type]
            self.change.replace_queries([self._bind(query) for query in queries])
        return [str(statement.name)]

    def _drop(self, name: str, feed: bool) -> None:
        if self.feeds.is_published(name):
            self.registering.check_unsubscribed(name)
            self.feeds.withdraw(name)
        elif name in self.published:
            self.registering.check_unsubscribed(name)
            self.published.withdraw(name)
        elif feed:
            self.registering.drop(name)
            return
        read = self.change.sources(name)
        self.change.drop(name)
        self.published.sweep(read)

    def expire(self, now: float) -> None:
        """Drops what has expired, and what was there for it alone."""
        self.change.expire(now)
        self.published.sweep(list(self.streams))

    def _add_stream(self, statement: CreateStream) -> None:
        name, virtual = statement.stream.name, statement.stream.virtual
        if virtual != name and self.feeds.is_published(name):
            raise QueryError(f"stream {name}: there is a feed of that name")
        if virtual != name and name in self.published:
            raise QueryError(f"stream {name}: there is a published query of that name")
        if name not in self.streams and virtual != name and self.change.shape(name) is not None:
            raise QueryError(f"stream {name}: there is a query of that name")
        if name.startswith(DERIVED) and virtual != name:
            raise QueryError(f"stream {name}: names with '{DERIVED}' are those of joins in chains")
        if statement.stream.name not in self.streams:
            check_source(statement.stream, self.base)
        self.change.add_stream(statement)
        self.streams[statement.stream.name] = statement.stream

    def _absolute(self, stream: StreamDefinition) -> StreamDefinition:
        """A path is stored whole: the job may run in another folder."""
        if stream.path is None or "://" in stream.path:
            return stream
        return replace(stream, path=os.path.abspath(self.base / stream.path))

    def _bind(self, statement: CreateQuery) -> CreateQuery:
        """Checks a shape and an action once, however many queries have them."""
        if isinstance(statement.shape, FeedQuery):
            statement = self.feeds.bound(statement)
        key = (id(statement.shape), statement.action)
        if key not in self._bound:
            sources = sources_of(statement.shape)
            if isinstance(statement.shape, Shape):
                self._check_joined(statement, statement.shape)
            for source in sources:
                if not source.dtd and source.name not in self.streams:
                    self._declare(statement, source.name)
            self._check_columns(statement)
            shape = self._in_seconds(statement)
            try:
                to_normals(bound_shape(replace(statement, shape=shape)))
            except QueryError as error:
                raise self._refused(statement, f"cannot be planned: {error}") from error
            if statement.action is not None:
                self._check_action(statement, statement.action)
            self._bound[key] = statement.shape, shape, dated_slots(shape, self.streams)
        written, shape, dated = self._bound[key]
        if shape is not written:
            statement = replace(statement, shape=shape)
        if dated:
            statement = self._with_times(statement, dated)
        if statement.name and statement.name.startswith(DERIVED) and not statement.derived:
            raise self._refused(statement, f"cannot be named so: names with '{DERIVED}' are those of joins in chains")
        if statement.name in self.streams and not statement.published:
            reason = f"query {statement.name}: there is a stream of that name"
            raise refused(statement, reason, str(statement.name), "create")
        if statement.published and statement.feed is None:
            self.published.bind(statement, lambda: sources_of(bound_shape(statement)))
            if statement.derived:
                self.derived.add(str(statement.name))
        elif statement.published:
            self.published.keep_shape(statement)
        if statement.action is None:
            return statement
        return replace(statement, action=self.actions.resolved(statement.action, self.base))

    def _check_joined(self, statement: CreateQuery, shape: Shape) -> None:
        """Two sources, and something that joins them; SQL joins any number and may also ask for all combinations."""
        names = [str(block.source) for block in shape.blocks]
        if len(names) > 2 and shape.formula is None:
            reason = f"joins {', '.join(names)}; only SQL joins three and more sources: join two at a time"
            raise self._refused(statement, reason, names[2])
        if len(names) == 2 and shape.formula is None and not any(edge_variables(shape, 0)):
            reason = "nothing joins the two: use a variable in both patterns, or compare one of each"
            raise self._refused(statement, f"reads {names[0]} and {names[1]}; {reason}", names[1])

    def _check_columns(self, statement: CreateQuery) -> None:
        """What SQL reads of declared tuples must be among their columns."""
        for source, paths in columns_read(statement.shape):
            stream = self.streams.get(source.name)
            if stream is None or not stream.is_tuples:
                continue
            known = {xml_name(name) for name, _ in stream.columns}
            for path in paths:
                if path and (len(path) > 1 or path[0].is_attribute or path[0].name not in known):
                    name, columns = "/".join(map(str, path)), ", ".join(name for name, _ in stream.columns)
                    raise self._refused(statement, f"reads {name}; the columns of {stream.name} are {columns}", name)

    def _in_seconds(self, statement: CreateQuery) -> Shape | Selection | FeedQuery:
        try:
            return in_seconds(statement.shape, self.streams)
        except Mixed as error:
            reason = f"compares {error.column}, a time, by '{error.atom.op}' with a column that is none"
            raise self._refused(statement, reason, error.column) from None

    def _with_times(self, statement: CreateQuery, dated: Mapping[int, str]) -> CreateQuery:
        """Constants that columns of times are compared with, as those are kept."""
        constants = list(statement.constants)
        for slot, column in dated.items():
            text = time_text(constants[slot])
            if text is None:
                reason = f"compares {column}, a time, with {constants[slot]}: write it as '2026-05-01T12:00:00Z'"
                raise self._refused(statement, reason, str(constants[slot]))
            constants[slot] = text
        return replace(statement, constants=tuple(constants))

    def _check_action(self, statement: CreateQuery, action: Action) -> None:
        try:
            self.actions.check(action)
        except QueryError as error:
            raise self._refused(statement, f"cannot be taken: {error}", action.name) from error

    def _declare(self, statement: CreateQuery, name: str) -> None:
        """A published query, or a file that a query names, is a stream of that name: one document, or its tuples."""
        if name == statement.name and statement.published:
            raise self._refused(statement, "reads itself", name)
        if self.published.declare(name, self.feeds.is_published(name)):
            return
        if "://" in name:
            raise self._refused(statement, f"reads {name}; URLs are not supported yet", name)
        path = self.base / name
        if not path.is_file():
            raise self._refused(statement, f"reads {name}, which is neither a stream nor a file", name)
        if path.suffix in (".csv", ".json", ".jsonl", ".ndjson", ".parquet"):
            raise self._refused(statement, f"reads {name}; declare its columns with create stream", name)
        stream = self._absolute(StreamDefinition(name, path=name, format="xml"))
        self._add_stream(CreateStream(stream, text=f"create stream '{name}' from '{name}' format xml"))

    def _declare_feed(self, name: str) -> bool:
        """A published query or a URL that a query over feeds names is a feed of that name."""
        if self.published.declare(name):
            return True
        if not is_url(name):
            return False
        stream = StreamDefinition(name, path=name, format="feed")
        self._add_stream(CreateStream(stream, text=f"register feed '{name}' as '{name}'"))
        return True

    def _refused(self, statement: CreateQuery, reason: str, word: str = "") -> QueryError:
        """An error that names the query and, where the word stands in its text, the place."""
        subject = f"query {statement.name}" if statement.name else "the query"
        return refused(statement, f"{subject} {reason}", word)


def _is_query(statement: Statement) -> bool:
    return isinstance(statement, CreateQuery) or (isinstance(statement, CreateFeed) and not statement.replace)


def to_query(statement: CreateQuery | CreateFeed) -> CreateQuery:
    """A feed is a query that others may read by its name."""
    if isinstance(statement, CreateQuery):
        return statement
    return CreateQuery(
        statement.query, statement.constants, statement.name, text=statement.text, line=statement.line, published=True
    )


def columns_read(shape: Shape | Selection | FeedQuery) -> Iterator[tuple[Source, list[RelativePath]]]:
    """The columns that a query in SQL reads of each of its sources."""
    if isinstance(shape, Selection) and shape.language == "sql":
        shown = [path for _, path in shape.output.columns] if shape.output else []
        for part in shape.filters:
            yield part.source, [*shown, *paths_of(part.formula)]
    if isinstance(shape, Shape) and shape.formula is not None:
        read = list(paths_of(shape.formula))
        for i, block in enumerate(shape.blocks):
            own = [column.path for column in shape.columns if isinstance(column, ColumnOutput) and column.block == i]
            yield block.source, [*own, *(path[1:] for path in read if block_of(path) == i)]


def sources_of(shape: Shape | Selection | FeedQuery) -> list[Source]:
    if isinstance(shape, Shape):
        return [block.source for block in shape.blocks]
    assert isinstance(shape, Selection)
    return shape.sources
