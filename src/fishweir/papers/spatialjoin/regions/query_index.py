"""The query index of Spatial Join CQ: regions as points, found by spatial join window.

In: query regions; then windows. Out: the queries whose points lie in the window. Shared: one comparison skips a page of
queries whose points are neighbours, and a directory entry covers a sequence of pages.

The paper takes a multilevel grid file and says that other structures also work. Here the corner points are sorted in
Hilbert order and divided into pages of 64. A page's entry in the directory has the least lower and the greatest upper
end of its queries on each attribute, which is all that a window [least, right] x [left, greatest] needs.
Paper: Spatial Join CQ, section 5.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.regions import Boxes, Keys
from fishweir.jit import kernel
from fishweir.papers.spatialjoin.regions.corner import SpatialJoinWindow, corner_points
from fishweir.papers.spatialjoin.regions.hilbert import hilbert_order

PAGE = 64


class QueryIndex:
    """Built once for a set of queries, never changed. `low`, `high` and `numbers` are in the order of the pages."""

    def __init__(self, boxes: Boxes) -> None:
        self.attributes = boxes.attributes
        self.used = boxes.used_attributes()
        members = np.flatnonzero(~boxes.empty())
        inside = boxes.take(members, self.used)
        order = hilbert_order(corner_points(inside))
        self.numbers = members[order].astype(np.int32)
        self.low, self.high = inside.low[order], inside.high[order]
        self.page_low, self.page_high = directory_of(self.low, self.high)
        self.run_low, self.run_high = directory_of(self.page_low, self.page_high)

    def retrieve(self, window: SpatialJoinWindow) -> tuple[npt.NDArray[np.int64], int]:
        """Positions of the queries in the window, and the number of region comparisons."""
        found = np.empty(len(self.numbers), dtype=np.int64)
        count, tested = retrieve_positions(window.left, window.right, *self.arrays(), found)
        return found[:count], tested

    def arrays(self) -> tuple[Keys, Keys, Keys, Keys, Keys, Keys]:
        return self.run_low, self.run_high, self.page_low, self.page_high, self.low, self.high


def directory_of(low: Keys, high: Keys) -> tuple[Keys, Keys]:
    """The least lower and greatest upper ends of each page."""
    firsts = np.arange(0, len(low), PAGE)
    if not len(low):
        return low, high
    return np.minimum.reduceat(low, firsts, axis=0), np.maximum.reduceat(high, firsts, axis=0)


@kernel
def in_window(left: Any, right: Any, low: Any, high: Any) -> bool:
    for attribute in range(len(left)):
        if low[attribute] > right[attribute] or high[attribute] < left[attribute]:
            return False
    return True


@kernel
def retrieve_positions(
    left: Any,
    right: Any,
    run_low: Keys,
    run_high: Keys,
    page_low: Keys,
    page_high: Keys,
    low: Keys,
    high: Keys,
    found: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Writes the positions of the queries in the window. Returns their number and the number of comparisons."""
    count = 0
    tested = len(run_low)
    for run in range(len(run_low)):
        if not in_window(left, right, run_low[run], run_high[run]):
            continue
        for page in range(run * PAGE, min(run * PAGE + PAGE, len(page_low))):
            tested += 1
            if not in_window(left, right, page_low[page], page_high[page]):
                continue
            for query in range(page * PAGE, min(page * PAGE + PAGE, len(low))):
                tested += 1
                if in_window(left, right, low[query], high[query]):
                    found[count] = query
                    count += 1
    return count, tested
