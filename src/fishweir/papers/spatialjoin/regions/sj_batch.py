"""SJ-Batch: joins a batch of tuples with the query set, cluster by cluster.

In: query regions; then batches of tuples. Out: the satisfied queries of each tuple as CSR. Shared: the queries in the
spatial join window of a data cluster are retrieved once for all its tuples, and the windows of consecutive clusters
overlap.

The tuples are put in Hilbert order and divided into data clusters of Ndc. The queries in the window of a cluster's
bounding box are retrieved and compared with each of its tuples. If a query is more than a region, the caller refines
the pairs (evaluate/select/region_match.py).

The paper does not fix Ndc. A cluster costs the comparisons to retrieve its window once, and one comparison per tuple
and query in the window. A tuple therefore costs (retrieval + window) / Ndc + window, or the retrieval alone if the
cluster is one tuple and its window holds nothing else. Both are counted, not timed, on a few clusters of the batch
itself for Ndc = 1, 2, 4, ... until the cost rises. The cheapest is kept until batches are twice or half as large. The
paper finds the cost flat around the optimum, so powers of two are precise enough.

Paper: Spatial Join CQ, sections 5.1 and 5.5, figure 11.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.matches import Matches, Numbers, Offsets
from fishweir.evaluate.select.boxes.regions import Boxes, Floats, Keys, tuple_keys
from fishweir.jit import kernel
from fishweir.papers.spatialjoin.regions.corner import SpatialJoinWindow
from fishweir.papers.spatialjoin.regions.hilbert import hilbert_order
from fishweir.papers.spatialjoin.regions.query_index import QueryIndex, in_window, retrieve_positions

CLUSTERS_TRIED = 12


class SJBatch:
    """Built once for a set of queries. It stores only the cluster size it found."""

    def __init__(self, boxes: Boxes, cluster_size: int | None = None) -> None:
        self.index = QueryIndex(boxes)
        self.given_size = cluster_size
        self._found_for, self._found_size = 0, 1

    def match(self, values: npt.ArrayLike, room: int | None = None) -> Matches:
        """Matches tuples. If `room` is given, the processed tuples are the first ones in Hilbert order."""
        keys = tuple_keys(values, self.index.attributes)[:, self.index.used]
        order = hilbert_order(keys)
        in_order = np.ascontiguousarray(keys[order])
        joined = join_clusters(self.index, in_order, self.cluster_size(in_order), room)
        done = Matches(joined.offsets, joined.numbers, order[: len(joined)])
        return done.in_order() if len(done) == len(keys) else done

    def detail(self, sample: Floats) -> str:
        """Ndc for such a batch. Actual batches may have another."""
        keys = tuple_keys(sample, self.index.attributes)[:, self.index.used]
        return f"data clusters of {cheapest_size(self.index, np.ascontiguousarray(keys[hilbert_order(keys)]))} (Ndc)"

    def cluster_size(self, in_order: Keys) -> int:
        """Ndc for a batch, given in Hilbert order."""
        if self.given_size is not None:
            return self.given_size
        if not self._found_for / 2 <= len(in_order) <= self._found_for * 2 or not self._found_for:
            self._found_for, self._found_size = len(in_order), cheapest_size(self.index, in_order)
        return self._found_size


def cheapest_size(index: QueryIndex, in_order: Keys) -> int:
    best, best_cost, size = 1, np.inf, 1
    while size <= max(1, len(in_order)):
        cost = cost_of_size(index, in_order, size)
        if cost > 1.5 * best_cost:
            break
        if cost < best_cost:
            best, best_cost = size, cost
        size *= 2
    return best


def cost_of_size(index: QueryIndex, in_order: Keys, size: int) -> float:
    """Comparisons per tuple, from clusters spread evenly over the batch."""
    starts = np.unique(np.linspace(0, max(0, len(in_order) - size), CLUSTERS_TRIED).astype(np.int64))
    costs = []
    for start in starts[: len(in_order)]:
        positions, tested = index.retrieve(SpatialJoinWindow.of_cluster(in_order[start : start + size]))
        costs.append(tested if size == 1 else (tested + len(positions)) / size + len(positions))
    return float(np.mean(costs)) if costs else 0.0


def join_clusters(index: QueryIndex, keys: Keys, size: int, room: int | None = None) -> Matches:
    """Spatial join of the clusters of `size` consecutive tuples with the query index."""

    def step(row: int, position: int, numbers: Numbers, offsets: Offsets) -> tuple[int, int]:
        return join_kernel(keys, size, *index.arrays(), index.numbers, row, position, numbers, offsets)

    return Matches.from_kernel(step, len(keys), len(index.numbers), room)


@kernel
def join_kernel(
    keys: Keys,
    size: int,
    run_low: Keys,
    run_high: Keys,
    page_low: Keys,
    page_high: Keys,
    low: Keys,
    high: Keys,
    queries: Numbers,
    row: int,
    position: int,
    numbers: Numbers,
    offsets: Offsets,
) -> tuple[int, int]:
    """Writes the query numbers of each tuple while there is room."""
    found = np.empty(len(low), dtype=np.int64)
    near_low, near_high = np.empty_like(low), np.empty_like(high)
    while row < len(keys):
        start = row // size * size
        end = min(start + size, len(keys))
        left, right = keys[start].copy(), keys[start].copy()
        for member in range(start + 1, end):
            for attribute in range(keys.shape[1]):
                left[attribute] = min(left[attribute], keys[member, attribute])
                right[attribute] = max(right[attribute], keys[member, attribute])
        count, _ = retrieve_positions(left, right, run_low, run_high, page_low, page_high, low, high, found)
        for near in range(count):
            near_low[near], near_high[near] = low[found[near]], high[found[near]]
        while row < end:
            if position + count > len(numbers):
                return row, position
            for near in range(count):
                if end - start == 1 or in_window(keys[row], keys[row], near_low[near], near_high[near]):
                    numbers[position] = queries[found[near]]
                    position += 1
            row += 1
            offsets[row] = position
    return row, position
