"""Registration: statements bound to what there is, then stored, all or nothing.

Binding checks what a parser cannot know: that sources and actions exist. A source that is no declared
stream but an existing file is declared by being named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from fishweir.algebra.clauses import to_normals
from fishweir.algebra.feeds import CreateFeed, DropFeed, FeedQuery, RegisterFeed, Selection, Subscribe
from fishweir.algebra.nodes import (
    Action,
    CreateQuery,
    CreateStream,
    DropQuery,
    Shape,
    Source,
    Statement,
    StreamDefinition,
)
from fishweir.catalog.change import Change
from fishweir.delivery.actions import Actions
from fishweir.engine.feeds import Feeds
from fishweir.errors import QueryError
from fishweir.intake import check_source


class Registration:
    """Binds and stores statements within one change of the catalog."""

    def __init__(self, change: Change, actions: Actions, base: Path) -> None:
        self.change, self.actions, self.base = change, actions, base
        self.streams = change.streams()
        self.feeds = Feeds(change, self.streams)
        self._bound: dict[tuple[int, Action | None], object] = {}

    def run(self, statements: Sequence[Statement]) -> list[str]:
        """Stores the statements in order; the names of the queries they create."""
        names: list[str] = []
        for kind, group in groupby(statements, type):
            if kind is CreateQuery:
                names += self.add_queries(group)  # type: ignore[arg-type]
                continue
            for statement in group:
                names += self._other(statement)
        return names

    def add_queries(self, statements: Iterable[CreateQuery]) -> Iterator[str]:
        return self.change.add_queries(self._bind(statement) for statement in statements)

    def _other(self, statement: Statement) -> list[str]:
        match statement:
            case CreateStream(stream):
                self._add_stream(replace(statement, stream=self._absolute(stream)))
            case DropQuery(name):
                if name in self.feeds.published:
                    self.feeds.withdraw(name)
                self.change.drop(name)
            case CreateFeed():
                self.feeds.publish(statement)
                return list(self.add_queries([CreateQuery(statement.query, statement.constants, statement.name,
                                                          text=statement.text, line=statement.line)]))  # fmt: skip
            case RegisterFeed() | Subscribe():
                self.feeds.refuse(statement)
            case DropFeed(name):
                self.feeds.withdraw(name)
                self.change.drop(name)
        return []

    def _add_stream(self, statement: CreateStream) -> None:
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
            statement = self.feeds.resolved(statement)
        key = (id(statement.shape), statement.action)
        if key not in self._bound:
            sources = sources_of(statement.shape)
            if isinstance(statement.shape, Shape) and len(sources) > 1:
                joined = " and ".join(str(source) for source in sources)
                raise self._refused(statement, f"joins {joined}; joins between sources are not supported yet")
            for source in sources:
                if not source.dtd and source.name not in self.streams:
                    self._declare(statement, source.name)
            to_normals(statement.shape)
            if statement.action is not None:
                self._check_action(statement, statement.action)
            self._bound[key] = statement.shape
        if statement.action is None:
            return statement
        return replace(statement, action=self.actions.resolved(statement.action, self.base))

    def _check_action(self, statement: CreateQuery, action: Action) -> None:
        try:
            self.actions.check(action)
        except QueryError as error:
            raise self._refused(statement, f"cannot be taken: {error}", action.name) from error

    def _declare(self, statement: CreateQuery, name: str) -> None:
        """A file that a query names is a stream of that name: one document, or its tuples."""
        if "://" in name:
            raise self._refused(statement, f"reads {name}; URLs are not supported yet", name)
        path = self.base / name
        if not path.is_file():
            raise self._refused(statement, f"reads {name}, which is neither a stream nor a file", name)
        if path.suffix in (".csv", ".json", ".jsonl", ".ndjson", ".parquet"):
            raise self._refused(statement, f"reads {name}; declare its columns with create stream", name)
        stream = self._absolute(StreamDefinition(name, path=name, format="xml"))
        self._add_stream(CreateStream(stream, text=f"create stream '{name}' from '{name}' format xml"))

    def _refused(self, statement: CreateQuery, reason: str, word: str = "") -> QueryError:
        """An error that names the query and, where the word stands in its text, the place."""
        subject = f"query {statement.name}" if statement.name else "the query"
        at = statement.text.lower().find(word.lower()) if word else -1
        if at < 0:
            return QueryError(f"{subject} {reason}")
        before = statement.text[:at]
        line, column = statement.line + before.count("\n"), at - (before.rfind("\n") + 1) + 1
        padding = "\n" * (statement.line - 1)
        return QueryError(f"{subject} {reason}", padding + statement.text, line, column)


def sources_of(shape: Shape | Selection | FeedQuery) -> list[Source]:
    if isinstance(shape, Shape):
        return [block.source for block in shape.blocks]
    assert isinstance(shape, Selection)
    return [part.source for part in shape.filters]
