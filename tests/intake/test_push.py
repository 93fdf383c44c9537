"""Pushed documents and tuples."""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fishweir.errors import QueryError
from fishweir.intake import documents_batch
from fishweir.intake.dict_columns import TOGETHER
from tests.intake.support import stream

XML = stream()
TUPLES = stream(columns=(("i", "int"), ("x", "double"), ("s", "string"), ("b", "boolean"), ("t", "timestamp")))
MOMENT = datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)


def rows(items: Any, definition: Any = TUPLES, **options: Any) -> list[dict[str, Any]]:
    found = documents_batch(definition, items, options.get("timestamps"), options.get("ids"), 9.0).to_pylist()
    return [{k.removeprefix("c_"): v for k, v in row.items() if v is not None} for row in found]


def test_texts_and_bytes() -> None:
    found = rows(
        ["<?xml version='1.0' encoding='latin-1'?><a>é</a>", b"\xff"],
        XML,
        timestamps=[1, None],
        ids=["d", None],
    )
    assert found[0] == {
        "id": "d",
        "timestamp": 1.0,
        "arrival": 9.0,
        "body": "<?xml version='1.0'?><a>é</a>".encode(),
    }
    assert found[1] == {"arrival": 9.0, "body": b"\xff"}


def test_timestamps_as_texts() -> None:
    found = rows(["", "", ""], XML, timestamps=["1970-01-01T00:00:05Z", MOMENT, "5"])
    assert [row["timestamp"] for row in found] == [5.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("items", "options", "message"),
    [
        (["<a/>"], {"timestamps": [1.0, 2.0]}, "stream S: 1 items but 2 timestamps"),
        (["<a/>"], {"ids": []}, "stream S: 1 items but 0 ids"),
        (["<a/>"], {"ids": [5]}, "stream S: the id 5 is not a string"),
        (["<a/>"], {"timestamps": ["soon"]}, "stream S: 'soon' is not a timestamp"),
        ([5], {}, "stream S accepts XML as str or bytes, and objects as dicts, not int"),
    ],
)
def test_refused(items: Any, options: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        rows(items, XML, **options)


def test_a_lone_surrogate_is_a_problem() -> None:
    (found,) = rows(["<a>\ud800</a>"], XML)
    assert "not Unicode" in found["problem"]


def test_dicts() -> None:
    found = rows([{"i": 1, "x": 2, "s": "a", "b": True, "t": 5}, {"i": "7"}, {}], timestamps=[1, 2, 3])
    assert found[0] == {"arrival": 9.0, "timestamp": 1.0, "i": 1, "x": 2.0, "s": "a", "b": True, "t": MOMENT}
    assert found[1] == {"arrival": 9.0, "timestamp": 2.0, "i": 7}
    assert found[2] == {"arrival": 9.0, "timestamp": 3.0}


def test_bad_dicts_keep_their_position(caplog: pytest.LogCaptureFixture) -> None:
    found = rows([{"i": 1}, {"i": "x", "b": 3, "s": "q"}, {"i": 2, "z": "?"}, {"i": 3}])
    assert [row.get("i") for row in found] == [1, None, None, 3]
    assert found[1]["problem"] == "column i: 'x' is not an int; column b: 3 is not a boolean"
    assert json.loads(found[1]["body"]) == {"i": "x", "b": 3, "s": "q"}
    assert "s" not in found[1]
    assert found[2]["problem"] == "unknown column 'z' with value '?'"
    assert "stream S: column i: 'x' is not an int" in caplog.text


def test_arrow_and_pandas() -> None:
    table = pa.table({"x": [1, 2], "i": ["1", "no"], "t": pa.array([5, 5], pa.timestamp("s"))})
    for items in (table, table.to_batches()[0], table.to_pandas()):
        good, bad = rows(items)
        assert good == {"arrival": 9.0, "i": 1, "x": 1.0, "t": MOMENT}
        assert bad["problem"] == "column i: 'no' is not an int"
        assert json.loads(bad["body"])["x"] == 2


def test_pandas_of_mixed_types() -> None:
    found = rows(pd.DataFrame({"i": [1, "x", None], "x": [1.5, None, 2]}))
    assert [row.get("i") for row in found] == [1, None, None]
    assert [row.get("x") for row in found] == [1.5, None, 2]
    assert found[1]["problem"] == "column i: 'x' is not an int"


def test_a_table_with_an_unknown_column_is_refused() -> None:
    with pytest.raises(QueryError, match="stream S has no column z; it has i, x, s, b, t"):
        rows(pa.table({"z": [1]}))


@pytest.mark.parametrize("items", [[], pa.table({"i": pa.array([], pa.int64())})])
def test_no_items(items: Any) -> None:
    assert rows(items) == []


@pytest.mark.parametrize("count", [3, TOGETHER + 1])
def test_items_that_cannot_be_sliced(count: int) -> None:
    items = [{"i": i, "s": str(i)} for i in range(count)]
    items[0] = {"i": "x"}
    assert rows(deque(items)) == rows(dict(enumerate(items)).values()) == rows(items)


def one_by_one(items: list[Any]) -> list[dict[str, Any]]:
    return [row for item in items for row in rows([item])]


def test_many_items_are_converted_as_each_is_alone() -> None:
    """Items are converted some at a time; types that differ between portions, and within one, change nothing."""
    many: list[Any] = [{"i": i, "x": i / 2, "s": str(i), "b": True, "t": i} for i in range(2 * TOGETHER + 7)]
    many[3] = {"i": 2**63, "x": 1}
    many[TOGETHER] = {"i": 5.0, "x": float("nan"), "s": 5, "b": "false", "t": "1970-01-01T00:00:05Z"}
    many[TOGETHER + 1] = {"i": "6", "x": 2**60}
    many[TOGETHER + 2] = {"i": 1.5}
    many[TOGETHER + 3] = {}
    many[2 * TOGETHER] = {"i": True, "x": False, "y": 1}
    many[2 * TOGETHER + 1] = OrderedDict(i=np.int64(7), x=np.float32(0.5))
    many[2 * TOGETHER + 2] = {"i": None, "x": None, "s": None, "b": None, "t": None}
    assert rows(many) == one_by_one(many)
    assert rows(many[::-1]) == one_by_one(many[::-1])
    bad = [row for row, found in enumerate(rows(many)) if "problem" in found]
    assert bad == [3, TOGETHER + 2, 2 * TOGETHER]


def test_a_wrong_type_after_many_items() -> None:
    with pytest.raises(QueryError, match="stream S accepts tuples as dicts, not list"):
        rows([{"i": 1}] * TOGETHER + [[]])


@pytest.mark.parametrize("other", ["1970-01-01T00:00:05Z", None, MOMENT])
def test_many_timestamps(other: Any) -> None:
    times = [*map(float, range(TOGETHER)), 3, other]
    found = rows([{"i": 1}] * len(times), timestamps=times)
    assert [row.get("timestamp") for row in found] == [*map(float, range(TOGETHER)), 3.0, other and 5.0]


@pytest.mark.parametrize("times", [(1, 2), [1, 2.5], [2**53 + 1, 0.5], [np.float64(1.5), 2], [-0.0, 1e300]])
def test_numbers_as_timestamps(times: Any) -> None:
    found = rows(["<a/>"] * len(times), XML, timestamps=times)
    assert [row["timestamp"] for row in found] == [float(time) for time in times]


@pytest.mark.parametrize(
    ("times", "wrong"),
    [
        ([1.0, float("nan")], "nan"),
        ([float("inf")], "inf"),
        ([1.0, True], "True"),
        (pd.Series([1.0, float("nan")]), "nan"),
    ],
)
def test_what_is_no_timestamp(times: Any, wrong: str) -> None:
    with pytest.raises(QueryError, match=f"stream S: {wrong} is not a timestamp"):
        rows(["<a/>"] * len(times), XML, timestamps=times)
