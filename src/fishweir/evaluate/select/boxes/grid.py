"""The grid of bitmaps: the faster kernel if a tuple satisfies many queries.

In: query regions, and then batches of tuples. Out: the satisfied queries of each tuple as CSR. Shared: one bitmap of
queries per attribute and cell, read by every tuple in the cell.

The rank space of an attribute is divided into cells with about equal numbers of range ends. The bitmap of a cell has
the queries whose range overlaps the cell. A tuple ANDs the bitmaps of its cells. A query that overlaps the cell but
does not contain the tuple begins after the tuple or ends before it, inside the cell. These few queries are two slices
of the sorted ends, and their bits are cleared. The result is exact, without checking any candidate. If an attribute has
no more ranks than cells, each cell is one rank and both slices are empty (exact cells).

Cells: an AND reads N/64 words and a clear touches N/cells bits per attribute, so more than `MOST_CELLS` cells gain
nothing. Memory: attributes * cells * N/8 bytes for bitmaps, at most `budget`, which bounds the number of cells; in
addition 8 bytes per query and attribute for the sorted ends, and at most 32 more for the ranks.

Paper: none. It complements Spatial Join CQ (section 5) and is tested against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes import grid_kernels
from fishweir.evaluate.select.boxes.matches import BitMatches, Matches, Numbers, Offsets, Words
from fishweir.evaluate.select.boxes.ranks import RankSpace
from fishweir.evaluate.select.boxes.regions import Boxes, Keys, tuple_keys
from fishweir.evaluate.select.boxes.stored import StoredIndex

MOST_CELLS = 256
BUDGET = 256 << 20


@dataclass(frozen=True, slots=True)
class Axis:
    """One attribute of the grid: how the rank and the cell of a key are found, and the slices of queries to clear."""

    cuts: Keys
    """The cuts between ranks."""
    cell_cuts: Keys
    """The cuts between cells."""
    first_rank: npt.NDArray[np.int64]
    """The first rank of each cell, followed by the number of ranks."""
    around: Numbers
    """By rank, the number of ranges that begin at or before it, and the number that end before it."""
    limits: Numbers
    """By cell, the number of ranges that begin before its end, and the number that end before its beginning."""

    @property
    def cells(self) -> int:
        return len(self.first_rank) - 1

    def arrays(self) -> tuple[Keys, Keys, Offsets, Numbers, Numbers]:
        """The arrays that `grid_kernels.look_up` reads."""
        return self.cell_cuts, self.cuts, self.first_rank, self.around, self.limits


AXIS: dict[str, tuple[int, ...]] = {
    "cuts": (-1,),
    "cell_cuts": (-1,),
    "first_rank": (-1,),
    "around": (-1, 2),
    "limits": (-1, 2),
}
"""The fields of an axis and their shapes: files have arrays of one dimension."""


def cells_within(budget: int, queries: int, attributes: int) -> int:
    """The number of cells per attribute that keeps all bitmaps within the budget; at least 2."""
    return max(2, min(MOST_CELLS, budget // max(1, attributes * words_of(queries) * 8)))


def words_of(queries: int) -> int:
    return -(-queries // 64)


def build_axis(space: RankSpace, cells: int) -> tuple[Axis, Words, Numbers, Numbers]:
    """The axis; the bitmap of each cell; the queries by the first rank of their range, and by the rank after it."""
    size, queries = space.size, len(space.first)
    started = np.concatenate(([0], np.cumsum(np.bincount(space.first, minlength=size + 1))))
    ended = np.concatenate(([0], np.cumsum(np.bincount(space.last, minlength=size + 1))))
    first_rank = cell_bounds(started + ended, size, cells)
    bitmaps = np.zeros((len(first_rank) - 1, words_of(queries)), dtype=np.uint64)
    starts = np.argsort(space.first, kind="stable").astype(np.int32)
    ends = np.argsort(space.last, kind="stable").astype(np.int32)
    grid_kernels.fill_bitmaps(first_rank, started, ended, starts, ends, bitmaps)
    around = np.column_stack((started[1 : size + 1], ended[1 : size + 1])).astype(np.int32)
    limits = np.column_stack((started[first_rank[1:]], ended[first_rank[:-1] + 1])).astype(np.int32)
    axis = Axis(space.cuts, space.cuts[first_rank[1:-1] - 1], first_rank, around, limits)
    return axis, bitmaps, starts, ends


def built(boxes: Boxes, budget: int) -> dict[str, Any]:
    """The arrays of the grid, those of all axes one after the other."""
    used = boxes.used_attributes()
    cells = cells_within(budget, boxes.count, len(used))
    found = [build_axis(RankSpace.of(boxes.low[:, a], boxes.high[:, a]), cells) for a in used]
    none = np.empty(0, np.int32)
    bitmaps = np.concatenate([one[1] for one in found]) if found else packed(~boxes.empty())
    arrays: dict[str, Any] = {
        "sizes": np.array([boxes.count, boxes.attributes], np.int64),
        "used": used,
        "bitmaps": bitmaps.ravel(),
        "starts": np.concatenate([none, *(one[2] for one in found)]),
        "ends": np.concatenate([none, *(one[3] for one in found)]),
    }
    for number, (axis, *_) in enumerate(found):
        arrays |= {f"{name}{number}": getattr(axis, name).ravel() for name in AXIS}
    return arrays


def cell_bounds(below: npt.NDArray[np.int64], size: int, cells: int) -> npt.NDArray[np.int64]:
    """The first ranks of the cells: one cell per rank if there is room, else quantiles of the range ends."""
    if size <= cells:
        return np.arange(size + 1)
    least, most = below[1], below[size]
    quantiles = least + (most - least) * np.arange(1, cells) // cells
    return np.unique(np.concatenate(([0], np.searchsorted(below[: size + 1], quantiles), [size])))


class GridIndex(StoredIndex):
    """Built once for a set of queries. It only records the average number of matches per tuple in the last batch."""

    def __init__(self, boxes: Boxes, budget: int = BUDGET) -> None:
        super().__init__(built(boxes, budget))

    def _attach(self, arrays: Mapping[str, Any]) -> None:
        self.queries, self.attributes = (int(one) for one in arrays["sizes"])
        self.used = arrays["used"]
        self._starts, self._ends = arrays["starts"], arrays["ends"]
        self.axes = [
            Axis(*(arrays[f"{name}{axis}"].reshape(shape) for name, shape in AXIS.items()))
            for axis in range(len(self.used))
        ]
        rows = sum(axis.cells for axis in self.axes) if self.axes else 1
        self._bitmaps = arrays["bitmaps"].reshape(rows, words_of(self.queries))
        self._per_tuple = 0.0

    def memory(self) -> int:
        """The size of the bitmaps in bytes."""
        return int(self._bitmaps.nbytes)

    def match(self, values: npt.ArrayLike, room: int | None = None) -> Matches:
        found = self._look_up(values)

        def step(row: int, position: int, numbers: Numbers, offsets: Offsets) -> tuple[int, int]:
            return grid_kernels.list_matches(
                found, self._bitmaps, self._starts, self._ends, row, position, numbers, offsets
            )

        most = words_of(self.queries) * 64 + grid_kernels.UNROLLED
        matches = Matches.from_kernel(step, len(found), most, room, guess=1.1 * self._per_tuple + 2)
        self._per_tuple = len(matches.numbers) / max(1, len(matches.offsets) - 1)
        return matches

    def bitmaps(self, values: npt.ArrayLike) -> BitMatches:
        """The factorized form, which takes N/8 bytes per tuple regardless of its matches."""
        found = self._look_up(values)
        words = np.empty((len(found), words_of(self.queries)), dtype=np.uint64)
        grid_kernels.and_bitmaps(found, self._bitmaps, self._starts, self._ends, words)
        return BitMatches(words, self.queries)

    def _look_up(self, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """(tuple, axis, 5): the input of the kernels, as positions in the concatenated arrays.

        It is padded with axes that repeat the first row and clear nothing, so that rows are ANDed four at a time.
        """
        keys = tuple_keys(values, self.attributes)
        filled = -(-max(1, len(self.axes)) // grid_kernels.AT_ONCE) * grid_kernels.AT_ONCE
        found = np.zeros((len(keys), filled, 5), dtype=np.int64)
        before = 0
        for position, (attribute, axis) in enumerate(zip(self.used, self.axes, strict=True)):
            into = found[:, position]
            grid_kernels.look_up(keys[:, attribute], *axis.arrays(), before, position * self.queries, into)
            before += axis.cells
        found[:, len(self.axes) :, 0] = found[:, :1, 0]
        return found


def packed(flags: npt.NDArray[np.bool_]) -> Words:
    """Flags as the words of a bitmap."""
    words = np.zeros(words_of(len(flags)), dtype=np.uint64)
    as_bytes = np.packbits(flags, bitorder="little")
    words.view(np.uint8)[: len(as_bytes)] = as_bytes
    return words
