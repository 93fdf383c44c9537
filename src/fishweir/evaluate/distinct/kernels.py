"""Finds the documents that are the first of their key, in one pass in arrival order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.jit import kernel


@kernel
def first_of_each(
    starts: NDArray[np.int64],
    times: NDArray[np.float64],
    seconds: NDArray[np.float64],
    is_new: NDArray[np.bool_],
    passes: NDArray[np.bool_],
) -> Any:
    """Sets `passes` for the new documents that pass. Documents between two starts have the same query and key: first
    those that passed before, then new ones in arrival order. `held` has the sorted times of those that passed. Only the
    nearest ones before and after a document decide."""
    longest = 0
    for group in range(len(starts) - 1):
        longest = max(longest, starts[group + 1] - starts[group])
    held = np.empty(longest)
    for group in range(len(starts) - 1):
        size = 0
        for i in range(starts[group], starts[group + 1]):
            at, hi = 0, size
            while at < hi:
                middle = (at + hi) // 2
                if held[middle] < times[i]:
                    at = middle + 1
                else:
                    hi = middle
            if is_new[i]:
                if at < size and held[at] - times[i] <= seconds[i]:
                    continue
                if at > 0 and times[i] - held[at - 1] <= seconds[i]:
                    continue
                passes[i] = True
            for j in range(size, at, -1):
                held[j] = held[j - 1]
            held[at] = times[i]
            size += 1
