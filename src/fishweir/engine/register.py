"""Registration: statements bound to what there is, then stored, all or nothing.

Binding checks what a parser cannot know: that sources and actions exist. A source that is no declared
stream but an existing file is declared by being named.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from fishweir.algebra.changes import SUFFIX, changes_stream
from fishweir.algebra.clauses import to_normals
from fishweir.algebra.column_joins import block_of
from fishweir.algebra.documents import xml_name
from fishweir.algebra.emptiness import Emptiness, emptiness_of
from fishweir.algebra.feeds import CreateFeed, DropFeed, FeedQuery, RegisterFeed, Selection, Subscribe, Unsubscribe
from fishweir.algebra.formula import Or, RelativePath, paths_of
from fishweir.algebra.nodes import (
    DERIVED,
    ON_CHANGE,
    Action,
    ColumnOutput,
    CreateQuery,
    CreateStream,
    DropQueries,
    DropQuery,
    Schedule,
    Shape,
    Source,
    Statement,
    StreamDefinition,
)
from fishweir.algebra.views import FeedError, Publication, reads
from fishweir.catalog.change import Change, Living, bound_shape
from fishweir.delivery.options import BadArgument
from fishweir.delivery.outputs.registry import Outputs
from fishweir.engine.changes import with_changes
from fishweir.engine.dated import dated_slots, time_text
from fishweir.engine.feeds import Feeds
from fishweir.engine.never import never_fires
from fishweir.engine.ordering import Unordered, with_orders
from fishweir.engine.places import quoted, refused
from fishweir.engine.published import Published
from fishweir.engine.registering import FeedRegistration
from fishweir.errors import QueryError
from fishweir.intake import check_source, is_url, without_credentials


@dataclass(frozen=True, slots=True)
class Bound:
    """What is known of a shape once it is checked: as written and as stored, the constants that are times, and which
    of its conditions might exclude each other."""

    written: Shape | Selection | FeedQuery
    shape: Shape | Selection | FeedQuery
    dated: dict[int, str]
    emptiness: Emptiness | None
    actions: tuple[Action, ...] = ()


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
        self._bound: dict[tuple[int, tuple[Action, ...]], Bound] = {}

    def run(self, statements: Sequence[Statement]) -> list[str]:
        """Stores the statements in order; the names of the queries they create."""
        names: list[str] = []
        for kind, group in groupby(statements, _kind):
            if kind == "query":
                names += self.add_queries(group)  # type: ignore[arg-type]
            elif kind == "drop":
                self.drop_many([statement.name for statement in group if isinstance(statement, DropQuery)])
            else:
                for statement in group:
                    names += self._other(statement)
        return names

    def add_queries(self, statements: Iterable[CreateQuery | CreateFeed]) -> Iterator[str]:
        """Adds the queries; the names of those that somebody has written."""
        names = self.change.add_queries(self.bind(to_query(statement)) for statement in statements)
        return (name for name in names if name not in self.derived)

    def _other(self, statement: Statement) -> list[str]:
        match statement:
            case CreateStream(stream):
                self._add_stream(replace(statement, stream=self._absolute(stream)))
            case CreateFeed():
                return self.replace_feed(to_query(statement))
            case RegisterFeed():
                self.registering.register(statement)
            case Subscribe():
                self.registering.subscribe(statement)
            case Unsubscribe():
                self.registering.unsubscribe(statement)
            case DropFeed(name):
                self._drop(name, feed=True)
            case DropQueries(pattern):
                self.drop_many([name for name in self.change.names_like(pattern) if not name.startswith(DERIVED)])
        return []

    def replace_feed(self, statement: CreateQuery) -> list[str]:
        """`create or replace feed`: what reads the feed is bound anew, with effect from the next micro-batch."""
        before = self.change.publications.published(str(statement.name))
        if before is None:
            return list(self.add_queries([statement]))
        if before.text != statement.text:
            self._bound.clear()
            queries = self.feeds.replaced(statement)
            self.published.check_cycle(statement, reads(Publication(statement.shape)))  # type: ignore[arg-type]
            self.change.replace_queries([self.bind(query) for query in queries])
        return [str(statement.name)]

    def drop_many(self, names: Sequence[str]) -> None:
        """Drops queries in order; those that nobody reads by name, which are most, together."""
        known = self.change.living(names)
        read = self._read_names() if any(living.published for living in known.values()) else set()
        plain: list[Living] = []
        for name in names:
            found = known.pop(name, None)
            if found is None:
                self._drop_plain(plain)
                plain = []
                self.change.drop(name)  # one that is paused, or none
                continue
            if found.published and name in read:
                self._drop_plain(plain)
                plain = []
                self._drop(name)
            else:
                plain.append(found)
        self._drop_plain(plain)

    def _drop_plain(self, some: Sequence[Living]) -> None:
        if some:
            self.change.drop_many([living.number for living in some])
            gone = [living.name for living in some if living.published]
            if gone:
                self.feeds.forget()
                self.published.forget(gone)
            self.published.sweep(self.change.sources_of(living.shape for living in some))

    def _read_names(self) -> set[str]:
        """The names that somebody reads, or has read, or subscribes to."""
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
        """Drops what has expired, and what was there for it alone."""
        self.change.expire(now)
        self.published.sweep(list(self.streams))

    def _add_stream(self, statement: CreateStream) -> None:
        name, virtual = statement.stream.name, statement.stream.virtual
        if virtual != name and self.feeds.is_published(name):
            raise QueryError(f"stream {name}: there is already a feed of that name")
        if virtual != name and name in self.published:
            raise QueryError(f"stream {name}: there is already a published query of that name")
        if name not in self.streams and virtual != name and self.change.shape(name) is not None:
            raise QueryError(f"stream {name}: there is already a query of that name")
        if name.startswith(DERIVED) and virtual != name:
            raise QueryError(f"stream {name}: names with '{DERIVED}' are reserved for chained joins")
        if statement.stream.name not in self.streams:
            check_source(statement.stream, self.base, self.outputs.guard)
        self.change.add_stream(statement)
        self.streams[statement.stream.name] = statement.stream

    def _absolute(self, stream: StreamDefinition) -> StreamDefinition:
        """A path is stored whole: the job may run in another folder."""
        if stream.path is None or "://" in stream.path:
            return stream
        return replace(stream, path=os.path.abspath(self.base / stream.path))

    def bind(self, statement: CreateQuery) -> CreateQuery:
        """Checks a shape and an action once, however many queries have them."""
        if isinstance(statement.shape, FeedQuery):
            statement = self.feeds.bound(statement)
        key = (id(statement.shape), statement.actions)
        if key not in self._bound:
            written = statement.shape
            statement = replace(statement, shape=with_changes(written, self.streams))
            sources = bound_shape(statement).sources
            for source in sources:
                if not source.dtd and source.name not in self.streams:
                    self._declare(statement, source.name)
            self._check_columns(statement)
            shape = self._with_orders(statement)
            try:
                to_normals(bound_shape(replace(statement, shape=shape)))
            except QueryError as error:
                raise self._refused(statement, f"cannot be planned: {error}") from error
            actions = tuple(self.resolved(statement, action) for action in statement.actions)
            dated, emptiness = dated_slots(shape, self.streams), _emptiness(shape)
            self._bound[key] = Bound(written, shape, dated, emptiness, actions)
        bound = self._bound[key]
        if bound.shape is not bound.written:
            statement = replace(statement, shape=bound.shape)
        if bound.dated:
            statement = self._with_times(statement, bound.dated)
        never = bound.emptiness.of(statement.constants) if bound.emptiness else None
        if never is not None:
            raise self._refused(statement, f"can never fire: {never.reason}", never.column, "where")
        if statement.name and statement.name.startswith(DERIVED) and not statement.derived:
            raise self._refused(
                statement, f"cannot have this name: names with '{DERIVED}' are reserved for chained joins"
            )
        if statement.name in self.streams and not statement.published:
            reason = f"query {statement.name}: there is already a stream of that name"
            raise refused(statement, reason, str(statement.name), "create")
        if statement.published and statement.feed is None:
            self.published.bind(statement, lambda: bound_shape(statement).sources)
            if statement.derived:
                self.derived.add(str(statement.name))
        elif statement.published:
            self.published.keep_shape(statement)
        schedule = self.scheduled(statement.schedule)
        if not statement.actions and schedule == statement.schedule:
            return statement
        return replace(statement, actions=bound.actions, schedule=schedule)

    def scheduled(self, schedule: Schedule) -> Schedule:
        """What a statement does not say is as the administrator wants it."""
        given = self.defaults
        if given == ON_CHANGE:
            return schedule
        start = given.start if schedule.start is None else schedule.start
        expire = given.expire if schedule.expire is None else schedule.expire
        return Schedule(start, given.every if schedule.every is None else schedule.every, expire)

    def _add_derived(self, statement: CreateQuery) -> None:
        """A query that is only there for those who subscribe to a stream."""
        list(self.add_queries([statement]))

    def _check_columns(self, statement: CreateQuery) -> None:
        """What a query reads of declared tuples must be among their columns, and patterns must be able to be there."""
        if isinstance(statement.shape, Shape) and statement.shape.formula is None:
            never = never_fires(statement.shape, self.streams)
            if never is not None:
                raise self._refused(statement, never.reason, never.word)
        for source, paths in columns_read(statement.shape):
            stream = self.streams.get(source.name)
            if stream is None or not stream.is_tuples:
                continue
            known = {xml_name(name) for name, _ in stream.columns}
            for path in paths:
                if path and (len(path) > 1 or path[0].is_attribute or path[0].name not in known):
                    raise self._unknown_column(statement, stream, path)

    def _unknown_column(self, statement: CreateQuery, stream: StreamDefinition, path: RelativePath) -> QueryError:
        """A path is written with dots, or quoted with slashes."""
        names = [mark.join(map(str, path)) for mark in "./"]
        name = next((name for name in names if name in statement.text), names[0])
        columns = ", ".join(name for name, _ in stream.columns)
        return self._refused(statement, f"reads {name}; the columns of {stream.name} are {columns}", name)

    def _with_orders(self, statement: CreateQuery) -> Shape | Selection | FeedQuery:
        try:
            return with_orders(statement.shape, self.streams)
        except Unordered as error:
            raise self._refused(statement, error.reason, error.column, "where") from None

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

    def resolved(self, statement: CreateQuery, action: Action) -> Action:
        try:
            return self.outputs.resolved(action, self.base)
        except BadArgument as error:
            raise self._refused(
                statement, f"cannot be taken: {error.reason}", quoted(statement, error.word), "do"
            ) from error

    def _declare(self, statement: CreateQuery, name: str) -> None:
        """A published query, or a file that a query names, is a stream of that name: one document, or its tuples."""
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
        rows = self.streams.get(name.removesuffix(SUFFIX))
        if name.endswith(SUFFIX) and rows is not None and rows.rows is not None:
            self._add_stream(CreateStream(changes_stream(rows), text=f"changes of {rows.name}"))
            return
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
        if (shown := without_credentials(name)) != name:
            reason = f"the URL {shown} has a password, and would be the name of the feed"
            raise FeedError(f"{reason}; write: register feed URL as NAME", name)
        stream = StreamDefinition(name, path=name, format="feed")
        self._add_stream(CreateStream(stream, text=f"register feed '{name}' as '{name}'"))
        return True

    def _refused(self, statement: CreateQuery, reason: str, word: str = "", after: str = "") -> QueryError:
        """An error that names the query and, where the word stands in its text, behind `after`, the place."""
        subject = f"query {statement.name}" if statement.name else "the query"
        return refused(statement, f"{subject} {reason}", word, after)


def _kind(statement: Statement) -> str:
    """What is stored together, where it stands together in a script."""
    if isinstance(statement, CreateQuery) or (isinstance(statement, CreateFeed) and not statement.replace):
        return "query"
    return "drop" if isinstance(statement, DropQuery) else ""


def to_query(statement: CreateQuery | CreateFeed) -> CreateQuery:
    """A feed is a query that others may read by its name."""
    if isinstance(statement, CreateQuery):
        return statement
    return CreateQuery(
        statement.query, statement.constants, statement.name, text=statement.text, line=statement.line, published=True
    )


def columns_read(shape: Shape | Selection | FeedQuery) -> Iterator[tuple[Source, list[RelativePath]]]:
    """The columns that a query in SQL reads of each of its sources."""
    if isinstance(shape, Selection) and shape.columns:
        shown = [path for _, path in shape.output.columns] if shape.output else []
        for part in shape.filters:
            yield part.source, [*shown, *paths_of(part.formula)]
    if isinstance(shape, Shape) and shape.formula is not None:
        read = list(paths_of(shape.formula))
        for i, block in enumerate(shape.blocks):
            own = [column.path for column in shape.columns if isinstance(column, ColumnOutput) and column.block == i]
            yield block.source, [*own, *(path[1:] for path in read if block_of(path) == i)]


def _emptiness(shape: Shape | Selection | FeedQuery) -> Emptiness | None:
    """Of conditions on columns; a feed's item may have several values at a path, each for one of its conditions."""
    if isinstance(shape, Selection) and shape.columns:
        return emptiness_of(Or(tuple(part.formula for part in shape.filters)))
    if isinstance(shape, Shape) and shape.formula is not None:
        return emptiness_of(shape.formula)
    return None
