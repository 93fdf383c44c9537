"""Errors: the position, the line with a caret, and what was expected."""

# ruff: noqa: E501 (tables read better in long lines)

from __future__ import annotations

import re

import pytest

from fishweir.errors import QueryError, QuerySyntaxError
from fishweir.languages.script import parse_script

GOOD = "create ok where <a>$x</a> in s construct $x;\n"
CASES = [
    # statement, the place is at this text, kind, words of the message
    ("create q where <a>$x</a> construct $x", "construct", QuerySyntaxError, "query q: expected 'element_as' or 'in', found 'construct'"),
    ("create q where <a>$x</b> in s construct $x", "b> in", QuerySyntaxError, "expected '</>' or '</a>' to close '<a>', found '</b>'"),
    ("create q where <a>$x</a> in s", "", QuerySyntaxError, "found the end of the statement"),
    ("create q where <a>$x</a> in s construct", "", QuerySyntaxError, "expected 'old', a $variable, a tag '<' or quoted text"),
    ("create q where <a>$x</a> in s, $x ~ 5 construct $x", "~", QuerySyntaxError, "expected a comparison (= != < <= > >=)"),
    ("create q where <a>$x</a> in s, $y > 5 construct $x", "$y", QueryError, "no pattern binds $y; bound variables: $x"),
    ("create q where <a>$x</a> in s construct <r a=$z/>", "$z", QueryError, "no pattern binds $z"),
    ("create q where <a>$x</a> in s, 5 > 'a' construct $x", "5 >", QueryError, "two constants"),
    ("create q where <a>$x</a> in '*' construct $x", "'*'", QueryError, "expected 'conforms to'"),
    ("create q where <a>$x</a> in s conforms to d construct $x", "d construct", QueryError, "needs the source"),
    ("create q where <a>$x</a> in s, $x > 1e999 construct $x", "1e999", QueryError, "too large"),
    ("create q where $x > 5 construct $x", "$x > 5", QueryError, "no pattern binds $x"),
    ("create q where <a>$x</a> in s construct <5a/>", "5a", QueryError, "'5a' is not a name"),
    ("create q where <a>$x</a> in s construct <r a='1' a='2'/>", "a='2'", QueryError, "given twice"),
    ("create q where <a>$x</a> in s construct $x every -5", "-5", QueryError, "negative"),
    ("create q where <a>$x</a> in s construct $x every 5 fortnights", "5 fort", QueryError, "'fortnights' is not a unit"),
    ("create q where <a>$x</a> in s construct $x start 2026-13-01", "2026", QueryError, "is not a time"),
    ("create q where <a>$x</a> in s construct $x start 100 expire 50", "expire", QueryError, "expires before it starts"),
    ("create q where <a>$x</a> in s construct $x start in 2 days expire in 1 day", "expire", QueryError, "before it starts"),
    ("create q where <a>$x</a> in s construct $x every 5 every 6", "every 6", QuerySyntaxError, "'every' is given twice"),
    ("create q where <a>$x</a> in s construct $x stop", "stop", QuerySyntaxError, "expected ',', 'distinct on', 'do', 'every', 'expire', 'old', 'pref', 'publish', 'start', a $variable"),
    ("create q where <a>$x</a> in s construct $x do", "", QuerySyntaxError, "expected a name, found the end"),
    ("create q where <a>$x</a> in s construct $x do f('a'", "", QuerySyntaxError, "expected ')' or ',', found the end"),
    ("create q where <a>$x</a> in s construct $x every", "", QuerySyntaxError, "expected a number, a unit of time or quoted text"),
    ("for $a in stream('S')/b return $c", "$c", QueryError, "no 'for' binds $c; bound variables: $a"),
    ("for $a in $b/c return $a", "$b", QueryError, "the first variable reads a stream"),
    ("for $a in stream('S')/b, $c in stream('T')/d return $a", "'T'", QueryError, "reads one stream"),
    ("for $a in stream('S')/b, $a in $a/c return $a", "$a in $a", QueryError, "$a is bound twice"),
    ("for $a in stream('S')/b where $a/c > 5 or $a/d = 1 return $a", "or", QuerySyntaxError, "found 'or'"),
    ("for $a in stream('S')/b where $a/c > 5", "", QuerySyntaxError, "found the end of the statement"),
    ("for $a in stream('S')/b return $a/c[d > 5]", "c[d", QueryError, "write for $x in ... where ... return $x"),
    ("for $a in stream('S')/text()/b return $a", "text()", QueryError, "text() is only allowed at the end of a path"),
    ("for $a in stream('S')/b return <x>{$a}</y>", "y>", QuerySyntaxError, "expected '</x>' to close '<x>'"),
    ("for $a in stream('S')/b return <x a='1' a='2'/>", "a='1'", QueryError, "given twice"),
    ("for $a in stream('S')/b return <x a='n {$a/@n} m'/>", "'n {", QueryError, "expected one path in braces"),
    ("for $a in stream('S')/b return $a/c pref v(c) = 2", "2", QueryError, "a number from 0 to 1, found 2"),
    ("for $a in stream('S')/b return $a/c pref v(c) = 0.5, v(c) = 0.4", "pref", QueryError, "the preference of c is given twice"),
    ("for $a in stream('S')/b return $a/c pref c < d", "<", QuerySyntaxError, "expected '>' between the patterns"),
    ("for $a in stream('S')/b return $a/c pref v(c) > 0.5", "> 0.5", QuerySyntaxError, "expected '=' and a number"),
    ("for $a in stream('S')/b return $a pref c > d pref e > f", "pref e", QuerySyntaxError, "'pref' is given twice"),
    ("create q as <a>", "as", QuerySyntaxError, "query q: expected 'where', found 'as'"),
    ("create query q where <a>", "where", QuerySyntaxError, "query q: expected 'as' or 'using'"),
    ("create query q using cobol as where", "cobol", QueryError, "'cobol' is not a language: expected niagaracq"),
    ("create query q as <a>", "<a>", QuerySyntaxError, "expected a query"),
    ("create 5", "5", QuerySyntaxError, "expected the query's name"),
    ("create \"\" where", '""', QuerySyntaxError, "expected the query's name, found an empty text"),
    ("delete", "", QuerySyntaxError, "expected the query's name"),
    ("delete a b", "b", QuerySyntaxError, "expected the end of the statement"),
    ("hello there", "hello", QuerySyntaxError, "expected 'create stream NAME'"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "place", "kind", "words"), CASES, ids=[case[0] for case in CASES])
def test_error(statement: str, place: str, kind: type[QueryError], words: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_script(f"{GOOD}   {statement} ;\n{GOOD}")
    error = caught.value
    column = 4 + (statement.rindex(place) if place else len(statement))
    assert type(error) is kind
    assert words in error.reason
    assert (error.line, error.column) == (2, column)
    message, shown, caret = str(error).split("\n")
    assert message.startswith(f"line 2, column {column}: ")
    assert caret.strip() == "^"
    assert shown[caret.index("^") :].startswith(place or " ;")


def test_messages_have_no_terminal_names() -> None:
    text = "create q where <a n=$n><b>$x</b> element_as $g </a> in s, $x > 5 construct <r>t $x</r>, $g do f x start now every 5 s"
    for cut in range(len("create "), len(text)):
        try:
            parse_script(f"{text[:cut]} ! ")
        except QueryError as error:
            expected = error.reason.partition(", found")[0].replace("element_as", "")
            assert "_" not in expected
            assert not expected.endswith("expected ")
            assert not any(word.isupper() and len(word) > 1 for word in re.findall(r"\w+", expected))


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        parse_script(f"create q where {'<a>' * 5000}{'</>' * 5000} in s construct 'x'")
