"""Windows that count items: which items are the newest n of a window when an item arrives.

In: (item, link) pairs whose windows count items, and the runs. Out: for an item of the window, whether it is among the
newest n, by time, stream and number, that are not later than the item to annotate. The item itself is never counted.
Only the sides of these links are gathered from the runs, each once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand, number_rows
from fishweir.evaluate.join.annotations.item_views import ItemView
from fishweir.evaluate.join.annotations.links import Links


class CountedWindows:
    """Positions in one sorted list of all (side, item of its windows) pairs. A window is a range of this list."""

    def __init__(self, links: Links, primary: ItemView, requests: Ints, runs: Sequence[ItemView]) -> None:
        self.requests, self.of_link = requests, links.sides
        self.sides = np.unique(links.sides[requests & 0xFFFFFFFF])
        owner, times, streams, numbers = self._gathered(runs)
        order = np.lexsort((numbers, streams, times, owner))
        owner, times, self.streams, self.numbers = owner[order], times[order], streams[order], numbers[order]
        self.owner = owner
        moments = np.unique(times)
        keys = owner << 32 | np.searchsorted(moments, times)
        side = self._side(requests)
        items = requests >> 32
        start = np.searchsorted(keys, side << 32)
        self.hi = np.searchsorted(keys, side << 32 | np.searchsorted(moments, primary.times[items], "right"))
        own = self._positions(side, primary.streams[items], primary.numbers[items])
        lo = self.hi - links.items[requests & 0xFFFFFFFF]
        self.lo = np.maximum(lo - ((own >= lo) & (own < self.hi) & (own >= 0)), start)

    def _side(self, requests: Ints) -> Ints:
        return np.searchsorted(self.sides, self.of_link[requests & 0xFFFFFFFF])

    def _gathered(self, runs: Sequence[ItemView]) -> tuple[Ints, NDArray[np.float64], Ints, Ints]:
        none = np.empty(0, np.int64)
        parts = [(none, np.empty(0), none, none)]
        for run in runs:
            place = run.place_of(self.sides)
            lo, hi = np.searchsorted(run.entries, place << 32), np.searchsorted(run.entries, (place + 1) << 32)
            source, at = expand(np.where(place >= 0, lo, 0), np.where(place >= 0, hi, 0))
            rows = run.entries[at] & 0xFFFFFFFF
            parts.append((source, run.times[rows], run.streams[rows], run.numbers[rows]))
        return tuple(np.concatenate([part[i] for part in parts]) for i in range(4))  # type: ignore[return-value]

    def _positions(self, side: Ints, streams: Ints, numbers: Ints) -> Ints:
        """The position of an item of a side in the list, -1 if it is absent."""
        size = len(self.owner)
        together = number_rows(
            *(np.concatenate(both) for both in ((self.owner, side), (self.streams, streams), (self.numbers, numbers)))
        )
        place = np.full(together.max(initial=0) + 1, -1, np.int64)
        place[together[:size]] = np.arange(size)
        return place[together[size:]]

    def hold(self, requests: Ints, streams: Ints, numbers: Ints) -> NDArray[np.bool_]:
        """Whether the window of each (item, link) pair holds an item."""
        at = np.searchsorted(self.requests, requests)
        position = self._positions(self._side(requests), streams, numbers)
        return np.asarray((position >= self.lo[at]) & (position < self.hi[at]) & (position >= 0), np.bool_)
