"""Every kernel, including the paper's, agrees with comparing each tuple with each query."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given

from fishweir.evaluate.select.boxes import Boxes, GridIndex, Index, PackedIndex, choose
from fishweir.evaluate.select.boxes import packed as packed_module
from fishweir.evaluate.select.boxes.regions import tuple_keys
from fishweir.papers.spatialjoin.regions import IBSIndex, SJBatch, SJImmediate
from tests import strategies as st
from tests.evaluate.select.boxes.support import (
    INF,
    Query,
    Range,
    as_lists,
    boxes_of,
    brute_force,
    random_boxes,
    random_tuples,
    workloads,
)

Build = Callable[[Boxes], Index]

BUILD: dict[str, Build] = {
    "grid": GridIndex,
    "coarse-grid": lambda boxes: GridIndex(boxes, budget=0),
    "packed": PackedIndex,
    "sj-batch": SJBatch,
    "sj-batch-of-3": lambda boxes: SJBatch(boxes, cluster_size=3),
    "sj-immediate": SJImmediate,
    "ibs": IBSIndex,
    "chosen": lambda boxes: choose(boxes).index,
}

Workload = tuple[int, list[Query], list[list[float]]]


@pytest.mark.parametrize("name", BUILD)
@st.examples(40)
@given(workload=workloads())
@example(workload=(1, [], [[1.0]]))
@example(workload=(1, [[Range()]], [[float("nan")], [INF]]))
@example(workload=(2, [[Range(), Range(INF, INF, True, False)]], [[0.0, INF]]))
@example(workload=(1, [[Range(0.0, 0.0, True, False)], [Range(-0.0, 0.0)]], [[-0.0], [0.0]]))
def test_equals_brute_force(name: str, workload: Workload) -> None:
    attributes, queries, tuples = workload
    index = BUILD[name](boxes_of(queries, attributes))
    batch = np.array(tuples, dtype=float).reshape(len(tuples), attributes)
    assert as_lists(index.match(batch)) == brute_force(queries, tuples)


def compare_all(boxes: Boxes, batch: np.ndarray) -> list[list[int]]:
    keys = tuple_keys(batch, boxes.attributes)
    return [np.flatnonzero(((boxes.low <= row) & (row <= boxes.high)).all(axis=1)).tolist() for row in keys]


@pytest.mark.parametrize(
    ("queries", "attributes", "width"), [(9000, 2, 0.02), (5000, 4, 0.5), (4097, 8, 2.0), (64, 1, 1)]
)
@pytest.mark.parametrize("name", BUILD)
def test_many_queries(name: str, queries: int, attributes: int, width: float) -> None:
    random = np.random.default_rng(queries)
    boxes = random_boxes(random, queries, attributes, width)
    batch = random_tuples(random, 70, attributes)
    assert as_lists(BUILD[name](boxes).match(batch)) == compare_all(boxes, batch)


def test_packed_refines_if_there_are_too_few_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_module, "MOST_CODES", 50)
    random = np.random.default_rng(5)
    boxes = random_boxes(random, 3000, 3, 0.1)
    batch = random_tuples(random, 100, 3)
    index = PackedIndex(boxes)
    assert not index.exact
    assert as_lists(index.match(batch)) == compare_all(boxes, batch)


@pytest.mark.parametrize("room", [0, 500, 100_000])
@pytest.mark.parametrize("name", BUILD)
def test_results_in_parts(name: str, room: int) -> None:
    """Each part has as many tuples as fit; together they have all."""
    random = np.random.default_rng(6)
    boxes = random_boxes(random, 300, 3, 1.0)
    batch = random_tuples(random, 90, 3)
    index, expected = BUILD[name](boxes), compare_all(boxes, batch)
    left, parts = np.arange(len(batch)), 0
    while len(left):
        matches = index.match(batch[left], room)
        assert len(matches) > 0
        assert len(matches.numbers) <= room + len(expected) * 4
        found = as_lists(matches)
        for row, tuple_number in enumerate(left[matches.tuples]):
            assert found[row] == expected[tuple_number]
        left, parts = np.delete(left, matches.tuples), parts + 1
    assert (parts == 1) == (room == 100_000)


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="queries x attributes"):
        Boxes.from_ranges([1.0], [2.0])
    with pytest.raises(ValueError, match="2 attributes"):
        GridIndex(Boxes.from_ranges([[1.0, 1.0]], [[2.0, 2.0]])).match([[1.0]])
