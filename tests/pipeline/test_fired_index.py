"""The index of fired queries: a few intervals that contain all positions, however the slices are combined."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from fishweir.pipeline.fired_index import CELLS, MOST, intervals
from tests import strategies as st

SLICES = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 5)), min_size=1, max_size=60)


@given(SLICES, st.integers(0, 10_000))
def test_no_position_is_lost(slices: list[tuple[int, int]], away: int) -> None:
    lo = np.array([start for start, _ in slices]) + away
    hi = lo + np.array([length for _, length in slices])
    ends = intervals(lo, hi)
    assert ends == sorted(ends)
    assert len(ends) // 2 <= MOST
    found = {position for start, end in zip(ends[::2], ends[1::2], strict=True) for position in range(start, end)}
    wanted = {position for start, end in zip(lo, hi, strict=True) for position in range(start, end)}
    assert wanted <= found
    if len(ends) // 2 < MOST:
        assert wanted == found, "nothing is filled without need"


@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from([1, 3, 1_000, 10**9]))
def test_many_slices_are_reduced_first(seed: int, longest: int, space: int) -> None:
    random = np.random.default_rng(seed)
    lo = random.integers(0, space, CELLS + 100)
    hi = lo + random.integers(1, longest + 1, len(lo))
    ends = np.array(intervals(lo, hi))
    assert (np.diff(ends) > 0).all()
    assert len(ends) // 2 <= MOST
    within = np.searchsorted(ends, lo, "right")
    assert (within % 2 == 1).all()
    assert (hi <= ends[within]).all()
    assert (ends[0], ends[-1]) == (lo.min(), hi.max())


def test_wide_gaps_between_many_slices_are_kept() -> None:
    lo = np.concatenate([np.arange(0, CELLS), np.arange(10**6, 10**6 + CELLS)])
    assert intervals(lo, lo + 1) == [0, CELLS, 10**6, 10**6 + CELLS]
