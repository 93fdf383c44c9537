"""The index of fired queries: a few intervals that contain all positions, however the slices are combined."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from fishweir.pipeline.fired_index import MARKS, MOST, intervals
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


def test_many_slices_of_few_positions_are_marked() -> None:
    lo = np.tile(np.arange(0, 20, 2), 10)
    assert int(lo.max() + 1) < MARKS * len(lo)
    assert intervals(lo, lo + 1) == [end for start in range(0, 20, 2) for end in (start, start + 1)]
