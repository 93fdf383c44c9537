"""SJ-Join: a spatial join of joinable pairs, as points, with queries, as regions of one joint space.

In: batches of tuples of two sides. Out: (query, r, s). Shared: one query index has selections, comparisons and windows
of all queries. The regions near a new tuple are retrieved from it once, and the regions near a data cluster once for
all its pairs.

A new tuple and the retained tuples of the other side, read in proximity (Hilbert) order, are the joinable pairs. Ndc
consecutive pairs form a data cluster. The regions in the spatial join window of the tuple with the whole other side are
retrieved from the index. Among these, the regions in the window of each cluster are found and compared with each pair
of it. The remaining pairs are refined by the comparisons, of which a region has only the bounding boxes. Ndc is chosen
as in SJ-Batch: comparisons are counted, on some of the new tuples, for 8, 16, 32, ...; the least is kept until the
window is twice or half as large.
Paper: Spatial Join CQ, section 6, definition 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.regions import Floats, float_keys
from fishweir.papers.spatialjoin.regions.hilbert import WORD, hilbert_positions
from fishweir.papers.spatialjoin.regions.query_index import QueryIndex
from fishweir.papers.spatialjoin.windows.decompose import PIECES, decomposed
from fishweir.papers.spatialjoin.windows.join import SlidingJoin
from fishweir.papers.spatialjoin.windows.queries import JoinQueries
from fishweir.papers.spatialjoin.windows.side import Ints, Side, merged
from fishweir.papers.spatialjoin.windows.sj_kernels import join_clusters
from fishweir.papers.spatialjoin.windows.triples import Triples

SIZES = tuple(8 << i for i in range(8))
TRIED = 2
FIT_AGAIN = 16
FITTED_WELL = 2048
SAMPLE = 255


class Proximity:
    """The data index: the retained tuples of one side in Hilbert order. Its scale is fitted to the first tuples."""

    def __init__(self, attributes: npt.NDArray[np.intp]) -> None:
        self.used = attributes[:WORD]
        self.bits = min(8, WORD // max(1, len(self.used)))
        self.scale: list[Floats] = []
        self.fitted = 0
        self.positions: Any = np.empty(0, np.uint64)
        self.slots: Ints = np.empty(0, np.int64)

    def insert(self, side: Side, slots: Ints) -> None:
        if self.fitted < FITTED_WELL and len(side) >= FIT_AGAIN * self.fitted:
            self.scale = [quantiles(side.columns[side.slots, a], SAMPLE) for a in self.used]
            self.fitted, slots = len(side), side.slots
            self.positions, self.slots = self.positions[:0], self.slots[:0]
        if len(self.used):
            ranks = [np.searchsorted(s, side.columns[slots, a]) for s, a in zip(self.scale, self.used, strict=True)]
            positions = hilbert_positions(np.stack(ranks, axis=1) >> (8 - self.bits), self.bits)
        else:
            positions = np.zeros(len(slots), np.uint64)
        self.positions, self.slots = merged(self.positions, self.slots, positions, slots)

    def remove(self, side: Side) -> None:
        kept = side.position[self.slots] >= 0
        self.positions, self.slots = self.positions[kept], self.slots[kept]


def quantiles(values: Floats, count: int) -> Floats:
    """`count` values, evenly spread over the sorted values that are not NULL."""
    known = np.sort(values[~np.isnan(values)])
    return known[np.linspace(0, len(known) - 1, count).astype(np.int64)] if len(known) else np.zeros(count)


class SJJoin(SlidingJoin):
    """`pieces` of a comparison's diagonal, and `cluster_size` (Ndc), which is chosen automatically if not given."""

    def __init__(
        self,
        queries: JoinQueries,
        lateness: float = 0.0,
        pieces: int = PIECES,
        cluster_size: int | None = None,
    ) -> None:
        super().__init__(queries, lateness)
        self.pieces, self.given_size = pieces, cluster_size
        self.near = tuple(Proximity(boxes.used_attributes()) for boxes in queries.selections)
        self._fitted = 0
        self.found_sizes: dict[int, tuple[int, int]] = {}
        c = queries.comparisons
        self._comparisons = queries.starts, c.left, c.right, c.low, c.high

    def _remember(self, side: int, slots: Ints) -> None:
        self.near[side].insert(self.sides[side], slots)

    def _forget(self, side: int, slots: Ints) -> None:
        if len(slots):
            self.near[side].remove(self.sides[side])

    def _probe(self, side: int, new: Ints, limit: int, counts: Ints) -> list[Triples]:
        self._fit()
        if not len(self.index.numbers):
            return []
        size = self.cluster_size(side, new, limit)
        found = self._join(side, new, limit, size, counts)
        return [Triples(*(found[:2] if side == 0 else found[1::-1]), *found[2:4])]

    def cluster_size(self, side: int, new: Ints, limit: int) -> int:
        if self.given_size is not None:
            return self.given_size
        window = len(self.sides[1 - side])
        found_for, size = self.found_sizes.get(side, (0, 0))
        if not found_for / 2 <= window <= found_for * 2:
            some = new[np.linspace(0, len(new) - 1, min(TRIED, len(new))).astype(np.int64)]
            costs = {}
            for tried in SIZES:
                costs[tried] = self._join(side, some, limit, tried, np.zeros(self.queries.count, np.int64))[4]
                if tried > window or costs[tried] > 1.5 * min(costs.values()):
                    break
            size = min(costs, key=lambda tried: costs[tried])
            self.found_sizes[side] = window, size
        return size

    def _join(self, side: int, new: Ints, limit: int, size: int, counts: Ints) -> tuple[Any, ...]:
        own, other = self.sides[side], self.sides[1 - side]
        reach = self.queries.reach
        return join_clusters(
            side,
            new,
            limit,
            size,
            own.arrays(),
            other.arrays(),
            float_keys(own.columns),
            float_keys(other.columns),
            self.near[1 - side].slots,
            reach.seconds,
            reach.rows,
            self.index.arrays(),
            np.asarray(self.index.used, np.int64),
            self.of_region,
            self._comparisons,
            counts,
        )

    def _fit(self) -> None:
        """Builds the query index, with cuts by the tuples seen so far. Rebuilds it when there are many more."""
        size = self.state_size()
        if self._fitted and (self._fitted >= FITTED_WELL or size < FIT_AGAIN * self._fitted):
            return
        columns = self.sides[0].columns[self.sides[0].slots]
        cuts = [quantiles(columns[:, a], self.pieces + 1)[1:-1] for a in range(self.attributes[0])]
        regions = decomposed(self.queries, np.array(cuts).reshape(self.attributes[0], self.pieces - 1))
        self.index = QueryIndex(regions.boxes)
        self.of_region = regions.query[self.index.numbers]
        self._fitted = size
