"""Feeds at registration: views over views come down to their sources; what is read cannot go away.

A published feed is a query of its own, and its definition is kept so that later feeds may read it. A
query over feeds is stored with all its views folded in: the plan sees sources and conditions alone.
"""

from __future__ import annotations

from dataclasses import replace

from fishweir.algebra.feeds import CreateFeed, FeedQuery, RegisterFeed, Selection, Subscribe
from fishweir.algebra.nodes import CreateQuery, Slot, StreamDefinition
from fishweir.algebra.views import Publication, definitions, readers, resolve
from fishweir.catalog.change import Change
from fishweir.errors import QueryError


class Feeds:
    """The published feeds as one change sees them."""

    def __init__(self, change: Change, streams: dict[str, StreamDefinition]) -> None:
        self.change, self.streams = change, streams
        self.published = change.feeds()

    def publish(self, statement: CreateFeed) -> None:
        if statement.name in self.streams:
            raise QueryError(f"feed {statement.name}: there is a stream of that name")
        self.change.add_feed(statement)
        self.published[statement.name] = Publication(statement.query, statement.constants)

    def check_unread(self, name: str) -> None:
        reading = readers(name, self.published) if name in self.published else set()
        if reading:
            raise QueryError(f"the feed {name} is read by {', '.join(sorted(reading))}; drop them first")

    def withdraw(self, name: str) -> None:
        """Takes a feed's definition away, unless others read it."""
        self.check_unread(name)
        self.change.drop_feed(name)
        self.published.pop(name, None)

    def refuse(self, statement: RegisterFeed | Subscribe) -> None:
        what = "register feed" if isinstance(statement, RegisterFeed) else "subscribe"
        raise QueryError(f"line {statement.line}: {what} is not supported yet: {statement.text[:80]}")

    def resolved(self, statement: CreateQuery) -> CreateQuery:
        """The query with its views folded in and its constants in one list."""
        query = statement.shape
        assert isinstance(query, FeedQuery)
        if query.joins:
            raise QueryError(f"feed {statement.name}: joins between feeds are not supported yet")
        name = statement.name or "the query"
        find = definitions({**self.published, name: Publication(query, statement.constants)}, self._is_source)
        whole = resolve(name, find)
        types = (Slot(i, "string" if isinstance(c, str) else "number") for i, c in enumerate(whole.constants))
        selection = Selection(whole.filters, None, tuple(types), "roses")
        return replace(statement, shape=selection, constants=whole.constants)

    def _is_source(self, name: str) -> bool:
        return name in self.streams
