"""The kernel that observes the times of a stream's items (lateness.py)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fishweir.evaluate.arrays import Ints
from fishweir.jit import kernel


@kernel
def observe_times(
    times: Any, arrivals: Any, front: float, watermark: float, tolerance: float, longest: float, growth: float
) -> tuple[float, float, float, int, int, Ints]:
    """For items in arrival order: the front after them, the last arrival, the greatest lateness, the number of items
    ahead of their arrival and that of items before the watermark, and the counts of lateness and of delay by bucket."""
    arrived, greatest, ahead, missed = -math.inf, 0.0, 0, 0
    last = bucket_of(longest, growth)
    counts = np.zeros((2, last + 1), np.int64)
    for i in range(len(times)):
        time, arrival = times[i], arrivals[i]
        arrived = max(arrived, arrival)
        missed += time < watermark
        if time > arrival + tolerance:
            ahead += 1
            continue
        front = max(front, time)
        late = min(front - time, longest)
        greatest = max(greatest, late)
        counts[0, bucket_of(late, growth)] += 1
        counts[1, bucket_of(min(arrival - time, longest), growth)] += 1
    return front, arrived, greatest, ahead, missed, counts


@kernel
def bucket_of(seconds: float, growth: float) -> int:
    return 0 if seconds < 1 else 1 + math.floor(math.log(seconds) / math.log(growth))
