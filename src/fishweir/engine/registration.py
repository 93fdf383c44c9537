"""Registration: binds statements against the catalog and stores them atomically.

Binding checks what a parser cannot check: that sources and actions exist. A source that is an existing file instead of
a declared stream is declared implicitly.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from fishweir.algebra.changes import SUFFIX, changes_stream
from fishweir.algebra.clauses import to_normals
from fishweir.algebra.feeds import (
    CreateFeed,
    DropFeed,
    FeedQuery,
    RegisterFeed,
    Selection,
    to_query,
)
from fishweir.algebra.formula import RelativePath
from fishweir.algebra.nodes import (
    DERIVED,
    ON_CHANGE,
    Action,
    CreateQuery,
    CreateStream,
    DropQueries,
    DropQuery,
    Schedule,
    Shape,
    Statement,
    StreamDefinition,
)
from fishweir.algebra.path_queries import own_query
from fishweir.algebra.simple_paths import xml_name
from fishweir.algebra.uniform_queries import uniform
from fishweir.algebra.views import FeedError, Publication, reads
from fishweir.catalog.change import ActiveQuery, Change
from fishweir.catalog.query_inserter import bound_shape
from fishweir.delivery.options import BadArgument
from fishweir.delivery.outputs.registry import Outputs
from fishweir.engine.bulk import Bound, Queries, Stored, bind_queries, kind_of, to_uniform
from fishweir.engine.changes import with_changes
from fishweir.engine.columns_read import columns_read
from fishweir.engine.conditions import emptiness
from fishweir.engine.contradictions import never_fires
from fishweir.engine.feed_registration import FeedRegistration
from fishweir.engine.feeds import Feeds
from fishweir.engine.ordering import Unordered, with_orders
from fishweir.engine.preference_check import unknown_pattern
from fishweir.engine.published import Published
from fishweir.engine.statement_errors import quoted, statement_error
from fishweir.engine.timestamp_columns import dated_slots, time_text
from fishweir.errors import QueryError, SourceError, SourceRefused
from fishweir.guard import GuardError
from fishweir.intake import check_source, is_url, without_credentials


class Registration:
    """Binds and stores statements within one change of the catalog."""

    def __init__(
        self, change: Change, outputs: Outputs, base: Path, now: float | None = None, defaults: Schedule = ON_CHANGE
    ) -> None:
        self.change, self.outputs, self.base, self.defaults = change, outputs, base, defaults
        change.subscribers.now = time.time() if now is None else now
        self.streams = change.streams()
        self.feeds = Feeds(change, self.streams, self._declare_feed)
        self.published = Published(change, self.streams, self._add_stream)
        self.registering = FeedRegistration(
            change, self.streams, self.feeds, base, self._add_stream, self._add_derived, self.scheduled, outputs
        )
        self.derived: set[str] = set()
        self._bound: dict[int, Bound] = {}
        self._bound_shapes: dict[int, Bound] = {}
        self._resolved: dict[Action, Action] = {}

    def run(self, statements: Iterable[Stored]) -> list[str]:
        """Stores the statements in order and returns the names of the queries they create."""
        names: list[str] = []
        for kind, group in groupby(statements, kind_of):
            if kind == "query":
                names += self.add_queries(group)  # type: ignore[arg-type]
            elif kind == "drop":
                self.drop_many([statement.name for statement in group if isinstance(statement, DropQuery)])
            elif kind == "subscribe":
                self.registering.subscribe(group)  # type: ignore[arg-type]
            elif kind == "unsubscribe":
                self.registering.unsubscribe(group)  # type: ignore[arg-type]
            else:
                for statement in group:
                    names += self._other(statement)  # type: ignore[arg-type]
        return names

    def add_queries(self, statements: Iterable[CreateQuery | CreateFeed | Queries]) -> Iterator[str]:
        """Adds the queries and returns the names of those that users wrote."""
        return self.add_uniform(to_uniform(statements))

    def add_uniform(self, given: Iterable[Queries]) -> Iterator[str]:
        """The same for queries that are known to differ only in names and constants."""
        names = self.change.add_uniform(chain.from_iterable(bind_queries(self, some) for some in given))
        return (name for name in names if name not in self.derived)

    def bound_of(self, statement: CreateQuery) -> Bound:
        """The checked shape of a bound statement."""
        return self._bound_shapes[id(statement.shape)]

    def publish(self, first: CreateQuery, names: Sequence[str | None], constants: Sequence[Any]) -> None:
        """Makes these queries available to readers by their names."""
        given = [str(name) for name in names]
        if first.feed is not None:
            self.feeds.publish(first.feed, given, constants)
        self.published.publish(first, given)

    def _other(self, statement: Statement) -> list[str]:
        match statement:
            case CreateStream(stream):
                self._create_stream(statement, stream)
            case CreateFeed():
                return self.replace_feed(to_query(statement))
            case RegisterFeed():
                self.registering.register(statement)
            case DropFeed(name):
                self._drop(name, feed=True)
            case DropQueries(pattern):
                self.drop_many([name for name in self.change.names_like(pattern) if not name.startswith(DERIVED)])
        return []

    def replace_feed(self, statement: CreateQuery) -> list[str]:
        """`create or replace feed`: readers of the feed are bound again, with effect from the next micro-batch."""
        before = self.change.publications.published(name := str(statement.name))
        if before is None:
            return list(self.add_queries([statement]))
        if before.text != statement.text:
            self._bound.clear()
            read = self.change.sources(name)
            queries = self.feeds.replaced(statement)
            self.published.check_cycle(statement, reads(Publication(statement.shape)))  # type: ignore[arg-type]
            self.change.replace_queries([uniform([self.bind(query)]) for query in queries])
            self.published.sweep(read)
        return [name]

    def drop_many(self, names: Sequence[str]) -> None:
        """Drops queries in order. Those without readers (most of them) are dropped together."""
        active = self.change.active(names)
        read = self._read_names() if any(query.published for query in active.values()) else set()
        plain: list[ActiveQuery] = []
        for name in names:
            found = active.pop(name, None)
            if found is None:
                self._drop_plain(plain)
                plain = []
                self.change.drop(name)  # a paused query, or an unknown name
                continue
            if found.published and name in read:
                self._drop_plain(plain)
                plain = []
                self._drop(name)
            else:
                plain.append(found)
        self._drop_plain(plain)

    def _drop_plain(self, some: Sequence[ActiveQuery]) -> None:
        if some:
            self.change.drop_many([query.number for query in some])
            gone = [query.name for query in some if query.published]
            if gone:
                self.feeds.forget()
                self.published.forget(gone)
            if any(name.startswith(DERIVED) for name in self.streams):
                self.published.sweep(self.change.sources_of(query.shape for query in some))

    def _read_names(self) -> set[str]:
        """The names that have, or had, readers or subscribers."""
        streams = {name for stream in self.streams.values() for name in (stream.name, stream.virtual) if name}
        return streams | self.change.publications.read_names() | self.change.subscribers.feeds()

    def _drop(self, name: str, feed: bool = False) -> None:
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
        """Drops expired queries, and those that existed only for them."""
        self.change.expire(now)
        self.published.sweep(list(self.streams))

    def _create_stream(self, statement: CreateStream, stream: StreamDefinition) -> None:
        try:
            self._add_stream(replace(statement, stream=self._absolute(stream)))
        except (SourceError, GuardError) as error:
            word = quoted(statement, stream.path or "")
            raise statement_error(statement, str(error), word, kind=SourceRefused) from error

    def _add_stream(self, statement: CreateStream) -> None:
        name, virtual = statement.stream.name, statement.stream.virtual
        if virtual != name and self.feeds.is_published(name):
            raise QueryError(f"stream {name}: there is already a feed with this name")
        if virtual != name and name in self.published:
            raise QueryError(f"stream {name}: there is already a published query with this name")
        if name not in self.streams and virtual != name and self.change.shape(name) is not None:
            raise QueryError(f"stream {name}: there is already a query with this name")
        if name.startswith(DERIVED) and virtual != name:
            raise QueryError(f"stream {name}: names with '{DERIVED}' are reserved for chained joins")
        if statement.stream.name not in self.streams:
            check_source(statement.stream, self.base, self.outputs.guard)
        self.change.add_stream(statement)
        self.streams[statement.stream.name] = statement.stream

    def _absolute(self, stream: StreamDefinition) -> StreamDefinition:
        """A stream with an absolute path, since the job may run in another folder."""
        if stream.path is None or "://" in stream.path:
            return stream
        return replace(stream, path=os.path.abspath(self.base / stream.path))

    def bind(self, statement: CreateQuery) -> CreateQuery:
        """Binds a statement. A shape and an action are checked once, however many queries have them."""
        statement = own_query(statement)
        if isinstance(statement.shape, FeedQuery):
            statement = self.feeds.bound(statement)
        key = id(statement.shape)
        if key not in self._bound:
            written = bound_shape(statement)
            if (shape := with_changes(written, self.streams)) is not written:
                statement = replace(statement, shape=shape)
            sources = bound_shape(statement).sources
            for source in sources:
                if not source.dtd and source.name not in self.streams:
                    self._declare(statement, source.name)
            self._check_columns(statement)
            shape = self._with_orders(statement)
            assert not isinstance(shape, FeedQuery), "it is resolved to its sources"
            try:
                to_normals(shape)
            except QueryError as error:
                raise self._refused(statement, f"cannot be planned: {error}") from error
            bound = Bound(written, shape, dated_slots(shape, self.streams), emptiness(shape))
            self._bound[key] = self._bound_shapes[id(shape)] = bound
        bound = self._bound[key]
        actions = tuple([self.resolved(statement, action) for action in statement.actions])
        if (unknown := unknown_pattern(statement)) is not None:
            raise self._refused(statement, *unknown, "pref")
        if bound.shape is not bound.written:
            statement = replace(statement, shape=bound.shape)
        if bound.dated:
            statement = self._with_times(statement, bound.dated)
        never = bound.emptiness.of(statement.constants) if bound.emptiness else None
        if never is not None:
            raise self._refused(statement, f"can never fire: {never.reason}", never.column, "where")
        if statement.name and statement.name.startswith(DERIVED) and not statement.derived:
            reason = f"cannot have this name: names with '{DERIVED}' are reserved for chained joins"
            raise self._refused(statement, reason)
        if statement.name in self.streams and not statement.published:
            reason = f"query {statement.name}: there is already a stream with this name"
            raise statement_error(statement, reason, str(statement.name), "create")
        if statement.published and statement.feed is None:
            self.published.bind(statement, lambda: bound_shape(statement).sources)
        elif statement.published:
            self.published.keep_shape(statement)
        if statement.published and statement.derived:
            self.derived.add(str(statement.name))
        schedule = statement.schedule if statement.derived else self.scheduled(statement.schedule)
        if not statement.actions and schedule == statement.schedule:
            return statement
        return replace(statement, actions=actions, schedule=schedule)

    def scheduled(self, schedule: Schedule) -> Schedule:
        """A schedule completed with the administrator's defaults."""
        given = self.defaults
        if given == ON_CHANGE:
            return schedule
        start = given.start if schedule.start is None else schedule.start
        expire = given.expire if schedule.expire is None else schedule.expire
        return Schedule(start, given.every if schedule.every is None else schedule.every, expire)

    def _add_derived(self, statement: CreateQuery) -> None:
        """Adds a query that exists only for subscribers of a stream."""
        list(self.add_queries([statement]))

    def _check_columns(self, statement: CreateQuery) -> None:
        """Checks that the columns a query reads are declared, and that its patterns can occur."""
        if isinstance(statement.shape, Shape) and statement.shape.formula is None:
            never = never_fires(statement.shape, self.streams)
            if never is not None:
                raise self._refused(statement, never.reason, never.word)
        for source, paths in columns_read(bound_shape(statement)):
            stream = self.streams.get(source.name)
            if stream is None or not stream.is_tuples:
                continue
            declared = {xml_name(name) for name, _ in stream.columns}
            for path in paths:
                if path and (len(path) > 1 or path[0].is_attribute or path[0].name not in declared):
                    raise self._unknown_column(statement, stream, path)

    def _unknown_column(self, statement: CreateQuery, stream: StreamDefinition, path: RelativePath) -> QueryError:
        """The error for an unknown column. A path is written with dots, or quoted with slashes."""
        names = [mark.join(map(str, path)) for mark in "./"]
        name = next((name for name in names if name in statement.text), names[0])
        columns = ", ".join(name for name, _ in stream.columns)
        return self._refused(statement, f"reads {name}; the columns of {stream.name} are {columns}", name)

    def _with_orders(self, statement: CreateQuery) -> Shape | Selection | FeedQuery:
        try:
            return with_orders(bound_shape(statement), self.streams)
        except Unordered as error:
            raise self._refused(statement, error.reason, error.column, "where") from None

    def _with_times(self, statement: CreateQuery, dated: Mapping[int, str]) -> CreateQuery:
        """The statement with constants that are compared with time columns in the stored form of times."""
        constants = list(statement.constants)
        for slot, column in dated.items():
            text = time_text(constants[slot])
            if text is None:
                reason = f"compares {column}, a time, with {constants[slot]}: write it as '2026-05-01T12:00:00Z'"
                raise self._refused(statement, reason, str(constants[slot]))
            constants[slot] = text
        return replace(statement, constants=tuple(constants))

    def resolved(self, statement: CreateQuery, action: Action) -> Action:
        try:
            if action not in self._resolved:
                self._resolved[action] = self.outputs.resolved(action, self.base)
            return self._resolved[action]
        except BadArgument as error:
            raise self._refused(
                statement, f"has an invalid action: {error.reason}", quoted(statement, error.word), "do"
            ) from error

    def _declare(self, statement: CreateQuery, name: str) -> None:
        """Declares a published query or a file that a query names as a stream with that name."""
        if name == statement.name and statement.published:
            raise self._refused(statement, "reads itself", name)
        if self.published.declare(name, self.feeds.is_published(name)):
            return
        if is_url(name):
            if without_credentials(name) != name:
                reason = "reads a URL with a password, which would be the name of the stream; write: create stream"
                raise self._refused(statement, reason, name)
            stream = StreamDefinition(name, path=name, format="xml")
            self._add_stream(CreateStream(stream, text=f"create stream '{name}' from '{name}' format xml"))
            return
        if self._declare_changes(name):
            return
        path = self.base / name
        if not path.is_file():
            raise self._refused(statement, f"reads {name}, which is neither a stream nor a file", name)
        if path.suffix in (".csv", ".json", ".jsonl", ".ndjson", ".parquet"):
            raise self._refused(statement, f"reads {name}; declare its columns with create stream", name)
        stream = self._absolute(StreamDefinition(name, path=name, format="xml"))
        self._add_stream(CreateStream(stream, text=f"create stream '{name}' from '{name}' format xml"))

    def _declare_changes(self, name: str) -> bool:
        """Declares `NAME.changes` of a stream of rows as a stream."""
        rows = self.streams.get(name.removesuffix(SUFFIX))
        if not name.endswith(SUFFIX) or rows is None or rows.rows is None:
            return False
        self._add_stream(CreateStream(changes_stream(rows), text=f"changes of {rows.name}"))
        return True

    def _declare_feed(self, name: str) -> bool:
        """Declares a published query, a change stream or a URL that a query over feeds names as a feed."""
        if self.published.declare(name) or self._declare_changes(name):
            return True
        if not is_url(name):
            return False
        if (shown := without_credentials(name)) != name:
            reason = f"the URL {shown} contains a password and would become the name of the feed"
            raise FeedError(f"{reason}; write: register feed URL as NAME", name)
        stream = StreamDefinition(name, path=name, format="feed")
        self._add_stream(CreateStream(stream, text=f"register feed '{name}' as '{name}'"))
        return True

    def _refused(self, statement: CreateQuery, reason: str, word: str = "", after: str = "") -> QueryError:
        """An error that names the query and, if the word occurs in its text after `after`, the position."""
        subject = f"query {statement.name}" if statement.name and not statement.derived else "the query"
        return statement_error(statement, f"{subject} {reason}", word, after)
