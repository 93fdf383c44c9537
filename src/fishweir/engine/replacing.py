"""A query that stands gets another definition, or does something else with its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fishweir.algebra.feeds import CreateFeed
from fishweir.algebra.nodes import CreateQuery, Statement
from fishweir.catalog.standing import act
from fishweir.engine.register import Registration, to_query
from fishweir.errors import QueryError
from fishweir.languages.standing import parse_clauses


def change_actions(registration: Registration, name: str, clauses: str) -> None:
    """Other actions and times for a query that stands."""
    change, given = registration.change, parse_clauses(clauses, f"query {name}")
    shape = change.shape(name)
    if shape is None:
        raise QueryError(f"there is no query {name}")
    schedule = registration.scheduled(given.schedule(change.subscribers.now))
    statement = CreateQuery(shape, (), name, given.actions, schedule, clauses)
    actions = tuple(registration.resolved(statement, action) for action in given.actions)
    act(change, replace(statement, actions=actions))


def replace_query(registration: Registration, statements: Sequence[Statement]) -> str:
    """Another definition under a name that is taken; what the query does is what the new statement says."""
    *before, last = statements
    change = registration.change
    if isinstance(last, CreateFeed):
        return registration.replace_feed(to_query(last))[0]
    if not isinstance(last, CreateQuery) or last.name is None:
        raise QueryError("only a query with a name can be replaced")
    if change.shape(last.name) is None:
        raise QueryError(f"there is no query {last.name}")
    registration.run(before)
    read = change.sources(last.name)
    bound = registration.bind(last)
    change.replace_queries([bound])
    act(change, bound)
    registration.published.sweep(read)
    return last.name
