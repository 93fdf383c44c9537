"""The Hilbert order compared with known small curves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fishweir.evaluate.select.boxes.regions import float_keys
from fishweir.papers.spatialjoin.regions.hilbert import hilbert_order, hilbert_positions


def curve(axes: int, bits: int) -> np.ndarray:
    points = np.array(list(itertools.product(range(2**bits), repeat=axes)))
    return points[np.argsort(hilbert_positions(points, bits))]


def test_first_curve() -> None:
    assert curve(axes=2, bits=1).tolist() == [[0, 0], [0, 1], [1, 1], [1, 0]]


def test_second_curve() -> None:
    """As in figure 9(b): four first-order curves, the first and the last of them rotated."""
    assert curve(axes=2, bits=2).tolist() == [
        [0, 0],
        [1, 0],
        [1, 1],
        [0, 1],
        [0, 2],
        [0, 3],
        [1, 3],
        [1, 2],
        [2, 2],
        [2, 3],
        [3, 3],
        [3, 2],
        [3, 1],
        [2, 1],
        [2, 0],
        [3, 0],
    ]


@pytest.mark.parametrize(("axes", "bits"), [(1, 5), (2, 5), (3, 3), (4, 2), (8, 1), (5, 2)])
def test_each_step_changes_one_axis_by_one(axes: int, bits: int) -> None:
    steps = np.abs(np.diff(curve(axes, bits), axis=0))
    assert (steps.sum(axis=1) == 1).all()


@pytest.mark.parametrize(("axes", "bits"), [(2, 5), (3, 3), (8, 1)])
def test_each_point_has_its_own_position(axes: int, bits: int) -> None:
    points = np.array(list(itertools.product(range(2**bits), repeat=axes)))
    assert sorted(hilbert_positions(points, bits).tolist()) == list(range(2 ** (axes * bits)))


def test_too_many_bits_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        hilbert_positions(np.zeros((1, 9), dtype=int), bits=8)


@pytest.mark.parametrize("axes", [1, 2, 8, 64, 100])
def test_order_is_a_permutation_of_any_keys(axes: int) -> None:
    keys = float_keys(np.random.default_rng(0).standard_cauchy((50, axes)))
    keys[3] = keys[7]
    assert sorted(hilbert_order(keys).tolist()) == list(range(50))
    assert hilbert_order(keys[:0]).tolist() == []
    assert hilbert_order(keys[[3, 7, 3]]).tolist() == [0, 1, 2]
