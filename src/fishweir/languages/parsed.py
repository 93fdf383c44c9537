"""A parsed query: the shape, its constants and their positions in the text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from fishweir.algebra.feeds import FeedName, FeedQuery, Selection
from fishweir.algebra.nodes import DERIVED, Constant, CreateQuery, Shape
from fishweir.languages.roses.literals import LiteralPlace, Parsed
from fishweir.languages.schedule import Clauses
from fishweir.languages.statement_text import Rejected
from fishweir.records import dataclass

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
    """One query of any language; `places` contains one position per slot of the shape."""

    shape: Shape
    constants: tuple[Constant, ...]
    places: tuple[ConstantPlace, ...]
    clauses: Clauses
    before: tuple[ParsedQuery, ...] = ()
    """The queries whose results it reads: the joins of a chain before its last one."""
    text: str = ""
    """The part of the text for such a query."""


AnyParsed = ParsedQuery | Parsed[FeedQuery] | Parsed[Selection] | Parsed[Shape]
AnyPlace = ConstantPlace | LiteralPlace


def derived_name(text: str) -> str:
    """The name of a query that exists only for another one. It is derived from the text, so equal ones are shared."""
    return DERIVED + hashlib.sha256(text.encode()).hexdigest()[:12]


def _with_distinct(query: AnyParsed) -> AnyParsed:
    """The query with its `distinct on` clause as part of its shape."""
    distinct, shape = query.clauses.distinct, query.shape
    return query if distinct is None else replace(query, shape=replace(shape, distinct=distinct))  # type: ignore[arg-type]


def split_distinct(query: AnyParsed, text: str, everything: Callable[[str], AnyParsed]) -> tuple[AnyParsed, ...]:
    """The query with its `distinct on` clause as part of its shape, preceded by the queries that it reads. The clause
    selects among documents, so a join becomes a query that publishes them, and the query itself reads `everything` of
    that stream.
    """
    if query.clauses.distinct is None or not _joins(query):
        return *(query.before if isinstance(query, ParsedQuery) else ()), _with_distinct(query)
    start = query.clauses.start
    name = derived_name(f"{text} {start}")
    inner = replace(query, clauses=Clauses(publish=name, start=start))
    return *split_distinct(inner, text, everything), _with_distinct(replace(everything(name), clauses=query.clauses))


def _joins(query: AnyParsed) -> bool:
    return bool(query.shape.windows if isinstance(query.shape, Shape) else query.shape.joins)


def all_items(name: str) -> Parsed[FeedQuery]:
    """The documents of a stream, as RoSeS reads them."""
    return Parsed(FeedQuery(FeedName(name)), (), (), Clauses())


def to_statement(query: AnyParsed, name: str | None, text: str, line: int, now: float) -> CreateQuery:
    """The statement that registers this query now. Raises Rejected if its times contradict each other."""
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
