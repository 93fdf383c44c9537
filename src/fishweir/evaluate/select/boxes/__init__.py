"""Selections over tuples as query regions (Spatial Join CQ): a batch of tuples is joined with the set of queries.

`regions` defines the input, `matches` the output. `choose` selects the kernel: `grid` (many matches per tuple) or
`packed` (few). The paper's own kernels are in papers/spatialjoin and are registered in KERNELS when imported. `codes`
makes strings usable in regions. An index is built once per segment and never changed.
"""

from fishweir.evaluate.select.boxes.choose import KERNELS, Choice, Detailed, Index, choose
from fishweir.evaluate.select.boxes.codes import StringCodes
from fishweir.evaluate.select.boxes.grid import GridIndex
from fishweir.evaluate.select.boxes.matches import BitMatches, Matches
from fishweir.evaluate.select.boxes.packed import PackedIndex
from fishweir.evaluate.select.boxes.regions import Boxes

__all__ = [
    "KERNELS",
    "BitMatches",
    "Boxes",
    "Choice",
    "Detailed",
    "GridIndex",
    "Index",
    "Matches",
    "PackedIndex",
    "StringCodes",
    "choose",
]
