"""Columns of type timestamp compare as times, however the constant is written."""

from __future__ import annotations

import pytest

from fishweir import testing
from fishweir.errors import QueryError

NEW_YEAR = "2025-01-01T00:00:00Z"


@pytest.fixture
def weir(tmp_path):
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream R (b string, e timestamp, f timestamp, g timestamp)")
        weir.execute("create stream T (b string, e timestamp)")
        yield weir


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("e = '2025-01-01'", True),
        (f"e = '{NEW_YEAR}'", True),
        ("e = '2025-01-01T01:00:00+01:00'", True),
        ("e <> 'Wed, 01 Jan 2025 00:00:00 GMT'", False),
        (f"e > '{NEW_YEAR}'", False),
        (f"e >= '{NEW_YEAR}'", True),
        ("e < '2025-01-01T01:00:00+01:00'", False),
        ("e >= '2025-01-01T00:30:00+01:00'", True),
        ("e < '2025-01-01T00:00:00.5Z'", True),
        ("e between '2024-12-31' and '2025-01-01'", True),
        ("e in ('2024-01-01', '2025-01-01')", True),
        ("not e > '2025-01-02'", True),
        ("e = f", True),
        ("e <= f", True),
        ("e < f", False),
        ("g > e", True),
        ("not (f < e or g <= f)", True),
        ("g < e", False),
    ],
)
def test_timestamps_are_compared_as_times(weir, condition, holds):
    weir.execute(f"create query q as select b from R where {condition}")
    later = {"f": "2025-01-01T02:00:00+02:00", "g": "2025-01-01T00:00:00.000001Z"}
    weir.publish("R", [{"b": "a", "e": NEW_YEAR, **later}], timestamps=[1.0])
    weir.step()
    assert [r.output for r in weir.results("q")] == ([{"b": "a"}] if holds else [])


def test_in_joins_and_many_at_once(weir):
    """And columns of the same name have their streams before them."""
    condition = "R.e < '2025-02-01' and T.e >= $t and R.b = T.b"
    statement = f"create query $name as select R.b, T.b, T.e as at from R [range 9], T [range 9] where {condition}"
    times = {"early": "2025-06-01T01:00:00+01:00", "late": "2025-06-01T00:00:01Z"}
    weir.register_many(statement, [{"name": name, "t": time} for name, time in times.items()])
    weir.publish("R", [{"b": "a", "e": NEW_YEAR}], timestamps=[1.0])
    weir.publish("T", [{"b": "a", "e": "2025-06-01"}], timestamps=[2.0])
    weir.step()
    (result,) = weir.results("early")
    assert {name: result.output[name] for name in ("R.b", "T.b")} == {"R.b": "a", "T.b": "a"}
    assert not list(weir.results("late"))


def test_columns_of_times_are_ordered_in_joins(weir):
    """As the numbers they are: also before 1970, to the microsecond, of two streams and of three."""
    weir.execute("""
        create query two as select R.b, T.b as t from R [range 99], T [range 99] where R.e < T.e;
        create query three as select x.b, y.b as y, T.b as t from R [range 99] as x, R [range 99] as y, T [range 99]
            where x.e < y.e and y.e <= T.e;
    """)
    times = ["1969-12-31T23:59:59.999999Z", "1970-01-01", "2025-01-01T01:00:00+01:00", "2025-01-01T00:00:00.000001Z"]
    weir.publish("R", [{"b": str(i), "e": time} for i, time in enumerate(times)], timestamps=range(4))
    weir.publish("R", [{"b": "none"}], timestamps=[4])
    weir.publish("T", [{"b": str(i), "e": time} for i, time in enumerate(times)], timestamps=range(4))
    weir.step()
    every = range(len(times))
    two = [(x, z) for x in every for z in every if x < z]
    three = [(x, y, z) for x in every for y in every for z in every if x < y <= z]
    for name, expected in (("two", two), ("three", three)):
        found = sorted(tuple(map(int, result.output.values())) for result in weir.results(name))
        assert found == expected, name


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select b from R where e > 'soon'", "compares e, a time, with soon"),
        ("select b from R where e > 5", "compares e, a time, with 5"),
        ("select b from R where b < f", "compares f, a time, with a column that is not a time, using '<'"),
        (
            "select R.b from R [range 9], T [range 9] where R.e >= T.b",
            "compares e, a time, with a column",
        ),
    ],
)
def test_refused(weir, query, words):
    with pytest.raises(QueryError, match="query q ") as caught:
        weir.execute(f"create query q as {query}")
    assert words in str(caught.value)
