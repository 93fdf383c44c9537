"""Values: what is a number, a text, a moment; and what satisfies a comparison."""

from __future__ import annotations

import operator
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from fishweir.algebra.nodes import MIRRORED, OPERATORS
from fishweir.algebra.values import COMPARE, NUMBER, satisfies, to_number, to_text, to_timestamp
from fishweir.evaluate.witnesses.path_tables import texts_to_numbers
from tests import strategies as st

finite = st.floats(allow_nan=False, allow_infinity=False)
PYTHON = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5", 5.0),
        (" 5 ", 5.0),
        ("\t5\n", 5.0),
        ("+5", 5.0),
        ("-5.", -5.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1E-3", 0.001),
        ("007", 7.0),
        ("-0", 0.0),
    ],
)
def test_numbers(text: str, number: float) -> None:
    assert to_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "nan",
        "inf",
        "-inf",
        "Infinity",
        "1_000",
        "1,000",
        "0x10",
        "five",
        "5 6",
        "+-5",
        "--5",
        ".",
        "e5",
        "1e",
        "5\u00a0",
        "٣",
        "１",
        "5\x00",
    ],
)
def test_texts_that_are_not_numbers(text: str) -> None:
    assert to_number(text) is None


@given(finite)
def test_a_float_survives_its_text(number: float) -> None:
    assert to_number(to_text(number)) == number
    assert to_number(repr(number)) == number


@given(
    st.lists(st.from_regex(NUMBER, fullmatch=True) | st.text(" \t+-.0123456789eEx\v\u00a0٣", max_size=6), max_size=20)
)
def test_arrow_reads_the_same_numbers(texts: list[str]) -> None:
    """The kernels read numbers with Arrow: a difference would make plan and oracle disagree."""
    read = texts_to_numbers(pa.array(texts, pa.large_string())).tolist()
    expected = [to_number(text) for text in texts]
    assert [None if np.isnan(number) else number for number in read] == expected


@given(finite, st.sampled_from(OPERATORS), finite)
def test_numeric_comparison(value: float, op, constant: float) -> None:
    assert satisfies(repr(value), op, constant) == PYTHON[op](value, constant)


@given(st.text(), st.sampled_from(OPERATORS), st.text())
def test_text_comparison_is_exact(value: str, op, constant: str) -> None:
    assert satisfies(value, op, constant) == PYTHON[op](value, constant)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("value", ["", "x", "nan", "5 apples"])
def test_other_values_satisfy_no_numeric_comparison(value: str, op) -> None:
    assert not satisfies(value, op, 5.0)


def test_quoted_and_bare_constants_differ() -> None:
    assert satisfies("5.0", "=", 5.0)
    assert not satisfies("5.0", "=", "5")
    assert satisfies("10", "<", "9")
    assert not satisfies("10", "<", 9.0)


@given(finite, st.sampled_from(OPERATORS), finite)
def test_mirrored(left: float, op, right: float) -> None:
    assert COMPARE[op](left, right) == COMPARE[MIRRORED[op]](right, left)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (5, "5"),
        (5.0, "5"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e22, "1" + 22 * "0"),
        (2.0**53, "9007199254740992"),
        (np.float64(1.5), "1.5"),
        (np.float64(2), "2"),
        (float("nan"), "nan"),
        ("é", "é"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3), "2026-01-02T03:00:00+00:00"),
        (datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))), "2026-01-02T03:00:00+02:00"),
    ],
)
def test_texts(value: object, text: str) -> None:
    assert to_text(value) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_an_int_and_a_double_of_one_value_have_one_text(number: int) -> None:
    assert to_text(float(number)) == to_text(int(float(number)))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1767225600", 1767225600.0),
        ("1767225600.5", 1767225600.5),
        ("2026-01-01", 1767225600.0),
        ("2026-01-01T00:00:00Z", 1767225600.0),
        (" 2026-01-01T02:00:00+02:00 ", 1767225600.0),
        ("2026-01-01 00:00", 1767225600.0),
        ("Thu, 01 Jan 2026 00:00:00 GMT", 1767225600.0),
        ("Thu, 1 Jan 26 00:00:00 -0000", 1767225600.0),
        ("Wed, 31 Dec 2025 19:00:00 EST", 1767225600.0),
    ],
)
def test_timestamps(text: str, seconds: float) -> None:
    assert to_timestamp(text) == seconds


@pytest.mark.parametrize("text", ["", " ", "soon", "nan", "1e999", "2026-13-01", "Thu, 40 Jan 2026 00:00:00 GMT"])
def test_texts_that_are_not_timestamps(text: str) -> None:
    assert to_timestamp(text) is None


@given(st.text(st.sampled_from("0123456789-:+TZ., JanMonGMT"), max_size=30) | st.text(max_size=20))
def test_any_text_is_a_finite_timestamp_or_none(text: str) -> None:
    seconds = to_timestamp(text)
    assert seconds is None or np.isfinite(seconds)


@given(st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(UTC)))
def test_iso_8601_survives(moment: datetime) -> None:
    assert to_timestamp(moment.isoformat()) == moment.timestamp()
