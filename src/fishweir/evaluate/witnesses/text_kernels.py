"""Hashes of texts, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.jit import kernel


@kernel
def polynomials(
    starts: NDArray[np.int64], ends: NDArray[np.int64], data: NDArray[np.uint8], base: np.uint64
) -> NDArray[np.uint64]:
    """Of each text the sum of its bytes, each plus one, times the powers of a base."""
    found = np.zeros(len(starts), np.uint64)
    for text in range(len(starts)):
        power, sum = np.uint64(1), np.uint64(0)
        for at in range(starts[text], ends[text]):
            power *= base
            sum += (np.uint64(data[at]) + np.uint64(1)) * power
        found[text] = sum
    return found
