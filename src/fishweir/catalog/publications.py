"""Queries over feeds in their original form, found by name and by the feeds that they read.

The shape of a query contains the feeds that it names, so queries that differ only in constants share one row of
`publications` and its rows of `reads`. Finding the readers of a feed costs time per shape, not per query.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from fishweir.algebra.codec import from_json, to_json
from fishweir.algebra.feeds import FeedQuery
from fishweir.algebra.nodes import CreateQuery, Schedule
from fishweir.algebra.views import Publication
from fishweir.algebra.views import reads as names_read
from fishweir.catalog.schema import publications, queries, reads

_COLUMNS = (
    queries.c.name, queries.c.constants, queries.c.text, queries.c.start, queries.c.every, queries.c.expire,
    queries.c.published, queries.c.publication,
)  # fmt: skip


class Publications:
    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self._ids: dict[int, tuple[FeedQuery, int]] = {}
        self._queries: dict[int, FeedQuery] = {}

    def id_of(self, query: FeedQuery) -> int:
        """The row of a shape, created if it does not exist; queries of one shape pass the same object."""
        known = self._ids.get(id(query))
        if known is None:
            known = self._ids[id(query)] = (query, self._store(query))
        return known[1]

    def published(self, name: str) -> CreateQuery | None:
        """The active feed of that name, in its original form."""
        chosen = queries.c.published & (queries.c.name == name) & queries.c.dropped.is_(None)
        chosen &= queries.c.publication.is_not(None)
        row = self.connection.execute(sa.select(*_COLUMNS).where(chosen)).first()
        return self._statement(row) if row else None

    def readers(self, name: str) -> Iterator[CreateQuery]:
        """The active queries that name this feed, published or not."""
        for row in self.connection.execute(sa.select(*_COLUMNS).where(_reading(name))).all():
            yield self._statement(row)

    def read_names(self) -> set[str]:
        """All names that any query, active or dropped, uses as a feed: few, regardless of the number of queries."""
        return set(self.connection.scalars(sa.select(reads.c.feed).distinct()))

    def reader_names(self, name: str, most: int = 6) -> list[str]:
        chosen = sa.select(queries.c.name).where(_reading(name)).order_by(queries.c.number).limit(most)
        return list(self.connection.scalars(chosen))

    def _store(self, query: FeedQuery) -> int:
        text = json.dumps(to_json(query))
        found = self.connection.scalar(sa.select(publications.c.id).where(publications.c.query == text))
        if found is None:
            inserted = self.connection.execute(sa.insert(publications).values(query=text)).inserted_primary_key
            assert inserted is not None
            found = inserted[0]
            named = [{"publication": found, "feed": feed} for feed in sorted(set(names_read(Publication(query))))]
            self.connection.execute(sa.insert(reads), named)
        return int(found)

    def _query(self, id: int) -> FeedQuery:
        if id not in self._queries:
            text = self.connection.scalar(sa.select(publications.c.query).where(publications.c.id == id))
            self._queries[id] = from_json(json.loads(str(text)))
        return self._queries[id]

    def _statement(self, row: Any) -> CreateQuery:
        query = self._query(row.publication)
        own = tuple(json.loads(row.constants))[: len(query.slots)]
        schedule = Schedule(row.start, row.every, row.expire)
        return CreateQuery(query, own, row.name, (), schedule, row.text, published=row.published)


def _reading(name: str) -> sa.ColumnElement[bool]:
    over = sa.select(reads.c.publication).where(reads.c.feed == name)
    return queries.c.publication.in_(over) & queries.c.dropped.is_(None)
