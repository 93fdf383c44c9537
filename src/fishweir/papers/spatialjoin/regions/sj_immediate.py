"""SJ-Immediate: joins each tuple with the query set as it arrives.

In: query regions; then tuples. Out: the satisfied queries of each tuple as CSR. Tuples share nothing: the tuple itself
is the data cluster, so the regions in its spatial join window are those that contain it, and no data index is built.
Paper: Spatial Join CQ, sections 5.1 and 5.5 (figure 11 with Ndc = 1).
"""

from __future__ import annotations

import numpy.typing as npt

from fishweir.evaluate.select.boxes.matches import Matches
from fishweir.evaluate.select.boxes.regions import Boxes, Floats, tuple_keys
from fishweir.papers.spatialjoin.regions.query_index import QueryIndex
from fishweir.papers.spatialjoin.regions.sj_batch import join_clusters


class SJImmediate:
    """Built once for a set of queries, never changed."""

    def __init__(self, boxes: Boxes) -> None:
        self.index = QueryIndex(boxes)

    def match(self, values: npt.ArrayLike, room: int | None = None) -> Matches:
        keys = tuple_keys(values, self.index.attributes)[:, self.index.used]
        return join_clusters(self.index, keys, size=1, room=room)

    def detail(self, sample: Floats) -> str:
        return "data clusters of 1 (Ndc)"
