"""Splitting a script and recognising its statements."""

from __future__ import annotations

import pytest

from fishweir.algebra.nodes import CreateQuery, CreateStream, DropQuery
from fishweir.errors import QuerySyntaxError
from fishweir.languages import lexical
from fishweir.languages.niagaracq.language import GRAMMAR
from fishweir.languages.script import parse_script
from fishweir.languages.statement_text import ScriptPieces


def texts(script: str) -> list[str]:
    return [piece.text for piece in ScriptPieces(script)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", []),
        (" \n -- only a comment; \n # another; ", []),
        (";; ;", []),
        ("\ufeffa;\r\nb\r\n", ["a", "b"]),
        ("a;b", ["a", "b"]),
        ("a ; -- c; d\n b # e; f\n;", ["a", "b"]),
        ("a 'x;y' \"p;q\" “r;s” ”t;u” b; c", ["a 'x;y' \"p;q\" “r;s” ”t;u” b", "c"]),
        ("a 'it''s;' b; c", ["a 'it''s;' b", "c"]),
        ("a '#' \"--\" b; c", ["a '#' \"--\" b", "c"]),
        ("a <!-- x; -- ' --> b; c", ["a <!-- x; -- ' --> b", "c"]),
        ("a -- it's\n b; c", ["a -- it's\n b", "c"]),
        ("<Day's_range>; b'", ["<Day's_range>", "b'"]),
        ("a - b < c;", ["a - b < c"]),
        ("a\n-- the end", ["a"]),
    ],
)
def test_split(script: str, expected: list[str]) -> None:
    assert texts(script) == expected


@pytest.mark.parametrize(
    ("script", "line", "column", "closing"),
    [
        ("a;\n b 'x", 2, 4, "'"),
        ('a "x""', 1, 3, '"'),
        ("a “x", 1, 3, "”"),
        ("a <!-- x", 1, 3, "-->"),
    ],
)
def test_unclosed_quotes_and_comments(script: str, line: int, column: int, closing: str) -> None:
    with pytest.raises(QuerySyntaxError, match="not closed") as caught:
        texts(script)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert caught.value.reason.endswith(f"expected {closing}")


def test_mixed_script() -> None:
    script = """
-- quotes, then who watches them
create stream quotes from 'quotes.xml';
CREATE Q1 Where <a>x</a> element_as $g in quotes construct $g;
  create query Q2 as where <a>x</a> element_as $g in quotes construct $g ;
where <a>$x</a> in quotes construct $x; DELETE Q1
"""
    stream, q1, q2, unnamed, drop = parse_script(script)
    assert isinstance(stream, CreateStream)
    assert (stream.stream.name, stream.line) == ("quotes", 3)
    queries = [query for query in (q1, q2, unnamed) if isinstance(query, CreateQuery)]
    assert [(query.name, query.line) for query in queries] == [("Q1", 4), ("Q2", 5), (None, 6)]
    assert queries[0].shape == queries[1].shape
    assert q1.text == "CREATE Q1 Where <a>x</a> element_as $g in quotes construct $g"
    assert drop == DropQuery("Q1", "DELETE Q1", 6)


def test_names_that_look_like_keywords() -> None:
    rest = "where <a>$x</> in s construct $x"
    queries = parse_script(f'create query-7 {rest}; create "my q" {rest}')
    assert [q.name for q in queries if isinstance(q, CreateQuery)] == ["query-7", "my q"]


def test_grammar_and_lexical_agree() -> None:
    terminals = {terminal.name: terminal.pattern.value for terminal in GRAMMAR.lark.terminals}
    assert terminals["STRING"] == lexical.QUOTED.replace("\\'", "'")
    assert terminals["NUMBER"] == lexical.NUMBER
    assert terminals["OP"] == lexical.OPERATOR
    assert terminals["VARIABLE"] == lexical.VARIABLE
    assert terminals["TEXT"] == lexical.TEXT.replace('\\"', '"')
    assert terminals["NAME"] == lexical.NAME
    assert f"{terminals['_COMMENT']}|{terminals['_XML_COMMENT']}".replace("\n", "\\n") == lexical.COMMENT
