"""Groups of links, similar texts and patterns: each index answers as a loop over all queries would."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given

from fishweir.algebra.nodes import OPERATORS, Operator
from fishweir.algebra.normal import ConstantCondition, Template, TemplateNode
from fishweir.algebra.operators import find_condition
from fishweir.algebra.texts import date_part
from fishweir.algebra.values import COMPARE
from fishweir.evaluate.arrays import to_column
from fishweir.evaluate.index.indexes import index_for, order_for
from fishweir.evaluate.index.links import Links
from fishweir.evaluate.index.patterns import STYLES, Patterns, classes
from fishweir.evaluate.index.similarity import Similar, least_common
from fishweir.evaluate.plan.segments import planned_segment, read_segment, write_segment
from fishweir.evaluate.select.anchors import choose_anchor
from fishweir.evaluate.select.constant_tables import build_table, merge_tables
from fishweir.evaluate.select.match import match_table
from tests import strategies as st
from tests.evaluate.support import SOURCE, STEPS, expanded, fired, table_of, values

LINK_OPERATORS = ["references", "extends", "shares-link"]
some = {"min_size": 1, "max_size": 30}


def by_hand(op: str, constants: list[str], given: list[str]) -> list[tuple[int, int]]:
    condition = find_condition(op)
    assert condition is not None
    test = condition.meaning
    numbered = list(enumerate(constants))
    return [(row, i) for row, value in enumerate(given) for i, constant in numbered if test(value, constant)]


def table(op: str, constants: list[str]):  # type: ignore[no-untyped-def]
    return table_of([op], "words" if op == "contains" else "string", [(constant,) for constant in constants])  # type: ignore[list-item]


# Links

pieces = st.sampled_from(["a", "b.a", "www.", "A", ".", "..", "/", "/x", "/x/", "?", "#", "?x", "/b.a", "!", ")", " "])
urls = st.builds(
    lambda scheme, parts: scheme + "".join(parts),
    st.sampled_from(["http://", "HTTPS://", "https://www.", "", "www."]),
    st.lists(pieces, max_size=5),
)
linked = st.lists(urls | st.sampled_from(["see", "<a href='http://a/x'>", "http://a.b"]), max_size=4).map(" ".join)


@st.examples(150)
@given(st.sampled_from(LINK_OPERATORS), st.lists(urls, **some), st.lists(linked, max_size=8))
def test_links(op: str, constants: list[str], given: list[str]) -> None:
    assert fired(table(op, constants), given) == by_hand(op, constants, given)


def test_constants_with_the_same_spelling_are_one_slice() -> None:
    found = table("extends", ["http://a.org/x", "https://www.A.org/x/", "a.org"])
    assert isinstance(found.index, Links)
    assert len(found.index.look_up(values(["http://a.org/x?q"])).row) == 2
    assert fired(found, ["http://a.org/x?q http://a.org/x", "http://sub.a.org"]) == [(0, 0), (0, 1), (0, 2), (1, 2)]


# Similarity

vocabulary = st.lists(st.sampled_from(["rock", "Rock", "jazz", "x", "y", "z", "é", "-", "É", "a_b"]), max_size=7)
phrases = vocabulary.map(" ".join)
shares = st.sampled_from([0.0, 1.0, 0.8, 0.5, 1 / 3, 0.3, 2 / 3, 0.6, -1.0, 1.5, 1e-9]) | st.floats(0, 1)


@st.examples(150)
@given(st.lists(st.tuples(shares, phrases), **some), st.lists(phrases, max_size=8))
def test_similar(constants: list[tuple[float, str]], given: list[str]) -> None:
    joined = [f"{share}\t{text}" for share, text in constants]
    assert fired(table("similar", joined), given) == by_hand("similar", joined, given)


@given(st.integers(1, 200), st.integers(1, 200))
def test_least_common_is_least(numerator: int, words: int) -> None:
    for share in (min(numerator / words, 1.0), numerator / 200):
        (least,) = least_common(np.array([share]), np.array([words])).tolist()
        assert least == next(k for k in range(1, words + 2) if k > words or k / words >= share)


def test_constants_without_a_threshold_are_one_slice() -> None:
    found = table("similar", [f"0\ttext {i}" for i in range(100)] + ["0.0\t", "0.5\tx"])
    assert isinstance(found.index, Similar)
    slices = found.index.look_up(values(["x", ""]))
    assert sorted((slices.hi - slices.lo).tolist()) == [1, 100, 101]


# Patterns

signs = st.sampled_from([*"abcABC%%__ß\n.*ſKkéÉ", "abc", "rock", "İ", "ς", "Σ"])
likes = st.lists(signs, max_size=8).map("".join)
likely = st.lists(signs.filter(lambda sign: sign not in "%_"), max_size=10).map("".join)


patterned = st.sampled_from(sorted(STYLES))


@st.examples(150)
@given(patterned, st.lists(likes | likely, **some), st.lists(likely | st.sampled_from(["", "a%", "_"]), max_size=8))
def test_patterns(op: str, constants: list[str], given: list[str]) -> None:
    assert fired(table(op, constants), given) == by_hand(op, constants, given)


@given(patterned, st.lists(st.text(max_size=6), **some), st.lists(st.text(max_size=6), max_size=8))
def test_patterns_on_any_text(op: str, constants: list[str], given: list[str]) -> None:
    given = [*given, *constants, *(text.swapcase() for text in constants), *(f"x{text}y" for text in constants)]
    wild = [*constants, *(f"%{text}%" for text in constants), *(f"{text}%" for text in constants)]
    assert fired(table(op, wild), given) == by_hand(op, wild, given)


@pytest.mark.parametrize(
    ("op", "constant", "found"),
    [
        ("like", "b%", ["big 50%"]),
        ("ilike", "b%", ["Blue", "big 50%"]),
        ("substring", "0%", ["big 50%"]),
        ("substring", "_", []),
        ("starts-with", "B", ["Blue"]),
        ("starts-with", "", ["Blue", "big 50%", ""]),
    ],
)
def test_meaning_of_patterns(op: str, constant: str, found: list[str]) -> None:
    given = ["Blue", "big 50%", ""]
    assert [given[row] for row, _ in fired(table(op, [constant]), given)] == found


def test_classes_are_those_of_regular_expressions() -> None:
    """Every letter with a case, against all others: the classes are neither coarser nor finer."""
    characters = [chr(i) for i in range(len(classes())) if not 0xD800 <= i < 0xE000]
    cased = {char for char in characters if char.lower() != char or char.upper() != char}
    assert len(cased) > 2000
    by_class: dict[int, set[str]] = {}
    for char in cased:
        by_class.setdefault(int(classes()[ord(char)]), set()).add(char)
    together = "".join(cased)
    for char in cased:
        assert set(re.findall(re.escape(char), together, re.IGNORECASE)) == by_class[int(classes()[ord(char)])]
    rest = [ord(char) for char in characters if char not in cased]
    assert (classes()[rest] == rest).all()
    assert not by_class.keys() & set(rest)


def test_few_patterns_are_tried() -> None:
    index = table("like", [f"%word{i:05}%" for i in range(10_000)] + ["plain text", "a%"]).index
    assert isinstance(index, Patterns)
    lengths = np.diff(index.listed.lists)
    assert not len(index.listed.without) or len(index.listed.without) == 1
    assert lengths.max() < 200


# All text conditions


@pytest.mark.parametrize("op", [*LINK_OPERATORS, "similar", "contains", *STYLES])
@pytest.mark.parametrize("given", [[], [""], ["x"], ["", "", "x"]])
def test_empty_values_and_constants(op: str, given: list[str]) -> None:
    constants = ["0.5\t", "0\t", "1\tx"] if op == "similar" else ["", "x", "%", "x y"]
    assert fired(table(op, constants), given) == by_hand(op, constants, given)


@pytest.mark.parametrize(
    ("op", "constants"),
    [
        *((op, ["http://a.org/x", "a.org", "http://b.org", "a.org"]) for op in LINK_OPERATORS),
        ("similar", ["0.5\trock concert", "0\tx", "1.0\trock", "0.5\trock concert"]),
        ("like", ["%rock%", "r_ck", "%", "%rock%", "rock concert"]),
        ("ilike", ["%ROCK%", "r_Ck", "%", "%ROCK%", "rock Concert"]),
        ("substring", ["rock", "", "org", "rock"]),
        ("starts-with", ["rock", "a", "", "rock"]),
    ],
)
def test_indexes_survive_segments(op, constants, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """An index gives the same answers after it is read from a file and merged with others."""
    given = ["a rock concert", "rock", "see http://a.org/x/y, http://b.org", "", "http://c.a.org"]
    first = table(op, constants)
    write_segment(tmp_path, planned_segment("1", (first,), {}))
    (again,) = read_segment(tmp_path, "1").groups
    assert type(again.index) is type(first.index)
    assert again.residual == ()
    assert fired(again, given) == fired(first, given) == by_hand(op, constants, given) != []
    merged = merge_tables([again, again], np.empty(0, np.int64))
    assert merged is not None
    assert fired(merged, given) == sorted(2 * by_hand(op, constants, given))


@pytest.mark.parametrize("op", [*LINK_OPERATORS, "similar", *STYLES])
def test_text_conditions_are_anchors(op: str) -> None:
    """After equality and `contains`, before inequality."""
    nodes = (TemplateNode(-1, STEPS[0]), TemplateNode(0, STEPS[1]), TemplateNode(0, STEPS[1]))
    for other, kind, first in (("=", "string", 1), ("contains", "words", 1), ("!=", "string", 0), ("!=", "number", 0)):
        conditions = (ConstantCondition(1, op, "string", 0), ConstantCondition(2, other, kind, 1))  # type: ignore[arg-type]
        template = Template(SOURCE, nodes, conditions, (), (1,))
        columns = [to_column(["0.5\tx"], "string"), to_column(["x"], "string")]
        assert choose_anchor(template, columns, {}).conditions == (first,)


def test_order_and_index_match() -> None:
    column = to_column(["a.org", "http://b.org/", "b.org", "a.org"], "string")
    ordered = column.take(order_for("references", "string", column))
    assert len(index_for("references", "string", "value", ordered).look_up(values(["http://b.org/x"])).row) == 1


# Dates and inequality

DATES = ["2025-03-04T05:06:07Z", "2024-12-31", "Tue, 04 Mar 2025 05:00:00 GMT", "0", "x", "", "2025-03-04"]


@pytest.mark.parametrize("part", ["year", "month", "day", "hour", "time"])
@pytest.mark.parametrize("op", OPERATORS)
def test_parts_of_dates(part: str, op: Operator) -> None:
    constants = [0.0, 3.0, 4.0, 5.0, 12.0, 31.0, 1970.0, 2025.0, 1741064767.0, 2025.0]
    condition = ConstantCondition(1, op, "number", 0, part)  # type: ignore[arg-type]
    nodes = (TemplateNode(-1, STEPS[0]), TemplateNode(0, STEPS[1]))
    template = Template(SOURCE, nodes, (condition,), (), (1,))
    columns = [to_column(constants, "number")]
    found = build_table(template, choose_anchor(template, columns, {}), np.arange(len(constants)), columns)
    assert found.anchor.conditions == (0,)
    assert found.residual == ()
    seconds = {text: date_part(text, part) for text in DATES}
    expected = [
        (number, row, (1,))
        for row, text in enumerate(DATES)
        for number, constant in enumerate(constants)
        if seconds[text] is not None and COMPARE[op](seconds[text], constant)
    ]
    matches = match_table(found, {STEPS: values(DATES)})
    assert matches is not None
    assert sorted(expanded(found, matches)) == sorted(expected)


def test_inequality_of_strings_is_anchored() -> None:
    found = table("!=", ["a", "b", "a", ""])
    assert found.residual == ()
    assert fired(found, ["a", "c"]) == [(0, 1), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)]
