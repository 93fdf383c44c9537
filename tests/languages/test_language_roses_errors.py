"""Errors of RoSeS: the position, the line with a caret, and what was expected."""

# ruff: noqa: E501 (tables read better in long lines)

from __future__ import annotations

import pytest

from fishweir.errors import QueryError, QuerySyntaxError
from fishweir.languages.roses.language import parse_feed, parse_statement
from fishweir.languages.statement_text import StatementText
from tests.languages.cases import check_refused

CASES = [
    # statement, the place is at this text, kind, words of the message
    ("create feed f", "", QuerySyntaxError, "expected 'from', found the end of the statement"),
    ("create feed f from", "", QuerySyntaxError, "found the end of the statement"),
    ("create feed '' from a", "'' from", QueryError, "the feed has no name"),
    ("create feed f from a where", "", QuerySyntaxError, "found the end of the statement"),
    ("create feed f from (a | b", "", QuerySyntaxError, "found the end of the statement"),
    ("create feed f from a as $x where $x[title contains rock]", "rock", QuerySyntaxError, "expected '(' or quoted text, found 'rock'"),
    ("create feed f from a where [title like(0.5) 'x']", "0.5", QueryError, "'like' does not take a share of words"),
    ("create feed f from a where [title resembles 'x']", "resembles", QuerySyntaxError, "or a condition such as contains"),
    ("create feed f from a join last 2 items on b with [t like window.t]", "like", QueryError, "compares with quoted text"),
    ("create feed f from a as $x where $x[title = rock]", "rock", QuerySyntaxError, "a number or quoted text, found 'rock'"),
    ("create feed f from a as $x where $y[title = 'r']", "$y", QueryError, "no feed is named $y; named feeds: $x"),
    ("create feed f from a where $y[title = 'r']", "$y", QueryError, "named feeds: none"),
    ("create feed f from (a as $x | b as $x)", "$x)", QueryError, "$x names two feeds"),
    ("create feed f from a as $x where $x[has t] or $x[has u]", "or $x", QuerySyntaxError, "expected 'and'"),
    ("create feed f from a where [title contains '--']", "'--'", QueryError, "does not contain a word"),
    ("create feed f from a where [similar(1.5) 'x']", "1.5", QueryError, "a number above 0, at most 1"),
    ("create feed f from a where [link references ' ']", "' '", QueryError, "is neither a URL nor a host"),
    ("create feed f from a where [item = 'x']", "item", QueryError, "'=' needs an attribute"),
    ("create feed f from a where [exists *]", "*", QueryError, "'exists' needs an attribute"),
    ("create feed f from a where [year(d) = '2025']", "'2025'", QueryError, "expected a number to compare the year with"),
    ("create feed f from a where [year(d) contains '2025']", "contains", QueryError, "not a part of a date"),
    ("create feed f from a where [d = 2025-13-01]", "2025-13-01", QueryError, "is not a date"),
    ("create feed f from a where [@x/b = 'c']", "@x/b", QueryError, "is not an attribute"),
    ("create feed f from a where [price > 1e999]", "1e999", QueryError, "too large"),
    ("create feed f from a as $x join last 3 fortnights on b with $x[t = window.t]", "fortnights", QueryError, "'fortnights' is not a unit of time"),
    ("create feed f from a as $x join last 0 items on b with $x[t = window.t]", "0 items", QueryError, "at least one whole item"),
    ("create feed f from a as $x join last 1.5 items on b with $x[t = window.t]", "1.5 items", QueryError, "at least one whole item"),
    ("create feed f from a as $x join last 0 days on b with $x[t = window.t]", "0 days", QueryError, "the window is empty"),
    ("create feed f from a as $x join last day on b as $y with $y[t = window.t]", "$y[", QueryError, "no feed is named $y; named feeds: $x"),
    ("create feed f from a as $x join last day on b with $x[t = u]", "t = u", QueryError, "with one of the window"),
    ("create feed f from a as $x join last day on b with $x[window.t = window.u]", "window.t", QueryError, "with one of the window"),
    ("create feed f from a as $x join last day on b with $x[t contains 'u' or has v]", "with", QueryError, "with one of the window"),
    ("create feed f from a as $x join last day on b with $x[year(t) = window.u]", "year", QueryError, "whole values, not parts of dates"),
    ("create feed f from a as $x join last 9 items on b with $x[t = window.t or window.u = 'v']", "window.u", QueryError, "cannot have conditions on its items alone"),
    ("register feed http://a.b/c apply 'x.xsl' as n", "http", QueryError, "not a URL"),
    ("register feed v apply 'x.xsl' as v", "v", QueryError, "would read itself"),
    ("register feed http://a.b/c", "", QuerySyntaxError, "found the end of the statement"),
    ("register feed v apply '' as n", "''", QueryError, "the stylesheet has no name"),
    ("subscribe to f output", "", QuerySyntaxError, "expected"),
    ("subscribe to f output mail 'm' every 3 fortnights", "3 fort", QueryError, "is not a unit"),
    ("drop feed", "", QuerySyntaxError, "found the end of the statement"),
]  # fmt: skip


def parse(piece: StatementText) -> object:
    return parse_feed(piece) if piece.text.startswith("create") else parse_statement(piece)


@pytest.mark.parametrize(("statement", "place", "kind", "words"), CASES, ids=[case[0] for case in CASES])
def test_error(statement: str, place: str, kind: type[QueryError], words: str) -> None:
    check_refused("drop feed x", statement, place, kind, words, parse)
