"""Columns are converted like single values, whatever their form."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from fishweir.intake.convert import convert, convert_list, convert_values, to_kind
from fishweir.intake.schema import KINDS
from tests import strategies as st

MOMENT = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (" 5 ", "int", 5),
        ("+5", "int", 5),
        ("5.0", "int", 5),
        (5.0, "int", 5),
        (True, "int", 1),
        ("9223372036854775807", "int", 2**63 - 1),
        (None, "int", None),
        (float("nan"), "double", None),
        ("1e3", "double", 1000.0),
        (Decimal("1.5"), "double", 1.5),
        (3, "double", 3.0),
        ("TRUE", "boolean", True),
        ("0", "boolean", False),
        (1, "boolean", True),
        (5, "string", "5"),
        (5.0, "string", "5"),
        (True, "string", "true"),
        ("", "string", ""),
        ("2024-01-02T03:04:05Z", "timestamp", MOMENT),
        ("2024-01-02 03:04:05", "timestamp", MOMENT),
        ("Tue, 02 Jan 2024 03:04:05 GMT", "timestamp", MOMENT),
        (MOMENT.timestamp(), "timestamp", MOMENT),
        (str(MOMENT.timestamp()), "timestamp", MOMENT),
        (MOMENT.replace(tzinfo=None), "timestamp", MOMENT),
        (date(2024, 1, 2), "timestamp", datetime(2024, 1, 2, tzinfo=UTC)),
    ],
)
def test_single_values(value: Any, kind: str, expected: Any) -> None:
    assert to_kind(value, kind) == expected
    array, bad = convert_list([value], kind)
    assert (array.to_pylist(), bad, array.type) == ([expected], {}, KINDS[kind])


@pytest.mark.parametrize(
    ("value", "kind", "reason"),
    [
        ("abc", "int", "'abc' is not an int"),
        ("5.5", "int", "'5.5' is not an int"),
        (5.5, "int", "5.5"),
        ("0x1f", "int", "'0x1f' is not an int"),
        ("1_000", "int", "not an int"),
        (2**63, "int", "not an int"),
        ("nan", "double", "'nan' is not a double"),
        ("inf", "double", "not a double"),
        ("", "double", "''"),
        ("yes", "boolean", "'yes' is not a boolean"),
        (2, "boolean", "2 is not a boolean"),
        ("soon", "timestamp", "'soon' is not a timestamp"),
        ("2024-13-01", "timestamp", "not a timestamp"),
        (1e300, "timestamp", "not a timestamp"),
        ([1], "string", "not a string"),
        (b"\xe9", "string", "UTF-8"),
        ({"a": 1}, "int", "not an int"),
        ("\ud800", "string", "is not a"),
    ],
)
def test_bad_values(value: Any, kind: str, reason: str) -> None:
    with pytest.raises(ValueError, match=None) as caught:
        to_kind(value, kind)
    assert reason in str(caught.value)
    array, bad = convert_list([value], kind)
    assert (array.to_pylist(), list(bad)) == ([None], [0])


texts = st.one_of(
    st.integers().map(str), st.floats().map(str), st.booleans().map(str), st.datetimes().map(str),
    st.text(max_size=4),
    st.sampled_from(["0x1", " 1", "+1", "1.", ".5", "1e5", "2024-01-01T00:00:00Z", "2024-01-01", "12:00"]),
)  # fmt: skip


@st.examples(80)
@given(st.lists(st.one_of(st.none(), texts), max_size=80), st.sampled_from(sorted(KINDS)))
def test_a_column_of_texts_converts_like_its_values(values: list[str | None], kind: str) -> None:
    expected = convert_values(values, kind)
    for arrow in (pa.string(), pa.large_binary()):
        column = pa.array([v if v is None else v.encode() for v in values], pa.large_binary()).cast(arrow)
        assert_same(convert(column, kind), expected)


@st.examples(60)
@given(
    st.one_of(
        st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=60),
        st.lists(st.one_of(st.none(), st.floats()), max_size=60),
        st.lists(st.one_of(st.none(), st.booleans()), max_size=60),
        st.lists(st.one_of(st.none(), st.datetimes()), max_size=60),
    ),
    st.sampled_from(sorted(KINDS)),
)
def test_a_typed_column_converts_like_its_values(values: list[Any], kind: str) -> None:
    assert_same(convert(pa.array(values), kind), convert_values(values, kind))


MIXED = st.sampled_from([None, True, 1, -1, 2**60, 0.0, 0.5, "1", b"x", MOMENT, date(2024, 1, 2), Decimal("1.5")])


@st.examples(60)
@given(
    st.one_of(*(st.lists(values, max_size=40) for values in (st.integers(), st.floats(), MIXED))),
    st.sampled_from(sorted(KINDS)),
)
def test_a_list_converts_like_its_values(values: list[Any], kind: str) -> None:
    assert_same(convert_list(values, kind), convert_values(values, kind))


def test_a_value_is_not_converted_to_the_type_of_its_neighbours() -> None:
    """Arrow would read the number as microseconds, and the boolean as a number."""
    assert convert_list([MOMENT, 1], "timestamp")[0].to_pylist() == [MOMENT, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]
    assert convert_list([0.5, True], "string")[0].to_pylist() == ["0.5", "true"]


def assert_same(found: tuple[pa.Array, dict[int, str]], expected: tuple[pa.Array, dict[int, str]]) -> None:
    assert set(found[1]) == set(expected[1])
    assert found[0].equals(expected[0]), (found[0], expected[0])


def test_only_values_near_a_bad_value_are_converted_individually(monkeypatch: pytest.MonkeyPatch) -> None:
    import fishweir.intake.convert as module

    looked: list[Any] = []

    def noted(value: Any, kind: str) -> Any:
        looked.append(value)
        return to_kind(value, kind)

    monkeypatch.setattr(module, "to_kind", noted)
    values = [str(n) for n in range(50_000)]
    values[777] = "bad"
    array, bad = convert(pa.array(values), "int")
    assert bad == {777: "'bad' is not an int"}
    assert array.null_count == 1
    assert len(looked) <= 32
