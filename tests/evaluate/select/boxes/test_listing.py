"""The three ways of listing set bits give the same numbers, whatever is set."""

from __future__ import annotations

import numpy as np
import pytest

from fishweir.evaluate.select.boxes import grid_kernels
from fishweir.evaluate.select.boxes.grid import packed

WAYS = (grid_kernels.list_sparse, grid_kernels.list_middling, grid_kernels.list_dense)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.3, 0.6, 1.0])
def test_set_bits_are_listed_in_order(share: float) -> None:
    flags = np.random.default_rng(5).random(64 * 300) < share
    flags[64 * 7 : 64 * 8] = True  # a crowded word among others
    words, coming = packed(flags), np.zeros(grid_kernels.WORDS_A_LINE, np.uint64)
    for way in WAYS:
        numbers = np.full(len(flags) + grid_kernels.UNROLLED + 3, -1, np.int32)
        after = way(words, 3, numbers, words[None], coming)
        assert numbers[3:after].tolist() == np.flatnonzero(flags).tolist()
        assert (numbers[:3] == -1).all()
