"""The choice of the strategy, and parts of the two kernels that it compares."""

from __future__ import annotations

import numpy as np

from fishweir.evaluate.select.boxes import Boxes, GridIndex, choose
from fishweir.evaluate.select.boxes.grid import cell_bounds, cells_within, words_of
from fishweir.evaluate.select.boxes.packed_order import FAN_OUT, cut_of, greedy_split_order


def regions(width: float, queries: int = 20_000, attributes: int = 3) -> Boxes:
    lo = np.random.default_rng(0).random((queries, attributes))
    return Boxes.from_ranges(lo, lo + width)


def test_few_matches_select_the_tree_and_many_the_grid() -> None:
    sample = np.random.default_rng(1).random((200, 3))
    assert choose(regions(0.02), sample).strategy == "packed"
    wide = choose(regions(0.7), sample)
    assert wide.strategy == "grid"
    assert wide.matches > 500
    assert "matches per tuple" in str(wide)


def test_without_a_sample_the_constants_are_used() -> None:
    assert choose(regions(0.02)).strategy == "packed"
    assert choose(regions(0.7)).strategy == "grid"


def test_no_queries_and_no_conditions() -> None:
    nothing = Boxes.from_ranges(np.empty((0, 2)), np.empty((0, 2)))
    assert len(choose(nothing).index.match([[1.0, 2.0]]).numbers) == 0
    all_tuples = Boxes.from_ranges([[-np.inf]] * 3, [[np.inf]] * 3)
    assert choose(all_tuples).index.match([[np.nan]]).ascending().numbers.tolist() == [0, 1, 2]


def test_memory_stays_within_the_budget() -> None:
    boxes = regions(0.3)
    budget = 1 << 20
    assert GridIndex(boxes, budget).memory() <= budget
    assert cells_within(budget, boxes.count, 3) * 3 * words_of(boxes.count) * 8 <= budget


def test_cells_are_exact_if_there_are_few_ranks() -> None:
    lo = np.random.default_rng(0).integers(0, 20, (1000, 2)).astype(float)
    index = GridIndex(Boxes.from_ranges(lo, lo + 5))
    for axis in index.axes:
        assert axis.cells == len(axis.cuts) + 1


def test_cells_are_quantiles_of_the_ends() -> None:
    ends_below = np.arange(0, 1001)
    bounds = cell_bounds(ends_below, 1000, 10)
    assert np.ptp(np.diff(bounds)) <= 2
    assert (bounds[0], bounds[-1], len(bounds)) == (0, 1000, 11)


def test_order_of_the_tree_is_a_permutation_with_small_blocks() -> None:
    random = np.random.default_rng(0)
    low = random.integers(0, 60_000, (5000, 2)).astype(np.uint16)
    order = greedy_split_order(low, low + np.uint16(100))
    assert sorted(order.tolist()) == list(range(5000))
    blocks = low[order][: 5000 // FAN_OUT * FAN_OUT].reshape(-1, FAN_OUT, 2).astype(int)
    assert np.ptp(blocks, axis=1).mean() < 15_000


def test_cuts_keep_full_blocks_together() -> None:
    assert cut_of(65) == 64
    assert cut_of(1000) == 512
    assert cut_of(10_000) % (FAN_OUT * FAN_OUT) == 0
