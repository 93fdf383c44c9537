"""Administration of registered queries: list, pause, resume, change actions."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from fishweir.algebra.action_columns import to_columns
from fishweir.algebra.nodes import DERIVED, CreateQuery
from fishweir.catalog.change import Change
from fishweir.catalog.channels import ChannelSpecs
from fishweir.catalog.checksums import SUM
from fishweir.catalog.database import Connection
from fishweir.catalog.schema import NOT_YET
from fishweir.catalog.subscribers import SubscriptionRequests
from fishweir.errors import QueryError
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """A registered query. `state` is running, paused or waiting (for its start)."""

    name: str
    state: str
    text: str
    start: float | None
    every: float
    expire: float | None
    published: bool


def matches(pattern: str | None, name: str, text: str) -> bool:
    """Whether a name matches a pattern with `*` or `?`, or any other word occurs in the name or text."""
    if pattern is None:
        return True
    if any(mark in pattern for mark in "*?["):
        return fnmatchcase(name, pattern)
    return pattern.lower() in name.lower() or pattern.lower() in text.lower()


def list_queries(connection: Connection, pattern: str | None = None) -> list[QueryInfo]:
    select = "select * from queries where (dropped is null or paused) and name not like :derived order by number"
    found = connection.execute(select, derived=f"{DERIVED}%")
    return [_query_info(row) for row in found if matches(pattern, row.name, row.text)]


def _query_info(row: Any) -> QueryInfo:
    state = "paused" if row.paused else "waiting" if row.added == NOT_YET else "running"
    return QueryInfo(row.name, state, row.text, row.start, row.every, row.expire, bool(row.published))


def pause(change: Change, name: str) -> None:
    """Pauses a query: it has no results from the next micro-batch on. Its name stays reserved."""
    paused = "update queries set dropped = :change, paused = true where name = :name and dropped is null"
    if change.connection.execute(paused, name=name, change=change.take(1)).changed == 0:
        is_paused = change.is_paused(name)
        raise QueryError(f"the query {name} is already paused" if is_paused else f"there is no query {name}")


def resume(change: Change, name: str) -> None:
    """Resumes a paused query as a new row. It is evaluated on documents from now on, or from its start if that is in
    the future. Its earlier results are kept."""
    paused = change.connection.execute("select * from queries where name = :name and paused", name=name).first()
    if paused is None:
        is_alive = change.shape(name) is not None
        raise QueryError(f"the query {name} is not paused" if is_alive else f"there is no query {name}")
    row = dict(paused._mapping)
    row.pop(SUM, None)
    change.connection.execute("update queries set paused = false where name = :name and paused", name=name)
    added = change.take(1)
    if row["added"] == NOT_YET and row["start"] > change.subscribers.now:
        added = NOT_YET
    number = int(change.connection.scalar("select max(number) from queries") or 0) + 1
    again = {**row, "number": number, "replaces": row["number"], "paused": False, "dropped": None, "added": added}
    change.connection.insert("queries", **again)


def act(change: Change, statement: CreateQuery) -> None:
    """Replaces the actions of a query and their schedule."""
    name, schedule = str(statement.name), statement.schedule
    change.subscribers.expire("query = :query and by_query", change.take(1), change.subscribers.now, query=name)
    count = len(statement.actions)
    specs = ChannelSpecs(to_columns(statement.actions), [schedule] * count, [None] * count, [name] * count)
    requests = SubscriptionRequests([name] * count, specs, [statement.text] * count)
    first = change.take(count)
    change.subscribers.insert([change.subscribers.columns(requests, range(first, first + count), by_query=True)])
    expire = "" if schedule.expire is None else ", expire = :expire"
    changed = f"update queries set every = :every{expire} where name = :name and (dropped is null or paused)"
    change.connection.execute(changed, name=name, every=schedule.every or 0.0, expire=schedule.expire)
