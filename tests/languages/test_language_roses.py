"""RoSeS: fixture files, and shapes that do not depend on constants."""

from __future__ import annotations

import pytest
from hypothesis import assume, given

from fishweir.algebra.feeds import WHOLE, CreateFeed, FeedName
from fishweir.errors import QueryError
from fishweir.languages.lexical import quote
from fishweir.languages.roses.language import parse_feed, parse_query
from fishweir.languages.roses.literals import READERS, to_seconds
from fishweir.languages.script import parse_script
from fishweir.languages.statement_text import Rejected, StatementText
from tests import strategies as st
from tests.languages.cases import fixture_cases
from tests.languages.feed_text import statement_text


@pytest.mark.parametrize(("query", "algebra"), list(fixture_cases("roses")))
def test_compiles_to(query: str, algebra: str) -> None:
    (statement,) = parse_script("\n" * 6 + query + ";")
    assert statement_text(statement) == algebra
    assert (statement.text, statement.line) == (query, 7)


def whole(text: str) -> StatementText:
    return StatementText(text, 0, len(text))


def test_publication_alone_is_a_query() -> None:
    parsed = parse_query(whole("from (a | b) where [title contains 'x'] do mail 'me' every 3 hours"))
    assert parsed.constants == ("x",)
    assert parsed.clauses.every == 10800.0
    assert parsed.clauses.actions
    with pytest.raises(Rejected, match="begins with 'from'"):
        parse_query(whole("create feed x from a"))
    with pytest.raises(Rejected, match="create feed NAME"):
        parse_feed(whole("from a"))


def test_whole_from_clause_keeps_its_own_variable() -> None:
    for text, variable in (("from a as $x where [has t]", "x"), ("from a where [has t]", WHOLE), ("from a", None)):
        assert parse_query(whole(text)).shape.main == FeedName("a", variable)


def test_comments_and_case() -> None:
    text = "CREATE -- c\n FEED f FROM ( a | b # d\n ) AS $x WHERE $x[ Title CONTAINS 'A' <!-- e --> OR NOT HAS b ]"
    (feed,) = parse_script(text)
    assert isinstance(feed, CreateFeed)
    assert statement_text(feed).splitlines()[2] == "if $x (Title contains string[0] or not exists b)"


TEMPLATES = (
    "create feed f from a where [title contains {} and not similar({}) {}]",
    "create feed f from (a | b as $b) as $x where $x[price > {} or price <= {}] and $b[t = {}]",
    "create feed f from a where [pubdate >= {} and year(pubdate) = {} and link references {}]",
    "create feed f from a where [shares-link ({}, {}) or link extends {}]",
)
texts = st.text(alphabet="ab '\"”“;-#1", max_size=6) | st.sampled_from(
    ["2025-01-01", "2025-13-01", "2025-01-01T12:00Z", "2025-01-01 12:00", "0001-01-01", "5", "host.org"]
)
strings = st.builds(quote, texts, st.sampled_from(["'", '"']))
numbers = st.integers(-20, 3000).map(str) | st.sampled_from(["0.5", "1", ".25", "1e999", "-3.5e2", "0"])
literals = st.lists(strings | numbers, min_size=3, max_size=3)


@st.examples(200)
@given(st.sampled_from(TEMPLATES), literals, literals)
def test_literals_of_one_type_are_interchangeable(template: str, first: list[str], second: list[str]) -> None:
    """The assumption of the SkeletonCache: the types of the first parse apply to the constants of the second."""
    try:
        _, known = parse_feed(whole(template.format(*first)))
    except (Rejected, QueryError):
        assume(False)
    ordered = second[: len(known.places)]
    constants = [READERS[place.kind](text) for place, text in zip(known.places, ordered, strict=True)]
    try:
        _, full = parse_feed(whole(template.format(*second)))
    except Rejected:
        assert None in constants
        return
    if None not in constants:
        assert (full.shape, full.constants) == (known.shape, tuple(constants))
        assert [p.kind for p in full.places] == [p.kind for p in known.places]


@given(st.sampled_from(TEMPLATES), literals)
def test_slots_have_the_literals(template: str, values: list[str]) -> None:
    text = template.format(*values)
    try:
        _, parsed = parse_feed(whole(text))
    except Rejected:
        return
    assert [text[p.start : p.end] for p in parsed.places] == values
    assert [slot.index for slot in parsed.shape.slots] == list(range(len(values)))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-02", 86400.0),
        ("1970-01-01T00:00:10Z", 10.0),
        ("1970-01-01 01:00+01:00", 0.0),
        (" 1970-01-01 ", 0.0),
        ("1970", None),
        ("5", None),
        ("1970-13-01", None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("", None),
    ],
)
def test_dates(text: str, seconds: float | None) -> None:
    assert to_seconds(text) == seconds
