"""SJ-Immediate: each tuple joined with the query set as it arrives.

In: query regions; then tuples, and optionally a refinement. Out: the satisfied queries of each tuple as CSR. Shared:
nothing between tuples; the tuple itself is the data cluster, so the regions in its spatial join window are those that
hold it, and no data index is built. Paper: Spatial Join CQ, sections 5.1 and 5.5 (figure 11 with Ndc = 1).
"""

from __future__ import annotations

import numpy.typing as npt

from fishweir.sharing.boxes.matches import Matches
from fishweir.sharing.boxes.query_index import QueryIndex
from fishweir.sharing.boxes.regions import Boxes, tuple_keys
from fishweir.sharing.boxes.sj_batch import Refinement, join_clusters
from fishweir.sharing.jit import HAVE_NUMBA


class SJImmediate:
    """Built once for a set of queries, never changed."""

    def __init__(self, boxes: Boxes, compiled: bool = HAVE_NUMBA) -> None:
        self.index = QueryIndex(boxes, compiled)

    def match(self, values: npt.ArrayLike, refine: Refinement | None = None) -> Matches:
        keys = tuple_keys(values, self.index.attributes)[:, self.index.used]
        matches = join_clusters(self.index, keys, size=1)
        return matches.kept(refine(matches.tuple_numbers(), matches.numbers)) if refine else matches
