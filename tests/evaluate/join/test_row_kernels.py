"""The kernels that look up keys and take lists, compared with NumPy and Python."""

from itertools import chain, pairwise

import numpy as np
import pytest

from fishweir.evaluate.arrays import number_rows
from fishweir.evaluate.join.rows.row_kernels import equal_keys, take_lists


@pytest.mark.parametrize("seed", range(20))
def test_equal_keys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = np.sort(rng.integers(0, 50, rng.integers(0, 80))).astype(np.uint64)
    classes = np.where(keys % np.uint64(5) == 0, 8, 7).astype(np.uint64)
    wanted = np.sort(rng.integers(0, 60, 30)).astype(np.uint64)
    if seed % 2:
        wanted = wanted[wanted % np.uint64(5) != 0]
    expected = {i: np.flatnonzero(keys == key).tolist() for i, key in enumerate(wanted.tolist()) if key in keys}
    alike = all(classes[row] == 7 for rows in expected.values() for row in rows)
    for most in (0, 5, 1_000):
        there, starts, ends, touched = equal_keys(keys, classes, np.uint64(7), wanted, most)
        assert there.tolist() == list(expected)
        if alike and sum(map(len, expected.values())) <= most:
            found = [touched[start:end].tolist() for start, end in zip(starts, ends, strict=True)]
            assert found == list(expected.values())
        else:
            assert not len(touched)


@pytest.mark.parametrize("seed", range(10))
def test_take_lists(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists = [rng.integers(0, 100, rng.integers(0, 4)).tolist() for _ in range(20)]
    starts = np.cumsum([0, *map(len, lists)])
    rows = rng.integers(0, 20, 15)
    offsets, taken = take_lists(starts, np.array(list(chain(*lists)), np.int64), rows)
    assert [taken[a:b].tolist() for a, b in pairwise(offsets)] == [lists[row] for row in rows]


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_numbered_in_sort_order(seed: int) -> None:
    columns = np.random.default_rng(seed).integers(-3, 3, (3, 40))
    rows = list(zip(*columns.tolist(), strict=True))
    numbers = {row: number for number, row in enumerate(sorted(set(rows)))}
    assert number_rows(*columns).tolist() == [numbers[row] for row in rows]
