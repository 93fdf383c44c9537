"""Selections over tuples as query regions (Spatial Join CQ): a batch of tuples is joined with the set of queries.

`regions` defines the input, `matches` the output. `choose` selects the kernel: `grid` (many matches per tuple) or
`packed` (few). The paper's own kernels are in papers/spatialjoin and are registered in KERNELS when imported. `codes`
makes strings usable in regions. An index is built once per segment and never changed; its arrays are
written to the segment, from which workers map them.
"""

from fishweir.evaluate.select.boxes.choose import KERNELS, STORED, Choice, HasDetail, Index, choose
from fishweir.evaluate.select.boxes.codes import StringCodes
from fishweir.evaluate.select.boxes.grid import GridIndex
from fishweir.evaluate.select.boxes.matches import BitMatches, Matches
from fishweir.evaluate.select.boxes.packed import PackedIndex
from fishweir.evaluate.select.boxes.regions import Boxes

__all__ = [
    "KERNELS",
    "STORED",
    "BitMatches",
    "Boxes",
    "Choice",
    "GridIndex",
    "HasDetail",
    "Index",
    "Matches",
    "PackedIndex",
    "StringCodes",
    "choose",
]
