"""The packed tree of query regions: the faster kernel if a tuple satisfies few queries.

In: query regions, and then batches of tuples. Out: the satisfied queries of each tuple as CSR. Shared: the bounding box
of 64 queries is tested once for all of them, and that of 64 such blocks once for these.

Queries are sorted so that neighbours are close together (`packed_order`). 64 consecutive queries form a block, and 64
blocks form a block of the next level. A block has 64 lower and 64 upper ends per attribute as 16-bit codes, so that one
instruction compares a tuple with 16 regions. Codes are positions in the rank space if it has at most 65,535 ranks, and
then they are exact. Otherwise they are quantiles of it, and the regions they let pass are compared again by their keys
(refinement). Memory: 4 bytes per query and attribute, a 64th more for the levels above, and 16 bytes if refinement is
needed.

Paper: none; section 5.4 of Spatial Join CQ leaves the multi-dimensional structure of the query index open.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes import packed_kernels
from fishweir.evaluate.select.boxes.matches import Matches, Numbers, Offsets
from fishweir.evaluate.select.boxes.packed_order import FAN_OUT, Codes, greedy_split_order
from fishweir.evaluate.select.boxes.ranks import RankSpace
from fishweir.evaluate.select.boxes.regions import Boxes, Keys, tuple_keys
from fishweir.evaluate.select.boxes.stored import StoredIndex

MOST_CODES = (1 << 16) - 1
PAIRS_AT_ONCE = 1 << 14
FIRST_ROOM = 1 << 12
SPREAD = np.array([sum((n >> bit & 1) << 2 * bit for bit in range(8)) for n in range(256)], np.uint16)
"""A byte with a 0 in front of each of its bits."""


@dataclass(frozen=True, slots=True)
class Level:
    """Blocks of one level: low[b, a, i] <= code <= high[b, a, i] for member i of block b."""

    low: Codes
    high: Codes

    @classmethod
    def of(cls, low: Codes, high: Codes) -> Level:
        """Creates a level from (members, attributes). The last block is padded with members that no code satisfies."""
        blocks = -(-len(low) // FAN_OUT)
        padding = ((0, blocks * FAN_OUT - len(low)), (0, 0))
        shape = (blocks, FAN_OUT, low.shape[1])
        low = np.pad(low, padding, constant_values=MOST_CODES).reshape(shape)
        high = np.pad(high, padding, constant_values=0).reshape(shape)
        return cls(np.ascontiguousarray(low.transpose(0, 2, 1)), np.ascontiguousarray(high.transpose(0, 2, 1)))

    def above(self) -> Level:
        return Level.of(self.low.min(axis=2), self.high.max(axis=2))


class PackedIndex(StoredIndex):
    """Built once for a set of queries, never changed. All of it is in its arrays."""

    def __init__(self, boxes: Boxes) -> None:
        super().__init__(built(boxes))

    def _attach(self, arrays: Mapping[str, Any]) -> None:
        self.queries, self.attributes, self.exact = (int(one) for one in arrays["sizes"])
        self.used, self.numbers, bases = arrays["used"], arrays["numbers"], arrays["bases"]
        self.cuts = np.split(arrays["cuts"], arrays["cut_ends"][:-1]) if len(self.used) else []
        blocks = (-1, len(self.used), FAN_OUT) if len(self.used) else (0, 0, FAN_OUT)
        lows, highs = (arrays[name].reshape(blocks) for name in ("lows", "highs"))
        self._flat: tuple[Codes, Codes, npt.NDArray[np.int64]] = lows, highs, bases
        self.levels = [Level(lows[a:b], highs[a:b]) for a, b in itertools.pairwise(bases)][::-1]
        ends = (-1, max(1, len(self.used)))
        self._low, self._high = (arrays[name].reshape(ends) for name in ("low", "high"))

    def memory(self) -> int:
        """The size in bytes of the blocks and of the keys for refinement."""
        return sum(x.low.nbytes + x.high.nbytes for x in self.levels) + self._low.nbytes + self._high.nbytes

    def match(self, values: npt.ArrayLike, room: int | None = None) -> Matches:
        keys = np.ascontiguousarray(tuple_keys(values, self.attributes)[:, self.used])
        if not len(self.used) or not len(self.numbers):
            return Matches.from_lists([self.numbers] * len(keys))
        codes = self._codes(keys)
        order = curve_order(codes)
        lows, highs, bases = self._flat

        def step(row: int, position: int, numbers: Numbers, offsets: Offsets) -> tuple[int, int]:
            return packed_kernels.list_matches(
                order,
                codes,
                keys,
                lows,
                highs,
                bases,
                self._low,
                self._high,
                self.numbers,
                row,
                position,
                numbers,
                offsets,
            )

        # A tuple whose matches do not fit is restarted with four times the room, because matches are few here.
        most = self.queries if room is not None else min(self.queries, FIRST_ROOM)
        found = Matches.from_kernel(step, len(codes), most + FAN_OUT, room)
        return replace(found, order=order[: len(found)]).in_order()

    def blocks_visited(self, values: npt.ArrayLike) -> float:
        """The average number of blocks visited per tuple of this sample, which determines the cost of a match."""
        codes = self._codes(tuple_keys(values, self.attributes)[:, self.used])
        if not len(self.used) or not len(codes):
            return 0.0
        rows, blocks, visited = np.arange(len(codes)), np.zeros(len(codes), dtype=np.intp), 0
        for level in reversed(self.levels):
            visited += len(rows)
            rows, blocks = hits(level, codes, rows, blocks) if level is not self.levels[0] else (rows, blocks)
        return visited / len(codes)

    def _codes(self, keys: Keys) -> Codes:
        """The codes, computed by contiguous columns: the kernel is compiled for one layout, regardless of the shape."""
        codes = np.empty(keys.shape[::-1], dtype=np.uint16)
        for position, (cuts, column) in enumerate(zip(self.cuts, codes, strict=True)):
            packed_kernels.encode(np.ascontiguousarray(keys[:, position]), cuts, column)
        return np.ascontiguousarray(codes.T)


def built(boxes: Boxes) -> dict[str, Any]:
    """The arrays of the tree: the blocks of all levels, top level first, and the offset of each level; the queries in
    the order of the lowest level; the cuts between codes by attribute; the keys, unless codes are exact."""
    members, used = np.flatnonzero(~boxes.empty()), boxes.used_attributes()
    inside = boxes.take(members, used)
    spaces = [RankSpace.of(inside.low[:, a], inside.high[:, a]) for a in range(len(used))]
    low = np.empty((len(members), len(used)), dtype=np.uint16)
    high = np.empty_like(low)
    cuts = []
    for position, space in enumerate(spaces):
        step = -(-space.size // MOST_CODES)
        cuts.append(np.ascontiguousarray(space.cuts[step - 1 :: step]))
        low[:, position] = space.first // step
        high[:, position] = (space.last - 1) // step
    exact = all(len(kept) == len(space.cuts) for kept, space in zip(cuts, spaces, strict=True))
    # The most selective attribute comes first, because it eliminates most blocks.
    by_width = np.argsort((high.astype(np.float64) - low).sum(axis=0) / [len(c) + 1 for c in cuts])
    low, high = low[:, by_width], high[:, by_width]
    order = greedy_split_order(low, high)
    levels = [Level.of(low[order], high[order])]
    while len(levels[-1].low) > 1:
        levels.append(levels[-1].above())
    lows, highs, bases = flattened(levels[::-1])
    kept = slice(0) if exact else order
    cuts = [cuts[a] for a in by_width]
    return {
        "sizes": np.array([boxes.count, boxes.attributes, exact], np.int64),
        "used": used[by_width],
        "numbers": members[order].astype(np.int32),
        "cuts": np.concatenate([np.empty(0, np.int64), *cuts]),
        "cut_ends": np.cumsum([len(some) for some in cuts], dtype=np.int64),
        "lows": lows.ravel(),
        "highs": highs.ravel(),
        "bases": bases,
        "low": inside.low[kept][:, by_width].ravel(),
        "high": inside.high[kept][:, by_width].ravel(),
    }


def curve_order(codes: Codes) -> npt.NDArray[np.intp]:
    """An order in which neighbours visit the same blocks, so that these are still in the processor's cache: along a
    Z-curve over the first two attributes. Keys of 16 bits are sorted by their digits."""
    if codes.shape[1] == 1:
        return np.argsort(codes[:, 0], kind="stable")
    first, second = SPREAD[codes[:, 0] >> 8], SPREAD[codes[:, 1] >> 8]
    return np.argsort((first << 1) | second, kind="stable")


def hits(
    level: Level, codes: Codes, rows: npt.NDArray[np.intp], blocks: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Turns pairs of tuple and block into pairs of tuple and member, numbered across all blocks."""
    found = [(rows[:0], blocks[:0])]
    for start in range(0, len(rows), PAIRS_AT_ONCE):
        row, block = rows[start : start + PAIRS_AT_ONCE], blocks[start : start + PAIRS_AT_ONCE]
        inside = np.ones((len(row), FAN_OUT), dtype=bool)
        for attribute in range(codes.shape[1]):
            code = codes[row, attribute, None]
            inside &= (level.low[block, attribute] <= code) & (code <= level.high[block, attribute])
        pair, member = np.nonzero(inside)
        found.append((row[pair], block[pair] * FAN_OUT + member))
    return np.concatenate([r for r, _ in found]), np.concatenate([m for _, m in found])


def flattened(downwards: list[Level]) -> tuple[Codes, Codes, npt.NDArray[np.int64]]:
    """The concatenated blocks of all levels, top level first, and the offset of each level."""
    bases = np.concatenate(([0], np.cumsum([len(level.low) for level in downwards])))
    lows, highs = np.concatenate([x.low for x in downwards]), np.concatenate([x.high for x in downwards])
    return lows, highs, bases.astype(np.int64)
