"""The worked examples of Spatial Join CQ."""

from __future__ import annotations

import numpy as np
import pytest

from fishweir.evaluate.select.boxes import KERNELS, Boxes
from fishweir.evaluate.select.boxes.regions import float_keys, key_floats
from fishweir.papers.spatialjoin.regions.corner import SpatialJoinWindow, corner_points
from fishweir.papers.spatialjoin.regions.ibs import IBSTree
from fishweir.papers.spatialjoin.regions.query_index import QueryIndex
from fishweir.papers.spatialjoin.regions.sj_batch import cheapest_size, cost_of_size
from tests.evaluate.select.boxes.support import as_lists


@pytest.mark.parametrize("strategy", [*KERNELS])
def test_examples_1_and_2(strategy: str) -> None:
    """d2 satisfies q2, d3 satisfies q1, d1 none (figure 4)."""
    queries = Boxes.from_ranges([[1, 4], [0, 0]], [[6, 6], [3, 3]])
    data = [[4, 3], [1, 2], [2, 5]]
    assert as_lists(KERNELS[strategy](queries).match(data)) == [[], [1], [0]]


def test_predicate_index_of_figure_3() -> None:
    """R.y = 14 satisfies 11 < R.y < 15 and not 4 < R.y <= 11."""
    q1_q2 = Boxes.from_ranges([[11], [4]], [[15], [11]], lo_open=[[True], [True]], hi_open=[[True], [False]])
    tree = IBSTree.of(q1_q2.low[:, 0], q1_q2.high[:, 0], np.array([1, 2], dtype=np.int32))

    def holding(value: float) -> list[int]:
        return sorted(np.concatenate(tree.holding(int(float_keys(value)))).tolist())

    assert holding(14) == [1]
    assert holding(11) == [2]
    assert holding(4) == holding(15) == holding(3) == holding(99) == []


def test_corner_transformation_of_example_3() -> None:
    box = Boxes.from_ranges([[0.2, 0.2]], [[0.5, 0.5]])
    assert key_floats(corner_points(box)).tolist() == [[0.2, 0.2, 0.5, 0.5]]


def test_the_window_contains_overlapping_regions_as_in_figure_6() -> None:
    """The regions A to D overlap r in some way, E and F are disjoint from it."""
    window = SpatialJoinWindow(float_keys([0.4]), float_keys([0.6]))
    encloses, left, right, contained = (0.3, 0.7), (0.3, 0.5), (0.5, 0.7), (0.45, 0.55)
    before, after = (0.1, 0.3), (0.7, 0.9)
    regions = float_keys([encloses, left, right, contained, before, after])
    assert window.holds(regions[:, :1], regions[:, 1:]).tolist() == [True] * 4 + [False] * 2


def test_clusters_of_example_4() -> None:
    """Six tuples of one attribute in two clusters: the first overlaps q1, q2, q3, the second q3, q4, q5."""
    lo, hi = [[0.05], [0.1], [0.25], [0.6], [0.8]], [[0.15], [0.3], [0.65], [0.75], [0.95]]
    index = QueryIndex(Boxes.from_ranges(lo, hi))
    clusters = [[[0.1], [0.2], [0.3]], [[0.6], [0.7], [0.9]]]
    found = []
    for cluster in clusters:
        positions, _ = index.retrieve(SpatialJoinWindow.of_cluster(float_keys(cluster)))
        found.append(sorted((index.numbers[positions] + 1).tolist()))
    assert found == [[1, 2, 3], [3, 4, 5]]


def test_cluster_size_is_the_cheapest_tried() -> None:
    random = np.random.default_rng(0)
    lo = random.random((5000, 2))
    index = QueryIndex(Boxes.from_ranges(lo, lo + 0.1))
    in_order = np.sort(float_keys(random.random((512, 2))), axis=0)
    size = cheapest_size(index, in_order)
    assert 1 < size < 512
    costs = [cost_of_size(index, in_order, 2**k) for k in range(10)]
    assert cost_of_size(index, in_order, size) == min(costs)
