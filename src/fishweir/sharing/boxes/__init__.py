"""Selections over tuples as query regions (Spatial Join CQ): a batch of tuples is joined with the set of queries.

`regions` says what comes in, `matches` what goes out, `choose` picks the strategy. Two are fast: `grid` (many matches a
tuple) and `packed` (few). Two are the paper's: `sj_batch` and `sj_immediate`, over `query_index`, with `corner` and
`hilbert`. `ibs` is the baseline. `codes` lets strings take part. An index is built once per segment and never changed.
"""

from fishweir.sharing.boxes.choose import STRATEGIES, Choice, Index, choose
from fishweir.sharing.boxes.codes import StringCodes
from fishweir.sharing.boxes.grid import GridIndex
from fishweir.sharing.boxes.ibs import IBSIndex
from fishweir.sharing.boxes.matches import Matches
from fishweir.sharing.boxes.packed import PackedIndex
from fishweir.sharing.boxes.regions import Boxes
from fishweir.sharing.boxes.sj_batch import SJBatch
from fishweir.sharing.boxes.sj_immediate import SJImmediate

__all__ = [
    "STRATEGIES",
    "Boxes",
    "Choice",
    "GridIndex",
    "IBSIndex",
    "Index",
    "Matches",
    "PackedIndex",
    "SJBatch",
    "SJImmediate",
    "StringCodes",
    "choose",
]
