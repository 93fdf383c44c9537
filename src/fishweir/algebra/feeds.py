"""Feeds: unions of feeds with conditions, views over views, and their expansion to sources.

A feed query names feeds in nested unions; each union or feed may have a variable, and each variable a condition on its
items. Filters and unions do not change items, so a condition can be pushed down through unions and views (RoSeS 4.3)
until each source has one formula: `Filter`, a source with a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fishweir.algebra.formula import And, Formula, RelativePath
from fishweir.algebra.nodes import ON_CHANGE, Action, Constant, CreateQuery, Schedule, SideWindow, Slot, Source
from fishweir.algebra.preferences import Preference
from fishweir.errors import QueryError
from fishweir.records import dataclass

if TYPE_CHECKING:
    from fishweir.algebra.distinct import Distinct


@dataclass(frozen=True, slots=True)
class FeedName:
    """A feed or view in a from clause."""

    name: str
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class FeedUnion:
    """`(a | b as $x | (c | d)) as $y`."""

    members: tuple[FeedName | FeedUnion, ...]
    variable: str | None = None


WHOLE = "_"
"""The variable of the whole from clause if it has no name and a condition does not use one."""


@dataclass(frozen=True, slots=True)
class VariableCondition:
    """`$x[...]`: a condition on the items of the feed or union named $x."""

    variable: str
    formula: Formula


@dataclass(frozen=True, slots=True)
class FeedJoin:
    """`join WINDOW on (...) with $x[condition]`. Paths of the condition begin with a step that names the block: 0 for
    the item, 1 for an item of the window; see `column_joins.in_block`."""

    window: SideWindow
    secondary: FeedUnion | FeedName
    variable: str
    condition: Formula


@dataclass(frozen=True, slots=True)
class FeedQuery:
    """A publication query; constants are in slots, so that many queries share one shape."""

    main: FeedUnion | FeedName
    joins: tuple[FeedJoin, ...] = ()
    where: tuple[VariableCondition, ...] = ()
    slots: tuple[Slot, ...] = ()
    distinct: Distinct | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """One source and the condition on its items, with its own part of the constants."""

    source: Source
    formula: Formula
    joins: tuple[int, ...] = ()
    """Which of the query's joins an item that passes this filter must satisfy."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A join whose secondary feeds are expanded to their sources; it shares the slots of the query."""

    window: SideWindow
    filters: tuple[Filter, ...]
    variable: str
    condition: Formula


@dataclass(frozen=True, slots=True)
class Selection:
    """Items or tuples of some sources that satisfy the formula of their source, or columns of them.

    An item that passes several filters is one result. Without `output`, the result is the item itself.
    """

    filters: tuple[Filter, ...]
    output: ColumnsOutput | None = None
    slots: tuple[Slot, ...] = ()
    columns: bool = False
    """Whether each path is a column: of several nodes at a path, only the first counts. Otherwise, any may match."""
    joins: tuple[Annotation, ...] = ()
    distinct: Distinct | None = None
    """Which of the items are results. All annotated items are."""

    @property
    def sources(self) -> list[Source]:
        """The sources of its items and of its windows."""
        return [part.source for part in (*self.filters, *(f for join in self.joins for f in join.filters))]


# Statements


@dataclass(frozen=True, slots=True)
class CreateFeed:
    name: str
    query: FeedQuery
    constants: tuple[Constant, ...]
    text: str = ""
    line: int = 1
    replace: bool = False
    """`create or replace feed`: all readers of the feed use the new definition."""
    preference: Preference | None = None


@dataclass(frozen=True, slots=True)
class RegisterFeed:
    """`register feed URL as N`; or a virtual feed, whose items a stylesheet transforms."""

    name: str
    url: str | None = None
    virtual: str | None = None
    stylesheet: str | None = None
    text: str = ""
    line: int = 1


@dataclass(frozen=True, slots=True)
class Subscribe:
    """`subscribe to F [apply 'x.xsl'] output KIND TARGET [start T] [every I] [expire T]`."""

    feed: str
    action: Action
    stylesheet: str | None = None
    schedule: Schedule = ON_CHANGE
    text: str = ""
    line: int = 1


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """`unsubscribe from F [output KIND TARGET]`: this subscription, or all subscriptions to the feed."""

    feed: str
    action: Action | None = None
    text: str = ""
    line: int = 1


@dataclass(frozen=True, slots=True)
class DropFeed:
    name: str
    text: str = ""
    line: int = 1


@dataclass(frozen=True, slots=True)
class ColumnsOutput:
    """An SQL select list: names and paths. No columns means all columns."""

    columns: tuple[tuple[str, RelativePath], ...] = ()


def leaves(feed: FeedUnion | FeedName) -> Iterator[tuple[FeedName, tuple[str, ...]]]:
    """The feeds of a union, each with the variables that cover it, its own first."""
    own = () if feed.variable is None else (feed.variable,)
    if isinstance(feed, FeedName):
        yield feed, own
        return
    for member in feed.members:
        for leaf, variables in leaves(member):
            yield leaf, (*variables, *own)


Views = Callable[[str], tuple[Filter, ...] | None]
"""The filters that a view expands to; None if the name is a source."""


def to_filters(query: FeedQuery, views: Views) -> tuple[Filter, ...]:
    """Pushes selections through unions and views to the sources; a source that occurs twice is kept twice. The result
    contains the primary feeds, each with the joins on its variables; `join_filters` has the inputs of the joins.
    """
    variables = set(variables_of(query))
    for condition in query.where:
        if condition.variable not in variables:
            raise QueryError(f"the variable ${condition.variable} does not name a feed of the from clause")
    return _pushed(query.main, query.where, views, query.joins)


def join_filters(query: FeedQuery, join: FeedJoin, views: Views) -> tuple[Filter, ...]:
    """The secondary feeds of a join, with the conditions on their variables pushed to the sources."""
    return _pushed(join.secondary, query.where, views)


def variables_of(query: FeedQuery) -> Iterator[str]:
    """The variables of the from clause and of the joins, with duplicates."""
    for feed in (query.main, *(join.secondary for join in query.joins)):
        yield from declared(feed)


def declared(feed: FeedUnion | FeedName) -> Iterator[str]:
    if feed.variable is not None:
        yield feed.variable
    for member in feed.members if isinstance(feed, FeedUnion) else ():
        yield from declared(member)


def _pushed(
    feed: FeedUnion | FeedName, where: tuple[VariableCondition, ...], views: Views, joins: tuple[FeedJoin, ...] = ()
) -> tuple[Filter, ...]:
    found = []
    for leaf, variables in leaves(feed):
        own = tuple(c.formula for c in where if c.variable in variables)
        under = tuple(i for i, join in enumerate(joins) if join.variable in variables)
        inner = views(leaf.name)
        for part in (Filter(Source(leaf.name), And()),) if inner is None else inner:
            found.append(Filter(part.source, conjunction((part.formula, *own)), (*under, *part.joins)))
    return tuple(found)


def conjunction(parts: tuple[Formula, ...]) -> Formula:
    flat = [p for part in parts for p in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def to_query(statement: CreateQuery | CreateFeed) -> CreateQuery:
    """The query of a feed: a feed is a query that others may read by name."""
    if isinstance(statement, CreateQuery):
        return statement
    return CreateQuery(
        statement.query,
        statement.constants,
        statement.name,
        text=statement.text,
        line=statement.line,
        preference=statement.preference,
        published=True,
    )
