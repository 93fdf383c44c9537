"""Administration of registered queries: list, pause, resume, change actions."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import sqlalchemy as sa

from fishweir.algebra.nodes import DERIVED, CreateQuery
from fishweir.catalog.bulk_insert import insert_rows
from fishweir.catalog.change import Change
from fishweir.catalog.channels import ChannelSpec
from fishweir.catalog.checksums import SUM
from fishweir.catalog.deliveries import subscriptions
from fishweir.catalog.schema import NOT_YET, queries
from fishweir.catalog.subscribers import SubscriptionRequest
from fishweir.errors import QueryError
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """A query that is registered. `state` is running, paused or waiting (for its start)."""

    name: str
    state: str
    text: str
    start: float | None
    every: float
    expire: float | None
    published: bool


def matches(pattern: str | None, name: str, text: str) -> bool:
    """A pattern with `*` or `?` is matched against names; any other word is searched in names and texts."""
    if pattern is None:
        return True
    if any(mark in pattern for mark in "*?["):
        return fnmatchcase(name, pattern)
    return pattern.lower() in name.lower() or pattern.lower() in text.lower()


def list_queries(connection: sa.Connection, pattern: str | None = None) -> list[QueryInfo]:
    chosen = (queries.c.dropped.is_(None) | queries.c.paused) & queries.c.name.not_like(f"{DERIVED}%")
    found = connection.execute(sa.select(queries).where(chosen).order_by(queries.c.number))
    return [_standing(row) for row in found if matches(pattern, row.name, row.text)]


def _standing(row: Any) -> QueryInfo:
    state = "paused" if row.paused else "waiting" if row.added == NOT_YET else "running"
    return QueryInfo(row.name, state, row.text, row.start, row.every, row.expire, row.published)


def pause(change: Change, name: str) -> None:
    """The query gives no results from the next micro-batch on; its name stays taken."""
    living = (queries.c.name == name) & queries.c.dropped.is_(None)
    paused = sa.update(queries).where(living).values(dropped=change.take(1), paused=True)
    if change.connection.execute(paused).rowcount == 0:
        is_paused = change.is_paused(name)
        raise QueryError(f"the query {name} is already paused" if is_paused else f"there is no query {name}")


def resume(change: Change, name: str) -> None:
    """The query continues as a new row: it sees documents from now on, or from its start if that is in the future, and
    its earlier results are kept."""
    chosen = (queries.c.name == name) & queries.c.paused
    row = change.connection.execute(sa.select(queries).where(chosen)).mappings().first()
    if row is None:
        is_alive = change.shape(name) is not None
        raise QueryError(f"the query {name} is not paused" if is_alive else f"there is no query {name}")
    change.connection.execute(sa.update(queries).where(chosen).values(paused=False))
    added = change.take(1)
    if row["added"] == NOT_YET and row["start"] > change.subscribers.now:
        added = NOT_YET
    number = int(change.connection.scalar(sa.select(sa.func.max(queries.c.number))) or 0) + 1
    again = {**row, "number": number, "replaces": row["number"], "paused": False, "dropped": None, "added": added}
    del again[SUM]
    change.connection.execute(sa.insert(queries).values(**again))


def act(change: Change, statement: CreateQuery) -> None:
    """What a query does from now on, and when, in place of what it did."""
    name, schedule = str(statement.name), statement.schedule
    own = (subscriptions.c.query == name) & subscriptions.c.by_query
    change.subscribers.expire(own, change.take(1), change.subscribers.now)
    requests = [
        SubscriptionRequest(name, name, ChannelSpec(one, schedule), statement.text) for one in statement.actions
    ]
    rows = change.subscribers.rows(requests, by_query=True)
    insert_rows(change.connection, subscriptions, [{**row, "added": change.take(1)} for row in rows])
    living = (queries.c.name == name) & (queries.c.dropped.is_(None) | queries.c.paused)
    expire = queries.c.expire if schedule.expire is None else schedule.expire
    change.connection.execute(sa.update(queries).where(living).values(every=schedule.every or 0.0, expire=expire))
