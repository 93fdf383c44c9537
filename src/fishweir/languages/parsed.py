"""A parsed query: the shape, its constants and their positions in the text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from fishweir.algebra.feeds import FeedQuery, Selection
from fishweir.algebra.nodes import Constant, CreateQuery, Shape
from fishweir.languages.pieces import Rejected
from fishweir.languages.roses.literals import LiteralPlace, Parsed
from fishweir.languages.schedule import Clauses

LiteralKind = Literal["quoted", "number", "text", "interval", "keyword", "words", "link"]


@dataclass(frozen=True, slots=True)
class ConstantPlace:
    """The position of a slot's constant in the text, and how it is written; for an interval, also the seconds of its
    unit."""

    start: int
    end: int
    kind: LiteralKind
    unit: float = 1.0

    def moved(self, offset: int) -> ConstantPlace:
        return ConstantPlace(self.start + offset, self.end + offset, self.kind, self.unit)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """One query of any language; `places` holds one place per slot of the shape."""

    shape: Shape
    constants: tuple[Constant, ...]
    places: tuple[ConstantPlace, ...]
    clauses: Clauses
    before: tuple[ParsedQuery, ...] = ()
    """The queries whose results it reads: the joins of a chain before its last one."""
    text: str = ""
    """Of such a query its own part of the text."""


AnyParsed = ParsedQuery | Parsed[FeedQuery] | Parsed[Selection] | Parsed[Shape]
AnyParsedQuery = TypeVar("AnyParsedQuery", bound=AnyParsed)
AnyPlace = ConstantPlace | LiteralPlace


def with_distinct(query: AnyParsedQuery) -> AnyParsedQuery:
    """The query with its `distinct on` clause as part of its shape; Rejected for a join."""
    distinct, shape = query.clauses.distinct, query.shape
    if distinct is None:
        return query
    if shape.windows if isinstance(shape, Shape) else shape.joins:
        reason = "'distinct on' is for queries without joins: publish the join, and put it on a query that reads that"
        raise Rejected(reason, query.clauses.distinct_at)
    return replace(query, shape=replace(shape, distinct=distinct))  # type: ignore[arg-type]


def to_statement(query: AnyParsed, name: str | None, text: str, line: int, now: float) -> CreateQuery:
    """The statement that registers this query now; Rejected where its times contradict each other."""
    schedule = query.clauses.schedule(now)
    own = query.clauses.publish
    if own is not None and name not in (None, own):
        raise Rejected(f"the query is named {name} and published as {own}: it can have only one name", 0)
    name = name or own
    return CreateQuery(
        query.shape,
        query.constants,
        name,
        query.clauses.actions,
        schedule,
        text,
        line,
        query.clauses.preference,
        published=own is not None,
    )
