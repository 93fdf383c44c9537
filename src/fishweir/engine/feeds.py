"""Feeds at registration: expands views to their sources, and protects feeds that have readers.

A published feed is a query that others may read by its name. A query over feeds is stored in two forms: with all its
views expanded, so that the plan contains only sources and conditions, and as written, so that it can be bound again
when a feed that it reads is replaced. Queries that differ only in constants are resolved once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fishweir.algebra.clauses import to_normals
from fishweir.algebra.feeds import FeedName, FeedQuery, Selection
from fishweir.algebra.nodes import Constant, CreateQuery, Slot, StreamDefinition
from fishweir.algebra.views import FeedError, Publication, Resolved, dependencies, reads, resolve
from fishweir.catalog.change import Change
from fishweir.engine.statement_errors import statement_error
from fishweir.errors import QueryError
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class ExpandedFeed:
    """An expanded shape: the plan's shape and the constants of its views, which follow its own."""

    query: FeedQuery
    selection: Selection
    inherited: tuple[Constant, ...]
    names: frozenset[str]


class Feeds:
    """The feeds within one change; `declare` creates a source for a URL that a query names."""

    def __init__(self, change: Change, streams: dict[str, StreamDefinition], declare: Callable[[str], bool]) -> None:
        self.change, self.streams, self.declare = change, streams, declare
        self._found: dict[str, Publication | None] = {}
        self._resolved: dict[str, Resolved] = {}
        self._expanded: dict[int, ExpandedFeed] = {}

    def is_published(self, name: str) -> bool:
        return self._publication(name) is not None

    def bound(self, statement: CreateQuery) -> CreateQuery:
        """The query with its views expanded and its constants in one list."""
        query = statement.shape
        assert isinstance(query, FeedQuery)
        stream = self.streams.get(str(statement.name))
        if statement.published and stream is not None and stream.virtual != stream.name:
            raise statement_error(
                statement, f"feed {stream.name}: there is already a stream with this name", stream.name
            )
        folded = self._expanded.get(id(query))
        if folded is None or statement.name in folded.names:
            folded = self._expanded[id(query)] = self._expand(statement, query)
        if statement.published:
            self._found[str(statement.name)] = Publication(query, statement.constants)
        constants = statement.constants + folded.inherited
        return replace(statement, shape=folded.selection, constants=constants, feed=query)

    def read_by(self, query: FeedQuery) -> frozenset[str]:
        """The names that a bound query reads, including its views."""
        return self._expanded[id(query)].names

    def publish(self, query: FeedQuery, names: Sequence[str], constants: Sequence[tuple[Constant, ...]]) -> None:
        """Publishes feeds that differ only in names and constants."""
        self._found |= {name: Publication(query, own) for name, own in zip(names, constants, strict=True)}

    def replaced(self, statement: CreateQuery) -> list[CreateQuery]:
        """The feed and all queries that read it, directly or through others, bound to its new definition."""
        assert isinstance(statement.shape, FeedQuery)
        name = str(statement.name)
        self.forget()
        self._found[name] = Publication(statement.shape, statement.constants)
        try:
            dependencies(name, self._edges)
        except FeedError as error:
            raise statement_error(statement, f"feed {name}: {error.reason}", error.feed, "from") from error
        bound, checked = [self.bound(statement)], set[int]()
        for reader in self._all_readers(name):
            try:
                query = self.bound(reader)
                if id(query.shape) not in checked:
                    to_normals(query.shape)  # type: ignore[arg-type]
                checked.add(id(query.shape))
                bound.append(query)
            except QueryError as error:
                raise QueryError(f"feed {name} cannot be replaced: its reader {reader.name}: {error.reason}") from error
        return bound

    def check_unread(self, name: str) -> None:
        """Raises QueryError if the feed has readers or subscribers."""
        readers = self.change.publications.reader_names(name)
        readers += sorted(stream.name for stream in self.streams.values() if stream.virtual == name != stream.name)
        if self._is_stream(name):
            readers += self.change.reading(name)
        readers = list(dict.fromkeys(readers))
        if readers:
            shown = ", ".join(readers[:5]) + (" and others" if len(readers) > 5 else "")
            raise QueryError(f"the feed {name} is read by {shown}; drop them first")

    def withdraw(self, name: str) -> None:
        """Removes the stream of a feed that is about to be dropped."""
        self.check_unread(name)
        self.forget()
        if self._is_stream(name):
            self.change.drop_stream(name)
            del self.streams[name]

    def _is_stream(self, name: str) -> bool:
        """Whether queries of other languages read the feed: they read its items as a stream."""
        return name in self.streams and self.streams[name].virtual == name

    def forget(self) -> None:
        """Clears the cache, since feeds may have changed."""
        self._found.clear()
        self._resolved.clear()
        self._expanded.clear()

    def _expand(self, statement: CreateQuery, query: FeedQuery) -> ExpandedFeed:
        name = statement.name or "the query"
        own = Publication(query, statement.constants)

        def find(read: str) -> Publication | None:
            return own if read == name else self._find(read)

        try:
            self._resolved.pop(name, None)
            whole = resolve(name, find, self._resolved)
        except FeedError as error:
            subject = "feed" if statement.published else "query"
            raise statement_error(statement, f"{subject} {name}: {error.reason}", error.feed, "from") from error
        if not statement.published:
            self._resolved.pop(name, None)
        types = tuple(Slot(i, "string" if isinstance(c, str) else "number") for i, c in enumerate(whole.constants))
        selection = Selection(whole.filters, slots=types, joins=whole.joins, distinct=query.distinct)
        return ExpandedFeed(query, selection, whole.constants[len(statement.constants) :], frozenset(reads(own)))

    def _publication(self, name: str) -> Publication | None:
        if name not in self._found:
            found = self.change.publications.published(name)
            self._found[name] = Publication(found.shape, found.constants) if found else None  # type: ignore[arg-type]
        return self._found[name]

    def _find(self, name: str) -> Publication | None:
        """The publication of a name; None for a source."""
        found = self._publication(name)
        if found is None and name not in self.streams and not self.declare(name):
            raise FeedError(f"there is no feed '{name}'", name)
        return found

    def _edges(self, name: str) -> Publication | None:
        """The same as `_find`, but a materialized feed reads the feed that it is derived from."""
        stream = self.streams.get(name)
        if stream is not None and stream.virtual not in (None, name):
            return Publication(FeedQuery(FeedName(stream.virtual)))
        return self._find(name)

    def _all_readers(self, name: str) -> list[CreateQuery]:
        found: dict[str, CreateQuery] = {}
        border, read = [name], self.change.publications.read_names()
        while border:
            for reader in self.change.publications.readers(border.pop()):
                if reader.name not in found and reader.name != name:
                    found[str(reader.name)] = reader
                    border += [str(reader.name)] if reader.name in read else []
        return list(found.values())
