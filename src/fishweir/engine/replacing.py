"""Replaces the definition or the actions of a registered query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fishweir.algebra.feeds import CreateFeed, Selection, Subscribe, to_query
from fishweir.algebra.nodes import CreateQuery, Shape, Statement
from fishweir.algebra.uniform_queries import uniform
from fishweir.catalog.query_admin import act
from fishweir.engine.registration import Registration
from fishweir.errors import QueryError
from fishweir.languages.clauses import parse_clauses


def change_actions(registration: Registration, name: str, clauses: str) -> None:
    """Replaces the actions and the schedule of a registered query."""
    change, given = registration.change, parse_clauses(clauses, f"query {name}")
    shape = _active_shape(registration, name)
    if given.start is not None:
        raise QueryError(
            f"query {name}: the start cannot be changed; replace the query, or drop it and create it again"
        )
    schedule = registration.scheduled(given.schedule(change.subscribers.now))
    statement = CreateQuery(shape, (), name, given.actions, schedule, clauses)
    actions = tuple(registration.resolved(statement, action) for action in given.actions)
    act(change, replace(statement, actions=actions))


def replace_query(registration: Registration, statements: Sequence[Statement]) -> str:
    """Replaces the definition of a query. Its actions are those of the new statement."""
    if not statements:
        raise QueryError("the statement is empty: pass the new definition of a query with a name")
    *before, last = statements
    change = registration.change
    if isinstance(last, CreateFeed):
        registration.run(before)
        return registration.replace_feed(to_query(last))[0]
    if not isinstance(last, CreateQuery) or last.name is None:
        raise QueryError("only a query with a name can be replaced")
    _active_shape(registration, last.name)
    registration.run(before)
    read = change.sources(last.name)
    bound = registration.bind(last)
    change.replace_queries([uniform([bound])])
    act(change, bound)
    registration.published.sweep(read)
    return last.name


def replace_subscription(registration: Registration, id: int, statements: Sequence[Statement]) -> str:
    """Replaces a subscription. The pending results of the old one are delivered immediately."""
    if len(statements) != 1 or not isinstance(statements[0], Subscribe):
        raise QueryError(f"subscription {id} can only be replaced by a single 'subscribe to ...' statement")
    change = registration.change
    change.subscribers.expire("id = :id", change.take(1), change.subscribers.now, id=id)
    change.subscribers.forget_pause(id)
    registration.run(statements)
    return statements[0].feed


def _active_shape(registration: Registration, name: str) -> Shape | Selection:
    shape = registration.change.shape(name)
    if shape is None:
        is_paused = registration.change.is_paused(name)
        raise QueryError(f"the query {name} is paused: resume it first" if is_paused else f"there is no query {name}")
    return shape
