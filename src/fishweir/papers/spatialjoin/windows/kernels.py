"""Shared inner loops of the strategies: windows, comparisons, writing results.

In: arrays of the two sides (see `Side.arrays`). Out: positions in the order of time; results written consecutively.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fishweir.evaluate.select.boxes.matches import Numbers
from fishweir.evaluate.select.boxes.regions import Floats
from fishweir.jit import kernel
from fishweir.papers.spatialjoin.windows.side import Ints


@kernel
def within_reach(
    time: float,
    place: int,
    own_times: Floats,
    other_times: Floats,
    side: int,
    seconds: Floats,
    rows: Ints,
) -> tuple[int, int, int]:
    """The range of positions of the other side that the longest windows reach, and the first position after `time`."""
    first: Any = np.searchsorted(other_times, time)
    after: Any = np.searchsorted(other_times, time, side="right")
    start: Any = first
    end: Any = after
    low: Any
    high: Any
    if seconds[1 - side] >= 0:
        low, high = 0, first
        while low < high:
            middle = (low + high) >> 1
            if time - other_times[middle] <= seconds[1 - side]:
                high = middle
            else:
                low = middle + 1
        start = low
    if rows[1 - side] > 0:
        start = min(start, max(0, after - rows[1 - side]))
    if seconds[side] >= 0:
        low, high = after, len(other_times)
        while low < high:
            middle = (low + high) >> 1
            if other_times[middle] - time <= seconds[side]:
                low = middle + 1
            else:
                high = middle
        end = low
    if rows[side] > 0:
        last = place + rows[side]
        by_rows = len(other_times) if last >= len(own_times) else np.searchsorted(other_times, own_times[last])
        end = max(end, by_rows)
    return start, end, after


@kernel
def came_between(time: float, place: int, own_times: Floats, other_time: float, other: int, after: int) -> int:
    """The number of tuples of the older one's side that came after it and not after the newer one."""
    if other_time < time:
        return after - 1 - other
    if other_time > time:
        return np.searchsorted(own_times, other_time, side="right") - 1 - place  # type: ignore[return-value]
    return 0


@kernel
def within_windows(apart: float, between: int, side: int, seconds: Floats, rows: Ints, of: int) -> bool:
    """Whether a pair is within the window of the query `of`. `apart` is the time of the tuple of `side` minus that of
    the other."""
    if apart > 0:
        return apart <= seconds[of, 1 - side] and between < rows[of, 1 - side]
    if apart < 0:
        return -apart <= seconds[of, side] and between < rows[of, side]
    return True


@kernel
def difference(left: float, right: float) -> float:
    return 0.0 if left == right else left - right


@kernel
def in_bands(
    own: Floats,
    one: int,
    columns: Floats,
    other: int,
    side: int,
    lefts: Ints,
    rights: Ints,
    low: Floats,
    high: Floats,
    of: int,
) -> bool:
    """Whether all comparisons of a pair hold. `one` belongs to `side`; low[of] and high[of] are the bounds.

    Here and below, kernels take whole arrays and positions: slicing a row off an array adds reference counting, which
    costs more than the comparison."""
    for at in range(len(lefts)):
        if side == 0:
            apart = difference(own[one, lefts[at]], columns[other, rights[at]])
        else:
            apart = difference(columns[other, lefts[at]], own[one, rights[at]])
        if not (low[of, at] <= apart <= high[of, at]):
            return False
    return True


@kernel
def value_range(value: float, side: int, low: float, high: float) -> tuple[float, float]:
    """The range of values of the other side that a comparison may accept, slightly widened because the difference is
    rounded."""
    if np.isinf(value):
        return -np.inf, np.inf
    least, most = (value - high, value - low) if side == 0 else (value + low, value + high)
    if np.isfinite(least):
        least -= 1e-15 * (abs(value) + abs(least))
    if np.isfinite(most):
        most += 1e-15 * (abs(value) + abs(most))
    return least, most


@kernel
def widened(array: Any, used: int, more: int) -> Any:
    """A longer array with the same beginning."""
    wider = np.empty(max(2 * len(array), used + more), dtype=array.dtype)
    wider[:used] = array[:used]
    return wider


@kernel
def count_up(counts: Ints, numbers: Numbers, start: int, end: int) -> None:
    for at in range(start, end):
        counts[numbers[at]] += 1
