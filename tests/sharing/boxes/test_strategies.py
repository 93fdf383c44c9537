"""Every strategy, compiled and in NumPy, gives what a comparison of each tuple with each query gives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings

from fishweir.sharing.boxes import Boxes, GridIndex, IBSIndex, Index, PackedIndex, SJBatch, SJImmediate, choose
from fishweir.sharing.boxes import packed as packed_module
from fishweir.sharing.boxes.regions import tuple_keys
from fishweir.sharing.jit import HAVE_NUMBA
from tests.sharing.boxes.support import (
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

Build = Callable[[Boxes, bool], Index]

BUILD: dict[str, Build] = {
    "grid": lambda boxes, compiled: GridIndex(boxes, compiled=compiled),
    "coarse-grid": lambda boxes, compiled: GridIndex(boxes, budget=0, compiled=compiled),
    "packed": lambda boxes, compiled: PackedIndex(boxes, compiled=compiled),
    "sj-batch": lambda boxes, compiled: SJBatch(boxes, compiled=compiled),
    "sj-batch-of-3": lambda boxes, compiled: SJBatch(boxes, cluster_size=3, compiled=compiled),
    "sj-immediate": lambda boxes, compiled: SJImmediate(boxes, compiled=compiled),
    "ibs": lambda boxes, compiled: IBSIndex(boxes, compiled=compiled),
    "chosen": lambda boxes, compiled: choose(boxes).index,
}

WAYS = [pytest.param(False, id="numpy")]
if HAVE_NUMBA:
    WAYS.append(pytest.param(True, id="numba"))

Workload = tuple[int, list[Query], list[list[float]]]


@pytest.mark.parametrize("compiled", WAYS)
@pytest.mark.parametrize("name", BUILD)
@settings(max_examples=60, deadline=None)
@given(workload=workloads())
@example(workload=(1, [], [[1.0]]))
@example(workload=(1, [[Range()]], [[float("nan")], [INF]]))
@example(workload=(2, [[Range(), Range(INF, INF, True, False)]], [[0.0, INF]]))
@example(workload=(1, [[Range(0.0, 0.0, True, False)], [Range(-0.0, 0.0)]], [[-0.0], [0.0]]))
def test_equals_brute_force(name: str, compiled: bool, workload: Workload) -> None:
    attributes, queries, tuples = workload
    index = BUILD[name](boxes_of(queries, attributes), compiled)
    batch = np.array(tuples, dtype=float).reshape(len(tuples), attributes)
    assert as_lists(index.match(batch)) == brute_force(queries, tuples)


def compare_all(boxes: Boxes, batch: np.ndarray) -> list[list[int]]:
    keys = tuple_keys(batch, boxes.attributes)
    return [np.flatnonzero(((boxes.low <= row) & (row <= boxes.high)).all(axis=1)).tolist() for row in keys]


@pytest.mark.parametrize("compiled", WAYS)
@pytest.mark.parametrize(
    ("queries", "attributes", "width"), [(9000, 2, 0.02), (5000, 4, 0.5), (4097, 8, 2.0), (64, 1, 1)]
)
@pytest.mark.parametrize("name", BUILD)
def test_many_queries(name: str, compiled: bool, queries: int, attributes: int, width: float) -> None:
    random = np.random.default_rng(queries)
    boxes = random_boxes(random, queries, attributes, width)
    batch = random_tuples(random, 70, attributes)
    assert as_lists(BUILD[name](boxes, compiled).match(batch)) == compare_all(boxes, batch)


@pytest.mark.parametrize("compiled", WAYS)
def test_packed_refines_where_codes_are_too_few(monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
    monkeypatch.setattr(packed_module, "MOST_CODES", 50)
    random = np.random.default_rng(5)
    boxes = random_boxes(random, 3000, 3, 0.1)
    batch = random_tuples(random, 100, 3)
    index = PackedIndex(boxes, compiled=compiled)
    assert not index.exact
    assert as_lists(index.match(batch)) == compare_all(boxes, batch)


@pytest.mark.parametrize("compiled", WAYS)
def test_bitmaps_are_the_factorized_form_of_the_same(compiled: bool) -> None:
    random = np.random.default_rng(6)
    boxes = random_boxes(random, 1000, 3, 1.0)
    batch = np.repeat(random_tuples(random, 40, 3), 2, axis=0)
    index = GridIndex(boxes, compiled=compiled)
    bitmaps, listed = index.bitmaps(batch), index.match(batch)
    assert as_lists(bitmaps.csr()) == as_lists(listed)
    assert bitmaps.counts().tolist() == np.diff(listed.offsets).tolist()
    sets, which = bitmaps.distinct()
    assert len(sets) <= 40
    assert [sets.of(s).tolist() for s in which] == as_lists(listed)


def test_refinement_of_pairs() -> None:
    """Figure 10: 0.2 < x < 0.5 and 0.2 < y < 0.5 and x > y is a box, refined by the last condition."""
    boxes = Boxes.from_ranges([[0.2, 0.2]], [[0.5, 0.5]], lo_open=True, hi_open=True)
    batch = np.array([[0.4, 0.3], [0.3, 0.4], [0.5, 0.3]])
    for index in (SJBatch(boxes), SJImmediate(boxes)):
        matches = index.match(batch, refine=lambda rows, _: batch[rows, 0] > batch[rows, 1])
        assert as_lists(matches) == [[0], [], []]


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="queries x attributes"):
        Boxes.from_ranges([1.0], [2.0])
    with pytest.raises(ValueError, match="2 attributes"):
        GridIndex(Boxes.from_ranges([[1.0, 1.0]], [[2.0, 2.0]])).match([[1.0]])
