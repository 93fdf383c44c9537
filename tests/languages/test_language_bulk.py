"""The texts of register_many: no value breaks the statement into which it is inserted."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given

from fishweir.algebra.nodes import CreateQuery
from fishweir.errors import QueryError
from fishweir.languages.bulk import render_rows, to_rows
from fishweir.languages.script import parse_script
from fishweir.languages.skeleton import SkeletonCache
from tests import strategies as st

TEXT = "create $name where <a n='$s' m=“$s”><b>$s</b><c>\"x $s\"</c><d>$x</d></a> in 's', $x > $n construct $x -- $s"


def one(text: str, **row: Any) -> str:
    (rendered,) = render_rows(text, [row])
    return rendered


@given(st.text(), st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20))
def test_values_survive_rendering(value: str, number: float) -> None:
    (query,) = parse_script(one(TEXT, name="q.1", s=value, n=number), cache=SkeletonCache())
    assert isinstance(query, CreateQuery)
    assert query.name == "q.1"
    assert query.constants == (value, value, value, f"x {value}", float(number))


@given(st.text(alphabet="'\"”;-$x# \n", max_size=6), st.text(alphabet="'\"”;-$x# \n", max_size=6))
def test_adjacent_values_stay_separate(a: str, b: str) -> None:
    (query,) = parse_script(one("create q where <a>$a$b'c'$a</a> in s construct 'x'", a=a, b=b))
    assert isinstance(query, CreateQuery)
    assert query.constants == (a, b, "c", a)


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (5, "5"),
        (5.0, "5"),
        (0.1, "0.1"),
        (True, "'true'"),
        ("5", "'5'"),
        (np.int64(7), "7"),
        (np.float32(0.5), "0.5"),
        (np.str_("a"), "'a'"),
        (np.bool_(False), "'false'"),
        (datetime.date(2026, 1, 2), "'2026-01-02'"),
        ("a'b", "'a''b'"),
    ],
)
def test_literals(value: Any, literal: str) -> None:
    assert one("x > $v", v=value) == f"x > {literal}"


def test_variables_are_kept() -> None:
    assert one("<a>$x</a> '$x' $lo $low", lo=5) == "<a>$x</a> '$x' 5 $low"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create $name where", "create q7 where"),
        ("CREATE QUERY  $name as", "CREATE QUERY  q7 as"),
        ("create user_$name-x where", "create user_q7-x where"),
        ("create stream $name from $name", "create stream q7 from 'q7'"),
        ("delete $name; create $name where", "delete q7; create q7 where"),
    ],
)
def test_names(text: str, expected: str) -> None:
    assert one(text, name="q7") == expected


@pytest.mark.parametrize("name", ["", "5", "a b", "a;b", "a--b", "query", "x where <a>"])
def test_bad_name(name: str) -> None:
    rows = [{"name": "good"}, {"name": name}]
    with pytest.raises(QueryError, match=r"row 2: '.*' is not a name"):
        list(render_rows("create $name where", rows))


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), pd.NA, pd.NaT])
@pytest.mark.parametrize("text", ["$v", "'$v'", "create $v where"])
def test_missing_value(value: Any, text: str) -> None:
    with pytest.raises(
        QueryError, match=r"row 2: the (value of the )?column 'v' (has no value|is not a finite number)"
    ):
        list(render_rows(text, [{"v": "x"}, {"v": value}]))


def test_missing_column_and_rows_that_are_not_mappings() -> None:
    with pytest.raises(QueryError, match="row 2: there is no column 'v'"):
        list(render_rows("$v", [{"v": 1}, {"w": 1}]))
    with pytest.raises(QueryError, match="row 1 must be a mapping"):
        list(render_rows("$v", [5]))  # type: ignore[list-item]


def test_no_rows() -> None:
    assert list(render_rows("$v", [])) == []


ROWS = [{"name": f"q{i}", "lo": i} for i in range(20_000)]


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        iter(ROWS),
        pa.Table.from_pylist(ROWS),
        pa.RecordBatch.from_pylist(ROWS),
        pd.DataFrame(ROWS),
        pa.Table.from_pylist(ROWS).to_reader(max_chunksize=999),
    ],
    ids=["list", "iterator", "table", "batch", "pandas", "reader"],
)
def test_to_rows(data: Any) -> None:
    rows = list(to_rows(data))
    assert rows == ROWS
    assert one("$lo", **rows[3]) == "3"


@pytest.mark.parametrize("data", [{"name": "q"}, "text", 5])
def test_data_that_is_not_rows(data: Any) -> None:
    with pytest.raises(QueryError, match="rows must be"):
        to_rows(data)
