"""A join that another join reads: the content of its documents, and the name under which they are published.

`A JOIN{p, T} B JOIN{q, U} C` is a join of A and B, published under a derived name, and a join of that stream with C.
The same applies to a join in parentheses on either side. A document of the inner join has a child for each variable
that an outer join needs. It contains the element itself, or the text of the attribute, so that values, paths below it
and outputs stay the same. Its time is that of the later of its two documents. The name is derived from the text, so
queries with the same inner join share the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lark import Token

from fishweir.algebra.nodes import Step
from fishweir.languages.xscl.binding import variable_name
from fishweir.languages.xscl.syntax import (
    ComparisonSyntax,
    ConditionSyntax,
    ElementSyntax,
    QuerySyntax,
    RelativeSyntax,
    comparisons,
)
from fishweir.records import dataclass

ROOT = "result"
"""The new root of the default output."""


@dataclass(frozen=True, slots=True)
class DerivedVariable:
    """A variable in the documents of an inner join: the tag around it, and whether it is only text."""

    tag: str
    variable: str
    is_text: bool


@dataclass(frozen=True, slots=True)
class DerivedJoin:
    """The output of an inner join. `lasts` are the variables at the ends of the blocks and `names` all variables inside
    it, each with its position; `text` is its part of the query.
    """

    source: str
    variables: tuple[DerivedVariable, ...]
    lasts: tuple[tuple[str, Token], ...]
    names: tuple[tuple[str, Token], ...]
    text: str


def holder(name: str) -> Step:
    return Step(name, namespace=None if name == "*" else "")


def mentioned_by(conditions: Iterable[ConditionSyntax]) -> dict[str, Token]:
    """The variables that a join's predicate mentions, each with its first mention."""
    return _first(token for condition in conditions for one in comparisons(condition) for token in _compared(one))


def selected_by(query: QuerySyntax) -> dict[str, Token]:
    """The variables that the select clause mentions."""
    return _first(token for item in query.select or () for token in _selected(item))


def _first(tokens: Iterable[Token]) -> dict[str, Token]:
    found: dict[str, Token] = {}
    for token in tokens:
        found.setdefault(variable_name(token), token)
    return found


def _compared(condition: ComparisonSyntax) -> Iterator[Token]:
    for side in (condition.left, condition.right):
        if isinstance(side, RelativeSyntax):
            yield side.start


def _selected(item: ElementSyntax | Token) -> Iterator[Token]:
    if isinstance(item, Token):
        if item.type in ("VAR", "VARIABLE"):
            yield item
        return
    yield from (value for _, value in item.attributes if value.type == "VARIABLE")
    for inner in item.content:
        yield from _selected(inner)
