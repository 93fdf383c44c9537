"""Which queries of a group each retained tuple satisfies on its own side.

In: new tuples and their slots. Out: by slot a bitmap of queries, or a list of them, whichever is shorter, as the first
batch shows. Shared: a tuple's selections are looked up once, when it arrives, for all pairs that it will ever be in.
"""

from __future__ import annotations

import numpy as np

from fishweir.sharing.boxes.choose import Index, choose
from fishweir.sharing.boxes.grid import GridIndex, words_of
from fishweir.sharing.boxes.matches import Numbers, Words
from fishweir.sharing.boxes.regions import Boxes, Floats
from fishweir.sharing.windows.side import Ints, widened

QUERIES_A_LISTED = 64
"""A list is taken where a tuple satisfies less than one of so many."""
FIRST_ROOM = 1 << 10


class QuerySets:
    def __init__(self, boxes: Boxes, listed: bool | None = None) -> None:
        self.boxes, self.listed = boxes, listed
        self.words: Words = np.zeros((0, words_of(boxes.count)), np.uint64)
        self.starts: Ints = np.zeros(0, np.int64)
        self.ends: Ints = np.zeros(0, np.int64)
        self.numbers: Numbers = np.empty(FIRST_ROOM, np.int32)
        self._used = 0
        self._index: Index | None = None

    def arrays(self) -> tuple[bool, Words, Ints, Ints, Numbers]:
        return bool(self.listed), self.words, self.starts, self.ends, self.numbers

    def put(self, slots: Ints, columns: Floats, capacity: int) -> None:
        index = self._chosen(columns)
        if isinstance(index, GridIndex) and not self.listed:
            self.words = self.words if len(self.words) >= capacity else widened(self.words, capacity)
            self.words[slots] = index.bitmaps(columns).words
            return
        found = index.match(columns)
        if len(self.starts) < capacity:
            self.starts, self.ends = widened(self.starts, capacity), widened(self.ends, capacity)
        if self._used + len(found.numbers) > len(self.numbers):
            self._pack(len(found.numbers))
        self.numbers[self._used : self._used + len(found.numbers)] = found.numbers
        self.starts[slots], self.ends[slots] = self._used + found.offsets[:-1], self._used + found.offsets[1:]
        self._used += len(found.numbers)

    def free(self, slots: Ints) -> None:
        if self.listed:
            self.starts[slots] = self.ends[slots] = 0

    def _chosen(self, columns: Floats) -> Index:
        if self._index is None:
            choice = choose(self.boxes, columns)
            if self.listed is None:
                self.listed = choice.matches * QUERIES_A_LISTED < self.boxes.count
            self._index = choice.index if self.listed else GridIndex(self.boxes)
        return self._index

    def _pack(self, more: int) -> None:
        """Lists that are left, without the holes, in an array with twice the room they and `more` need."""
        lengths = self.ends - self.starts
        after = np.cumsum(lengths)
        total = int(after[-1]) if len(after) else 0
        source = np.repeat(self.starts - (after - lengths), lengths) + np.arange(total)
        packed = np.empty(max(FIRST_ROOM, 2 * (total + more)), np.int32)
        packed[:total] = self.numbers[source]
        self.numbers, self.starts, self.ends, self._used = packed, after - lengths, after, total
