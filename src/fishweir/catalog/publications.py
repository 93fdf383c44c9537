"""Queries over feeds in their original form, by name and by the feeds that they read.

The shape of a query contains the feeds that it names, so queries that differ only in constants share one row of
`publications` and its rows of `reads`. Finding the readers of a feed costs time per shape, not per query.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fishweir.algebra.codec import from_json, to_json
from fishweir.algebra.feeds import FeedQuery
from fishweir.algebra.nodes import CreateQuery, Schedule
from fishweir.algebra.views import Publication
from fishweir.algebra.views import reads as names_read
from fishweir.catalog.database import Connection

_SELECT = "select name, constants, text, start, every, expire, published, publication from queries"
_READING = "publication in (select publication from reads where feed = :feed) and dropped is null"


class Publications:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._ids: dict[int, tuple[FeedQuery, int]] = {}
        self._queries: dict[int, FeedQuery] = {}

    def id_of(self, query: FeedQuery) -> int:
        """The id of a shape's row, which is created if it does not exist. Queries of one shape pass the same object."""
        cached = self._ids.get(id(query))
        if cached is None:
            cached = self._ids[id(query)] = (query, self._store(query))
        return cached[1]

    def published(self, name: str) -> CreateQuery | None:
        """The active feed with this name, in its original form."""
        chosen = "published and name = :name and dropped is null and publication is not null"
        row = self.connection.execute(f"{_SELECT} where {chosen}", name=name).first()
        return self._statement(row) if row else None

    def readers(self, name: str) -> Iterator[CreateQuery]:
        """The active queries that name this feed, published or not."""
        for row in self.connection.execute(f"{_SELECT} where {_READING}", feed=name):
            yield self._statement(row)

    def read_names(self) -> set[str]:
        """All names that any query, active or dropped, uses as a feed: few, regardless of the number of queries."""
        return set(self.connection.scalars("select distinct feed from reads"))

    def active_names(self) -> set[str]:
        """All names that active queries use as a feed."""
        active = "select publication from queries where publication is not null and dropped is null"
        return set(self.connection.scalars(f"select distinct feed from reads where publication in ({active})"))

    def reader_names(self, name: str, most: int = 6) -> list[str]:
        chosen = f"select name from queries where {_READING} order by number limit :most"
        return self.connection.scalars(chosen, feed=name, most=most)

    def _store(self, query: FeedQuery) -> int:
        text = json.dumps(to_json(query))
        found = self.connection.scalar("select id from publications where query = :text", text=text)
        if found is None:  # other writers are locked out, so this id is free
            found = int(self.connection.scalar("select max(id) from publications") or 0) + 1
            self.connection.insert("publications", id=found, query=text)
            named = [(found, feed) for feed in sorted(set(names_read(Publication(query))))]
            self.connection.insert_tuples("reads", ("publication", "feed"), named)
        return int(found)

    def _query(self, id: int) -> FeedQuery:
        if id not in self._queries:
            text = self.connection.scalar("select query from publications where id = :id", id=id)
            self._queries[id] = from_json(json.loads(str(text)))
        return self._queries[id]

    def _statement(self, row: Any) -> CreateQuery:
        query = self._query(row.publication)
        own = tuple(json.loads(row.constants))[: len(query.slots)]
        schedule = Schedule(row.start, row.every, row.expire)
        return CreateQuery(query, own, row.name, (), schedule, row.text, published=bool(row.published))
