"""Groups and binds queries that differ only in names and constants: the first in full, the others by these two.

If one of them might be rejected or needs more than that, each is bound separately (registration.py), with its error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from fishweir.algebra.action_columns import ActionColumns, Subscriptions
from fishweir.algebra.emptiness import Emptiness
from fishweir.algebra.feeds import CreateFeed, FeedQuery, Selection, Subscribe, Unsubscribe, to_query
from fishweir.algebra.nodes import DERIVED, CreateQuery, DropQuery, Shape, Statement
from fishweir.algebra.path_queries import Paths
from fishweir.algebra.uniform_queries import MixedQueries, UniformQueries, group_uniform
from fishweir.catalog.change import CHUNK
from fishweir.delivery.options import BadArgument
from fishweir.engine.contradictions import is_declared
from fishweir.errors import FishweirError, QueryError
from fishweir.records import dataclass

if TYPE_CHECKING:
    from fishweir.engine.registration import Registration


FEWEST_PATHS = 64
"""The minimum number of consecutive paths that are stored as constants."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A checked shape: as written and as stored, the constants that are times, and the conditions that might exclude
    each other.
    """

    written: Shape | Selection | FeedQuery
    shape: Shape | Selection | FeedQuery
    dated: dict[int, str]
    emptiness: Emptiness | None


Queries = UniformQueries | MixedQueries
Stored: TypeAlias = "Statement | Queries | Subscriptions"
_KINDS = {
    CreateQuery: "query",
    UniformQueries: "query",
    MixedQueries: "query",
    Subscribe: "subscribe",
    Subscriptions: "subscribe",
    Unsubscribe: "unsubscribe",
    DropQuery: "drop",
}


def kind_of(statement: Stored) -> str:
    """The kind of a statement: consecutive statements of one kind are stored together."""
    if isinstance(statement, CreateFeed):
        return "" if statement.replace else "query"
    return _KINDS.get(type(statement), "")


def to_uniform(statements: Iterable[CreateQuery | CreateFeed | Queries]) -> Iterator[Queries]:
    """Groups of consecutive queries that differ only in names and constants, in order."""
    return group_uniform((to_query(one) if isinstance(one, CreateFeed) else one for one in statements), CHUNK)


def bind_queries(registration: Registration, given: Queries) -> Iterator[Queries]:
    if isinstance(given, MixedQueries):
        parts = [bound for part in given.parts for bound in bind_uniform(registration, part)]
        yield MixedQueries(parts, given.places)
    else:
        yield from bind_uniform(registration, given)


def with_first_error(
    store: Callable[[Sequence[Stored]], list[str]],
    statements: Sequence[Stored],
) -> list[str]:
    """Stores statements, all or none. Queries that alternate are bound one shape after the other; if one is rejected,
    all are bound again in the order in which they were written, since the first error is the one to report.
    """
    try:
        return store(statements)
    except FishweirError:
        if not any(isinstance(one, MixedQueries) for one in statements):
            raise
    ordered = ([*one.statements()] if isinstance(one, MixedQueries) else [one] for one in statements)
    return store(list(chain.from_iterable(ordered)))


def bind_uniform(registration: Registration, given: UniformQueries) -> Iterator[UniformQueries]:
    if isinstance(given.first.shape, Paths):
        yield from _bind_paths(registration, given)
        return
    first = registration.bind(given.first)
    if len(given) == 1:
        yield replace(given, first=first, constants=[first.constants], actions=())
        return
    own, inherited = len(given.constants[0]), first.constants[len(given.constants[0]) :]
    bound = registration.bound_of(first)
    actions = _resolved_actions(registration, given)
    if bound.dated or actions is None or not _are_plain(registration, given, first):
        yield from group_uniform(_each(registration, given, first), len(given))
        return
    assert first.constants[:own] == given.constants[0], "only times are changed"
    constants = [one + inherited for one in given.constants] if inherited else given.constants
    if bound.emptiness is not None:
        for place, values in enumerate(constants):
            if bound.emptiness.of(values) is not None:
                registration.bind(given.one(place))
    if first.published:
        registration.publish(first, given.names, given.constants)
    yield replace(given, first=first, constants=constants, actions=actions)


def _bind_paths(registration: Registration, given: UniformQueries) -> Iterator[UniformQueries]:
    """Paths remain constants if there are many and the stream does not declare the structure of its documents;
    otherwise, each path has its own shape.
    """
    first = registration.bind(given.one(0))
    assert isinstance(given.first.shape, Paths)
    stream = registration.streams.get(given.first.shape.source.name)
    actions = _resolved_actions(registration, given)
    many = len(given) >= FEWEST_PATHS and actions is not None and not is_declared(stream)
    if not many or not _are_plain(registration, given, first):
        yield from group_uniform(_each(registration, given, first), len(given))
        return
    first = replace(first, shape=given.first.shape, constants=given.constants[0])
    yield replace(given, first=first, actions=actions or ())


def _each(registration: Registration, given: UniformQueries, first: CreateQuery) -> Iterator[CreateQuery]:
    yield first
    for place in range(1, len(given)):
        yield registration.bind(given.one(place))


def _resolved_actions(registration: Registration, given: UniformQueries) -> Sequence[ActionColumns] | None:
    """The actions of each query as they are stored, if they differ; None if one might be rejected."""
    try:
        return [registration.outputs.all_resolved(column, registration.base) for column in given.actions]
    except (BadArgument, QueryError):
        return None


def _are_plain(registration: Registration, given: UniformQueries, first: CreateQuery) -> bool:
    """Whether none of the names is in use."""
    names = set(given.names)
    if first.derived or not names.isdisjoint(registration.streams):
        return False
    if first.feed is not None and not names.isdisjoint(registration.feeds.read_by(first.feed)):
        return False
    return not any(name is not None and name.startswith(DERIVED) for name in names)
