"""Sorting hashes: the same order as NumPy's stable sort, however the hashes are spread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishweir.evaluate.join.hashes import FEW, Hashes, combine, hash_order

SPREADS = {
    "even": lambda rng, size: combine(7, np.arange(size).astype(np.uint64)),
    "with repetitions": lambda rng, size: combine(7, rng.integers(0, size // 10 + 1, size).astype(np.uint64)),
    "equal": lambda rng, size: np.full(size, combine(7, np.zeros(1, np.uint64))),
    "the same leading bits": lambda rng, size: rng.integers(0, 1 << 20, size).astype(np.uint64),
    "half with the same leading bits": lambda rng, size: np.where(
        np.arange(size) % 2, rng.integers(0, 1 << 20, size), rng.integers(0, 1 << 62, size) * 4
    ).astype(np.uint64),
    "sorted": lambda rng, size: np.sort(combine(7, np.arange(size).astype(np.uint64))),
    "in reverse": lambda rng, size: np.sort(combine(7, np.arange(size).astype(np.uint64)))[::-1].copy(),
}


@pytest.mark.parametrize("size", [0, 1, FEW, FEW + 1, 1_000, 30_000])
@pytest.mark.parametrize("spread", SPREADS)
def test_as_numpy(spread: str, size: int) -> None:
    hashes: Hashes = SPREADS[spread](np.random.default_rng(size), size)
    assert np.array_equal(hash_order(hashes), np.argsort(hashes, kind="stable"))


@given(st.lists(st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**63, 2**64 - 1]), max_size=3 * FEW))
def test_any_hashes(values: list[int]) -> None:
    hashes = np.array(values * 2, np.uint64)
    assert np.array_equal(hash_order(hashes), np.argsort(hashes, kind="stable"))
