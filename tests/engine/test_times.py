"""Columns of type timestamp compare as times, however the constant is written."""

from __future__ import annotations

import pytest

import fishweir
from fishweir.errors import QueryError
from tests.engine.support import micro_batch

NEW_YEAR = "2025-01-01T00:00:00Z"


@pytest.fixture
def weir(tmp_path):
    with fishweir.open(tmp_path / "home") as weir:
        weir.execute("create stream R (b string, e timestamp, f timestamp); create stream T (b string, e timestamp)")
        yield weir


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("e = '2025-01-01'", True), (f"e = '{NEW_YEAR}'", True), ("e = '2025-01-01T01:00:00+01:00'", True),
        ("e <> 'Wed, 01 Jan 2025 00:00:00 GMT'", False), (f"e > '{NEW_YEAR}'", False), (f"e >= '{NEW_YEAR}'", True),
        ("e < '2025-01-01T01:00:00+01:00'", False), ("e >= '2025-01-01T00:30:00+01:00'", True),
        ("e < '2025-01-01T00:00:00.5Z'", True), ("e between '2024-12-31' and '2025-01-01'", True),
        ("e in ('2024-01-01', '2025-01-01')", True), ("not e > '2025-01-02'", True), ("e = f", True),
    ],
)  # fmt: skip
def test_compares_as_time(weir, condition, holds):
    weir.execute(f"create query q as select b from R where {condition}")
    weir.publish("R", [{"b": "a", "e": NEW_YEAR, "f": "2025-01-01T02:00:00+02:00"}], timestamps=[1.0])
    micro_batch(weir)
    assert [r.output for r in weir.results("q")] == ([{"b": "a"}] if holds else [])


def test_in_joins_and_many_at_once(weir):
    """And columns of the same name have their streams before them."""
    condition = "R.e < '2025-02-01' and T.e >= $t and R.b = T.b"
    statement = f"create query $name as select R.b, T.b, T.e as at from R [range 9], T [range 9] where {condition}"
    times = {"early": "2025-06-01T01:00:00+01:00", "late": "2025-06-01T00:00:01Z"}
    weir.register_many(statement, [{"name": name, "t": time} for name, time in times.items()])
    weir.publish("R", [{"b": "a", "e": NEW_YEAR}], timestamps=[1.0])
    weir.publish("T", [{"b": "a", "e": "2025-06-01"}], timestamps=[2.0])
    micro_batch(weir)
    (result,) = weir.results("early")
    assert {name: result.output[name] for name in ("R.b", "T.b")} == {"R.b": "a", "T.b": "a"}
    assert not list(weir.results("late"))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select b from R where e > 'soon'", "compares e, a time, with soon"),
        ("select b from R where e > 5", "compares e, a time, with 5"),
        ("select b from R where e < f", "compares e, a time, with another column by '<'"),
        ("select R.b from R [range 9], T [range 9] where R.e < T.e", "between times only = and != are built"),
    ],
)
def test_refused(weir, query, words):
    with pytest.raises(QueryError, match="query q ") as caught:
        weir.execute(f"create query q as {query}")
    assert words in str(caught.value)
