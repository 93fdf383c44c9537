"""The columns of published dicts, by compiled code and without it."""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishweir.algebra.nodes import StreamDefinition
from fishweir.intake import dict_columns
from fishweir.intake.dict_columns import MANY, CompiledReader, columns_of_dicts
from fishweir.intake.dict_kernels import AT_ONCE, read_numbers

STREAM = StreamDefinition("S", columns=(("i", "int"), ("x", "double"), ("j", "int"), ("s", "string")))
NUMBERS = StreamDefinition("S", columns=(("i", "int"), ("x", "double")))

ints = st.integers(-(2**63), 2**63 - 1)
good = st.fixed_dictionaries({"i": ints, "x": st.floats() | ints, "j": ints, "s": st.text(max_size=3)})
others = st.none() | st.booleans() | st.integers(2**63, 2**70) | st.floats() | st.text(max_size=3)
bad = st.dictionaries(st.sampled_from(["i", "x", "j", "s", "y"]), others | ints)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> Iterator[CompiledReader]:
    reader = CompiledReader()
    reader.load()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dict_columns, "_compiled", reader)
        yield reader


def plainly(stream: StreamDefinition, items: list[Any]) -> tuple[list[Any], dict[int, str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dict_columns, "_compiled", lambda count: None)
        return columns_of_dicts(stream, items)


@given(st.lists(good, max_size=9) | st.lists(good | bad, max_size=5))
def test_equal_to_conversion_without_compiled_code(items: list[dict[str, Any]]) -> None:
    for stream in (STREAM, NUMBERS):
        given = [{k: v for k, v in item.items() if stream is STREAM or k not in "js"} for item in items]
        assert columns_of_dicts(stream, given) == plainly(stream, given)


def test_numbers_are_read_by_compiled_code() -> None:
    items = [{"x": 0.5, "i": -(2**63)}, {"i": 2**63 - 1, "x": float("inf")}] * 5
    read = read_numbers(items, [("i", int), ("x", float)], 2)
    assert read is not None
    assert [one.tolist() for one in read] == [[item["i"] for item in items], [item["x"] for item in items]]
    assert read_numbers([], [("i", int)], 1) is not None
    whole = read_numbers([{"x": 2**53}, {"x": 0.5}, {"x": -3}], [("x", float)], 1)
    assert whole is not None
    assert whole[0].tolist() == [2.0**53, 0.5, -3.0]
    assert read_numbers([{"x": 2**53 + 1}], [("x", float)], 1) is None
    assert read_numbers([{"x": True}], [("x", float)], 1) is None
    assert read_numbers(tuple(items), [("x", float)], 2) is not None


class Alike:
    """A key that is found where `i` would be and cannot be compared."""

    def __hash__(self) -> int:
        return hash("i")

    def __eq__(self, other: object) -> bool:
        raise ValueError("not comparable")


class Number(int): ...


@pytest.mark.parametrize(
    "row",
    [
        {"i": 2**63},
        {"i": -(2**63) - 1},
        {"i": True},
        {"i": 1.0},
        {"i": None},
        {"i": Number(1)},
        {"i": 1, "y": 1},
        {"y": 1},
        {},
        {Alike(): 1},
        OrderedDict(i=1),
        [("i", 1)],
        None,
    ],
    ids=lambda row: type(row).__name__,
)
def test_other_rows_are_left_to_the_interpreter(row: Any) -> None:
    assert read_numbers([{"i": 1}, row, {"i": 2}], [("i", int)], 1) is None
    assert read_numbers([{"i": 1}, {"i": 2}], [("i", int)], 1) is not None, "no error is left behind"


def test_many_rows() -> None:
    items = [{"i": at} for at in range(2 * AT_ONCE + 3)]
    read = read_numbers(items, [("i", int)], 1)
    assert read is not None
    assert read[0].tolist() == [*range(len(items))]
    assert read_numbers([*items, {"i": 0.5}], [("i", int)], 1) is None


def test_references_are_not_kept() -> None:
    items = [{"i": 10**12 + at, "x": at / 3} for at in range(100)]
    value, before = items[7]["i"], sys.getrefcount(items[7])
    count = sys.getrefcount(value)
    for _ in range(50):
        read_numbers(items, [("i", int), ("x", float)], 2)
    assert (sys.getrefcount(items[7]), sys.getrefcount(value)) == (before, count)


def test_a_process_that_publishes_many_dicts_loads_the_code_in_the_background() -> None:
    reader = CompiledReader()
    assert reader(MANY - 1) is None
    assert not reader._loads
    reader(1)
    deadline = time.monotonic() + 30
    while reader(1) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert reader(1) is read_numbers
