"""Windows of items: which are the newest n of a window when an item arrives.

In: (item, link) pairs whose windows count items, and the runs. Out: for an item of the window whether it is among the
newest n, by time, stream and number, that are not later than the item to annotate; that one is never counted itself.
Only the sides of these links are gathered from the runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fishweir.sharing.arrays import Ints, expand, number_rows
from fishweir.sharing.joins.annotations.stage import AnnotationStage
from fishweir.sharing.joins.annotations.state import Items


class CountedWindows:
    """Positions in one list of all (link, item of its window), ordered; a window is a range of it."""

    def __init__(self, stage: AnnotationStage, primary: Items, asked: Ints, runs: Sequence[Items]) -> None:
        self.asked = asked
        self.links = np.unique(asked & 0xFFFFFFFF)
        owner, times, streams, numbers = self._gathered(stage, runs)
        order = np.lexsort((numbers, streams, times, owner))
        owner, times, self.streams, self.numbers = owner[order], times[order], streams[order], numbers[order]
        self.owner = owner
        moments = np.unique(times)
        keys = owner << 32 | np.searchsorted(moments, times)
        link = np.searchsorted(self.links, asked & 0xFFFFFFFF)
        items = asked >> 32
        start = np.searchsorted(keys, link << 32)
        self.hi = np.searchsorted(keys, link << 32 | np.searchsorted(moments, primary.times[items], "right"))
        own = self._positions(link, primary.streams[items], primary.numbers[items])
        lo = self.hi - stage.items[asked & 0xFFFFFFFF]
        self.lo = np.maximum(lo - ((own >= lo) & (own < self.hi) & (own >= 0)), start)

    def _gathered(self, stage: AnnotationStage, runs: Sequence[Items]) -> tuple[Ints, NDArray[np.float64], Ints, Ints]:
        none = np.empty(0, np.int64)
        parts = [(none, np.empty(0), none, none)]
        for run in runs:
            place = run.place_of(stage.sides[self.links])
            lo, hi = np.searchsorted(run.entries, place << 32), np.searchsorted(run.entries, (place + 1) << 32)
            source, at = expand(np.where(place >= 0, lo, 0), np.where(place >= 0, hi, 0))
            rows = run.entries[at] & 0xFFFFFFFF
            parts.append((source, run.times[rows], run.streams[rows], run.numbers[rows]))
        return tuple(np.concatenate([part[i] for part in parts]) for i in range(4))  # type: ignore[return-value]

    def _positions(self, link: Ints, streams: Ints, numbers: Ints) -> Ints:
        """Where in the list an item of a link's window stands; -1 where it does not."""
        size = len(self.owner)
        together = number_rows(*(
            np.concatenate(both) for both in ((self.owner, link), (self.streams, streams), (self.numbers, numbers))
        ))  # fmt: skip
        place = np.full(together.max(initial=0) + 1, -1, np.int64)
        place[together[:size]] = np.arange(size)
        return place[together[size:]]

    def hold(self, asked: Ints, streams: Ints, numbers: Ints) -> NDArray[np.bool_]:
        """Whether the window of each (item, link) holds an item."""
        at = np.searchsorted(self.asked, asked)
        position = self._positions(np.searchsorted(self.links, asked & 0xFFFFFFFF), streams, numbers)
        return np.asarray((position >= self.lo[at]) & (position < self.hi[at]) & (position >= 0), np.bool_)
