"""Compares pairs of items in one compiled loop.

In: a comparison, and pairs of items of two runs. Out: the degree to which each pair satisfies it: for `similar` the
greatest Jaccard similarity of any two values, for all others 1 or 0. Values are sorted lists of features (features.py).
"""

from __future__ import annotations

import numpy as np

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.annotations.comparisons import EQUALITIES, FeatureComparison
from fishweir.evaluate.join.annotations.item_views import Floats, ItemView
from fishweir.evaluate.join.hashes import Hashes
from fishweir.jit import kernel

EQUAL, DIFFERENT, SIMILAR, CONTAINS, LESS, AT_MOST, GREATER, AT_LEAST = range(8)
MODES = {
    **dict.fromkeys(EQUALITIES, EQUAL), "!=": DIFFERENT, "similar": SIMILAR, "contains": CONTAINS,
    "<": LESS, "<=": AT_MOST, ">": GREATER, ">=": AT_LEAST,
}  # fmt: skip


def decide(what: FeatureComparison, left: ItemView, lefts: Ints, right: ItemView, rights: Ints) -> Floats:
    one, two = left.values(what.left.key), right.values(what.right.key)
    return _decide(
        MODES[what.op],
        *one.of(lefts),
        one.feature_starts,
        one.features,
        *two.of(rights),
        two.feature_starts,
        two.features,
    )


@kernel
def _decide(
    mode: int,
    left_lo: Ints,
    left_hi: Ints,
    left_starts: Ints,
    left: Hashes,
    right_lo: Ints,
    right_hi: Ints,
    right_starts: Ints,
    right: Hashes,
) -> Floats:
    found = np.full(len(left_lo), -np.inf)
    one, two = left.view(np.float64), right.view(np.float64)
    for pair in range(len(left_lo)):
        best = -np.inf
        for a in range(left_lo[pair], left_hi[pair]):
            for b in range(right_lo[pair], right_hi[pair]):
                i, end = left_starts[a], left_starts[a + 1]
                j, last = right_starts[b], right_starts[b + 1]
                degree = -np.inf
                if mode <= CONTAINS:
                    size, wanted = end - i, last - j
                    common = 0
                    while i < end and j < last:
                        if left[i] == right[j]:
                            common += 1
                            i += 1
                            j += 1
                        elif left[i] < right[j]:
                            i += 1
                        else:
                            j += 1
                    if mode == SIMILAR:
                        if size + wanted > 0:
                            degree = common / (size + wanted - common)
                    elif mode == EQUAL:
                        degree = 1.0 if common > 0 else 0.0
                    elif mode == DIFFERENT:
                        degree = 0.0 if common > 0 else 1.0
                    else:
                        degree = 1.0 if common == wanted > 0 else 0.0
                elif mode == LESS:
                    degree = 1.0 if one[i] < two[j] else 0.0
                elif mode == AT_MOST:
                    degree = 1.0 if one[i] <= two[j] else 0.0
                elif mode == GREATER:
                    degree = 1.0 if one[i] > two[j] else 0.0
                else:
                    degree = 1.0 if one[i] >= two[j] else 0.0
                best = max(best, degree)
        found[pair] = best
    return found
