"""The retained tuples of one side: the paper's data index, with insert and invalidate.

In: batches of arrivals. Out: the tuples in the order of (time, arrival), and in the order of the values of an attribute
on which comparisons are anchored. Shared: all queries share the tuples, which are a suffix of the order of time, as
long as the longest window needs. A tuple has a slot while it is retained. Columns, and all data that a strategy stores
about a tuple, are in arrays by slot, so that a batch moves only times, numbers and slots.
Paper: Spatial Join CQ, section 6, extension of the data indexing method (there a linked list and a search tree).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.regions import Floats

Ints = npt.NDArray[np.int64]
Arrays = tuple[Floats, Ints, Ints, Ints, Floats]


class Side:
    def __init__(self, attributes: int) -> None:
        self.times, self.numbers, self.slots = np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64)
        self.columns = np.empty((0, attributes))
        self.position = np.empty(0, np.int64)
        """The position in the order of time, by slot; -1 for a free slot."""
        self._free = np.empty(0, np.int64)
        self._orders: dict[int, tuple[Floats, Ints]] = {}

    def __len__(self) -> int:
        return len(self.times)

    @property
    def capacity(self) -> int:
        return len(self.position)

    def arrays(self) -> Arrays:
        """The arrays that kernels read."""
        return self.times, self.numbers, self.slots, self.position, self.columns

    def insert(self, times: Floats, columns: Floats, numbers: Ints) -> Ints:
        """Inserts tuples and returns their slots. Numbers are ascending and greater than all before."""
        slots = self._take(len(times))
        self.columns[slots] = columns
        times, numbers = np.concatenate((self.times, times)), np.concatenate((self.numbers, numbers))
        slots_by_time = np.concatenate((self.slots, slots))
        if (np.diff(times[len(self) - 1 if len(self) else 0 :]) < 0).any():
            order = np.argsort(times, kind="stable")
            times, numbers, slots_by_time = times[order], numbers[order], slots_by_time[order]
        self.times, self.numbers, self.slots = times, numbers, slots_by_time
        self.position[slots_by_time] = np.arange(len(times))
        for attribute, (values, in_order) in self._orders.items():
            self._orders[attribute] = merged(values, in_order, self.columns[slots, attribute], slots)
        return slots

    def drop_before(self, first: int) -> Ints:
        """Invalidates the oldest tuples and returns their slots."""
        gone = self.slots[:first]
        if not len(gone):
            return gone
        self.position[gone] = -1
        self._free = np.concatenate((self._free, gone))
        self.times, self.numbers, self.slots = self.times[first:], self.numbers[first:], self.slots[first:]
        self.position[self.slots] = np.arange(len(self.times))
        for attribute, (values, slots) in self._orders.items():
            kept = self.position[slots] >= 0
            self._orders[attribute] = values[kept], slots[kept]
        return gone

    def by_value(self, attribute: int) -> tuple[Floats, Ints]:
        """Sorted values that are not NULL, and their slots; maintained from the first call on."""
        if attribute not in self._orders:
            empty = np.empty(0), np.empty(0, np.int64)
            self._orders[attribute] = merged(*empty, self.columns[self.slots, attribute], self.slots)
        return self._orders[attribute]

    def _take(self, count: int) -> Ints:
        short = count - len(self._free)
        if short > 0:
            before = self.capacity
            after = max(2 * before, before + short, 64)
            self.position = widened(self.position, after)
            self.position[before:] = -1
            self.columns = widened(self.columns, after)
            self._free = np.concatenate((np.arange(before, after)[::-1], self._free))
        taken = self._free[len(self._free) - count :]
        self._free = self._free[: len(self._free) - count]
        return taken


def widened(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    wider = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    wider[: len(array)] = array
    return wider


def merged(values: Any, slots: Ints, more: Any, more_slots: Ints) -> tuple[Any, Ints]:
    """Merges more values into sorted ones, without NaN."""
    order = np.argsort(more, kind="stable")
    order = order[: len(order) - int(np.isnan(more).sum())]
    more, more_slots = more[order], more_slots[order]
    places = np.searchsorted(values, more)
    return np.insert(values, places, more), np.insert(slots, places, more_slots)
