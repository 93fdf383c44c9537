"""Selections over tuples as query regions (Spatial Join CQ): a batch of tuples is joined with the set of queries.

`regions` says what comes in, `matches` what goes out, `choose` picks the strategy. Two are fast: `grid` (many matches a
tuple) and `packed` (few). Two are the paper's: `sj_batch` and `sj_immediate`, over `query_index`, with `corner` and
`hilbert`. `ibs` is the baseline. `codes` lets strings take part. An index is built once per segment and never changed.
"""

from fishweir.evaluate.select.boxes.choose import STRATEGIES, Choice, Index, choose
from fishweir.evaluate.select.boxes.codes import StringCodes
from fishweir.evaluate.select.boxes.grid import GridIndex
from fishweir.evaluate.select.boxes.ibs import IBSIndex
from fishweir.evaluate.select.boxes.matches import BitMatches, Matches
from fishweir.evaluate.select.boxes.packed import PackedIndex
from fishweir.evaluate.select.boxes.regions import Boxes
from fishweir.evaluate.select.boxes.sj_batch import SJBatch
from fishweir.evaluate.select.boxes.sj_immediate import SJImmediate

__all__ = [
    "STRATEGIES",
    "BitMatches",
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
