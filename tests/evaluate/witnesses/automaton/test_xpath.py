"""The XPath fragment: the meaning of texts, equal definitions, and errors with their positions."""

from __future__ import annotations

import pytest

from fishweir.errors import QuerySyntaxError
from fishweir.evaluate.witnesses.automaton.pattern import And, Compare, Exists, NameTest, Not, PathStep, Pattern
from fishweir.evaluate.witnesses.automaton.xpath import parse_xpath


def test_steps_names_and_predicates() -> None:
    pattern = parse_xpath("/a//p:b[@k = 'x' and not(.//c)]/*/@*", {"p": "urn:p"})
    child = Pattern((PathStep(NameTest("c", ""), deep=True),))
    key = Pattern((PathStep(NameTest("k", ""), attribute=True),))
    assert pattern == Pattern(
        (
            PathStep(NameTest("a", "")),
            PathStep(NameTest("b", "urn:p"), True, False, And((Compare(key, "=", "x"), Not(Exists(child))))),
            PathStep(NameTest(None)),
            PathStep(NameTest(None), attribute=True),
        )
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/a[b][c]", "/a[c and b]"),
        ("/a[b and b]", "/a[./b]"),
        ("/a/./b", " / a / b "),
        ("/a[5 < b]", "/a[b > 5.0]"),
        ("/a[b or (c or d)]", "/a[d or c or b]"),
        ("/and[or and not]", "/and[not][or]"),
        ("/a/.[b]", "/a[b]"),
        ("//@k", "//@k"),
    ],
)
def test_equal_definitions_are_equal_patterns(one: str, other: str) -> None:
    assert parse_xpath(one) == parse_xpath(other)


@pytest.mark.parametrize(
    "text", ["/a[b = '1']|/a[b = 1]", "/a/b|/a//b", "/a/@b|/a/b", "/a[b or c]|/a[b and c]", "/a[not(b)]|/a[b]"]
)
def test_different_definitions_are_different_patterns(text: str) -> None:
    one, other = text.split("|")
    assert parse_xpath(one) != parse_xpath(other)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a/b", 1, "expected '/' or '//'"),
        ("", 1, "expected '/' or '//'"),
        ("/", 2, "expected a name"),
        ("/.", 1, "the document itself"),
        ("/a/", 4, "found the end"),
        ("/a//.", 5, "write '//\\*'"),
        ("/a/..", 4, "parent axis"),
        ("/a[3]", 4, "positions are not supported"),
        ("/a[b", 5, "expected '\\]'"),
        ("/a[b = c]", 8, "a quoted string or a number"),
        ("/a[b < 'x']", 6, "'=' or '!=' only"),
        ("/a[not(b]", 9, "expected '\\)'"),
        ("/a[/b]", 4, "starts at its node"),
        ("/a/text()", 4, "'text\\(' is not supported"),
        ("/a/child::b", 4, "'child::' is not supported"),
        ("/a/@k/b", 6, "an attribute has no children"),
        ("/a/@k[b]", 7, "an attribute has no children"),
        ("/x:a", 2, "prefix 'x'"),
        ("/a|/b", 3, "register each path"),
        ("/a[b = 'x]", 8, "no closing quote"),
        ("/a[b ~ 1]", 6, "not allowed in a path"),
    ],
)
def test_errors_have_a_position(text: str, column: int, message: str) -> None:
    with pytest.raises(QuerySyntaxError, match=message) as caught:
        parse_xpath(text)
    assert (caught.value.line, caught.value.column) == (1, column)


@pytest.mark.parametrize("text", ["/a//b[c/@k='x' or not(d>=2)]/*", "//@k", "/a[. != 'y'][b[c]//d]"])
def test_the_shown_text_reads_back(text: str) -> None:
    pattern = parse_xpath(text, any_namespace=True)
    assert parse_xpath(str(pattern), any_namespace=True) == pattern
