"""SQL selections: fixture files, clauses after the query, and shapes that do not depend on constants."""

from __future__ import annotations

import pytest
from hypothesis import assume, given

from fishweir.languages.lexical import quote
from fishweir.languages.roses.literals import READERS
from fishweir.languages.sql.language import parse_query
from fishweir.languages.statement_text import Rejected, ScriptPieces, StatementText
from tests import strategies as st
from tests.languages.cases import fixture_cases
from tests.languages.feed_text import selection_text


@pytest.mark.parametrize(("query", "algebra"), list(fixture_cases("sql")))
def test_compiles_to(query: str, algebra: str) -> None:
    (piece,) = ScriptPieces(query + ";")
    parsed = parse_query(piece)
    assert selection_text(parsed.shape, parsed.constants) == algebra
    assert parsed.shape.slots == tuple(sorted(parsed.shape.slots, key=lambda slot: slot.index))


def whole(text: str) -> StatementText:
    return StatementText(text, 0, len(text))


def test_clauses() -> None:
    text = "select every, start from R as do where do.every > 5 and start = 3 do mail 'me' every 3 hours expire 100"
    parsed = parse_query(whole(text))
    assert parsed.clauses.actions
    assert (parsed.clauses.actions[0].name, parsed.clauses.every) == ("mail", 10800.0)
    assert parsed.clauses.expire_at == text.index("expire 100")
    assert [text[p.start : p.end] for p in parsed.places] == ["5", "3"]


def test_many_alternatives_do_not_nest() -> None:
    parsed = parse_query(whole("select * from R where " + " or ".join(f"x = {i}" for i in range(3000))))
    assert len(parsed.constants) == 3000


TEMPLATES = (
    "select * from R where x > {} and not y<{} or z in ({},1)",
    "select a as b from R where {}<x<={} and s like {}",
    "select * from R where x between {} and {} or s not in ({}, 'k')",
    "select * from R where t > date {} and s={} and x is not null or w != {} every 5",
)
texts = st.text(alphabet="ab '\"”“;-#1", max_size=6) | st.sampled_from(["2025-01-01", "5", "true"])
numbers = st.integers(-20, 3000).map(str) | st.sampled_from(["0.5", "+1", ".25", "5.", "1e999", "-3.5e2", "-.5", "0x1"])
literals = st.lists(texts.map(quote) | numbers, min_size=3, max_size=3)
others = st.lists(st.builds(quote, texts, st.sampled_from(["'", '"'])) | numbers, min_size=3, max_size=3)


@st.examples(200)
@given(st.sampled_from(TEMPLATES), literals, others)
def test_literals_of_one_type_are_interchangeable(template: str, first: list[str], second: list[str]) -> None:
    """The assumption of the SkeletonCache: the types of the first parse apply to the constants of the second."""
    try:
        known = parse_query(whole(template.format(*first)))
    except Rejected:
        assume(False)
    text = template.format(*second)
    constants = [READERS[place.kind](literal) for place, literal in zip(known.places, second, strict=False)]
    try:
        full = parse_query(whole(text))
    except Rejected:
        assert None in constants
        return
    if None not in constants:
        assert (full.shape, full.constants[:3]) == (known.shape, tuple(constants))
        for place, literal in zip(full.places, second, strict=False):
            assert text[place.start : place.end] == literal.removeprefix("+")
