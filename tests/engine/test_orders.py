"""Two columns are ordered as their declared types are: texts as texts, numbers as numbers."""

from __future__ import annotations

import pytest

from fishweir import testing
from fishweir.errors import QueryError


@pytest.fixture
def weir(tmp_path):
    with testing.open(tmp_path / "home") as weir:
        weir.execute("""
            create stream R (id string, a string, b string, n int, m double, yes boolean);
            create stream S (id string, a string);
            create stream X;
        """)
        yield weir


ROWS = [
    {"id": "1", "a": "ant", "b": "bee"},
    {"id": "2", "a": "10", "b": "9"},
    {"id": "3", "a": "Z", "b": "a"},
    {"id": "4", "a": "z", "b": "é"},
    {"id": "5", "a": "\uffff", "b": "\U0001f41d"},
    {"id": "6", "a": "same", "b": "same"},
    {"id": "7", "a": "", "b": " "},
    {"id": "8", "a": None, "b": "x", "n": 9, "m": 10.0},
]


def found(weir, name):
    return "".join(result.output["id"] for result in weir.results(name))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a < b", "123457"),
        ("b > a", "123457"),
        ("a <= b", "1234567"),
        ("a >= b", "6"),
        ("not (a >= b)", "123457"),
        ("a < b and n > 5 or a < b and a > 'm'", "45"),
        ("R.a < R.b", "123457"),
        ("n < m", "8"),
        ("a < n", ""),
    ],
)
def test_selections(weir, condition, expected):
    weir.execute(f"create query q as select id from R where {condition}")
    weir.publish("R", ROWS)
    weir.step()
    assert found(weir, "q") == expected


def test_within_a_stream_that_is_joined(weir):
    weir.execute("create query q as select R.id from R [range 9], S [range 9] where R.a < R.b and S.id = 'x'")
    weir.publish("R", ROWS, timestamps=[1.0] * len(ROWS))
    weir.publish("S", [{"id": "x"}], timestamps=[2.0])
    weir.step()
    assert sorted(found(weir, "q")) == sorted("123457")


def test_columns_of_documents_are_numbers(weir):
    weir.execute("create query q as select id from X where a < b")
    weir.publish("X", ["<x><id>1</id><a>9</a><b>10</b></x>", "<x><id>2</id><a>ant</a><b>bee</b></x>"])
    weir.step()
    assert found(weir, "q") == "1"


REFUSED = [
    (
        "select R.id from R [range 9], S [range 9] where R.a < S.a",
        "query q compares a with a, both strings, using '<'; in joins, only numbers and times can be ordered",
    ),
    (
        "select x.id from R [range 9] as x, S [rows 9] as y, S [rows 9] as z where x.id = y.id and y.id >= z.a",
        "query q compares id with a, both strings, using '>='",
    ),
    ("select id from R where yes < n", "query q compares yes using '<', but true and false have no order"),
]


@pytest.mark.parametrize(("query", "words"), REFUSED)
def test_refused(weir, query, words):
    with pytest.raises(QueryError) as caught:
        weir.execute(f"create query q as {query}")
    assert words in str(caught.value)
    assert caught.value.line == 1
