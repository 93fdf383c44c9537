"""Constant tables: each index answers as a loop over all queries would."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from fishweir.algebra.nodes import OPERATORS, Constant, Operator
from fishweir.algebra.values import satisfies
from fishweir.evaluate.index.constants import Equal, Interval, Sorted
from fishweir.evaluate.select.constant_tables import build_table
from fishweir.evaluate.witnesses.path_tables import hash_texts
from tests import strategies as st
from tests.evaluate.support import fired, table_of, values

numbers = st.sampled_from([-1.0, -0.0, 0.0, 0.1, 1.0, 2.0, 2.5, 1e300, 5e-324]) | st.floats(-3, 3)
number_texts = numbers.map(repr) | st.sampled_from(["", "x", "nan", "inf", "1e999", "-1e999", " 2 ", "02", "1_0"])
texts = st.sampled_from(["", "a", "b", "ab", "B", "é", "\U0001f600", "\uffff", "a\x00", "z"]) | st.text(max_size=3)
some = {"min_size": 1, "max_size": 40}


def by_hand(
    ops: Sequence[Operator], constants: Sequence[Sequence[Constant]], given: Sequence[str]
) -> list[tuple[int, int]]:
    return [
        (row, number)
        for row, value in enumerate(given)
        for number, own in enumerate(constants)
        if all(satisfies(value, op, constant) for op, constant in zip(ops, own, strict=True))
    ]


@given(st.sampled_from(OPERATORS), st.lists(st.tuples(numbers), **some), st.lists(number_texts, max_size=10))
def test_numbers(op: Operator, constants: list[tuple[float]], given: list[str]) -> None:
    assert fired(table_of([op], "number", constants), given) == by_hand([op], constants, given)


@given(st.sampled_from(OPERATORS), st.lists(st.tuples(texts), **some), st.lists(texts, max_size=10))
def test_strings(op: Operator, constants: list[tuple[str]], given: list[str]) -> None:
    assert fired(table_of([op], "string", constants), given) == by_hand([op], constants, given)


@given(
    st.sampled_from([">", ">="]),
    st.sampled_from(["<", "<="]),
    st.lists(st.tuples(numbers, numbers), **some),
    st.lists(number_texts, max_size=10),
)
def test_two_sided_ranges(
    lower: Operator, upper: Operator, bounds: list[tuple[float, float]], given: list[str]
) -> None:
    table = table_of([lower, upper], "number", bounds)
    assert isinstance(table.index, Interval)
    assert fired(table, [*given, *(repr(end) for pair in bounds for end in pair)]) == by_hand(
        [lower, upper], bounds, [*given, *(repr(end) for pair in bounds for end in pair)]
    )


@pytest.mark.parametrize(
    ("lower", "upper", "fires"),
    [(">", "<", "2"), (">=", "<", "12"), (">", "<=", "23"), (">=", "<=", "123")],
)
def test_the_bounds_of_a_range(lower: Operator, upper: Operator, fires: str) -> None:
    table = table_of([lower, upper], "number", [(1.0, 3.0)])
    assert "".join(v for v in "01234" if fired(table, [v])) == fires


@pytest.mark.parametrize("bounds", [(3.0, 1.0), (2.0, 2.0)])
@pytest.mark.parametrize(("lower", "upper"), [(">", "<"), (">=", "<"), (">", "<="), (">=", "<=")])
def test_empty_ranges(lower: Operator, upper: Operator, bounds: tuple[float, float]) -> None:
    """An impossible range fires nothing, alone or among others, and is still counted as a query."""
    alone, among = (
        table_of([lower, upper], "number", [bounds]),
        table_of([lower, upper], "number", [bounds, (0.0, 9.0)]),
    )
    point = bounds == (2.0, 2.0) and (lower, upper) == (">=", "<=")
    assert fired(alone, ["1", "2", "3"]) == ([(1, 0)] if point else [])
    assert [pair for pair in fired(among, ["1", "2", "3"]) if pair[1] == 1] == [(0, 1), (1, 1), (2, 1)]
    assert (alone.size, among.size) == (1, 2)


def test_answers_are_few_slices_however_many_queries() -> None:
    bounds = [(float(i % 100), float(i % 100 + 1 + i % 7)) for i in range(10_000)]
    index = table_of([">=", "<"], "number", bounds).index
    found = index.look_up(values(["50", "3.5"]))
    assert len(found.row) <= 2 * 10
    assert sum((found.hi - found.lo).tolist()) > 500
    for op in OPERATORS:
        assert len(table_of([op], "number", bounds_first(bounds)).index.look_up(values(["50"])).row) <= 2


def bounds_first(bounds: list[tuple[float, float]]) -> list[tuple[float]]:
    return [(low,) for low, _ in bounds]


def collide(texts: pa.Array) -> np.ndarray:
    """A hash function with the same hash for all texts."""
    return np.full(len(texts), 7, dtype=np.uint64)


@pytest.fixture
def colliding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fishweir.evaluate.index.constants.hash_texts", collide)
    monkeypatch.setattr("fishweir.evaluate.witnesses.path_tables.hash_texts", collide)


@pytest.mark.usefixtures("colliding")
def test_colliding_hashes_are_harmless() -> None:
    constants = [("b",), ("a",), ("c",), ("a",), ("",), ("b",)]
    given = ["a", "b", "c", "d", ""]
    table = table_of(["="], "string", constants)
    assert isinstance(table.index, Equal)
    assert table.index.hashes.tolist() == [7, 7, 7, 7]
    assert fired(table, given) == by_hand(["="], constants, given)


def test_equal_constants_are_one_entry() -> None:
    table = table_of(["="], "string", [("a",), ("b",), ("a",), ("a",)])
    assert isinstance(table.index, Equal)
    assert (len(table.index.constants), len(table.anchor_constants), table.size) == (2, 2, 4)
    found = table.index.look_up(values(["a"]))
    assert (found.hi - found.lo).tolist() == [3]


def test_equality_on_numbers_compares_numbers() -> None:
    table = table_of(["="], "number", [(2.0,), (2.0,), (3.0,)])
    assert isinstance(table.index, Sorted)
    assert fired(table, ["2", "2.0", " 2 ", "two", "3"]) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (4, 2)]
    assert len(table.anchor_constants) == 2


@pytest.mark.parametrize("op", OPERATORS)
def test_values_that_are_not_numbers_fire_nothing(op: Operator) -> None:
    assert fired(table_of([op], "number", [(0.0,), (1.0,)]), ["x", "", "nan"]) == []


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("kind", ["number", "string"])
def test_no_values_fire_nothing(op: Operator, kind: str) -> None:
    assert fired(table_of([op], kind, [(0.0,)] if kind == "number" else [("a",)]), []) == []


def test_no_condition_fires_everything() -> None:
    template = table_of([], "number", [(), (), ()]).template
    table = build_table(template, table_of([], "number", [()]).anchor, np.array([4, 5]), [])
    assert fired(table, ["x", "y"]) == [(0, 4), (0, 5), (1, 4), (1, 5)]


@given(st.lists(st.text(max_size=6), max_size=30))
def test_hashes_depend_on_the_text_only(given: list[str]) -> None:
    """Not on its position, its neighbours or the array's offset; distinct texts have distinct hashes."""
    hashes = hash_texts(pa.array(["padding", *given], pa.large_string())[1:])
    alone = [int(hash_texts(pa.array([text], pa.large_string()))[0]) for text in given]
    assert hashes.tolist() == alone
    assert len(set(alone)) == len(set(given))
