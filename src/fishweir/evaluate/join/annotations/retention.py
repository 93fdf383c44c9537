"""How long items stay in windows: until no item can come that a window would hold them for.

In: the links of annotation joins, a run, the watermarks. Out: for each entry in the lists of the run's rows, whether an
item that is not older than the watermark of its stream may still find it: in reach by time, or, of a window of items,
among the newest of those that are not later than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.join.annotations.item_views import IN_WINDOWS, Floats, ItemView, place_of
from fishweir.evaluate.join.annotations.links import Links
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.watermarks import Watermarks


class Reaches:
    """Of each window the longest reach, by what its items wait for: `windows` begin at `starts`, `waits` say for which
    sources, `by_time` how many seconds, `most` how many items."""

    def __init__(self, links: Links) -> None:
        self.windows, self.annotated = links.windows, links.annotated
        keys = np.searchsorted(links.windows, links.sides) * max(len(links.annotated), 1) + links.waits
        order = np.argsort(keys, kind="stable")
        found, first = np.unique(keys[order], return_index=True)
        window = found // max(len(links.annotated), 1)
        self.starts = np.searchsorted(window, np.arange(len(links.windows) + 1))
        self.waits = found % max(len(links.annotated), 1)
        items, seconds = links.items[order], links.seconds[order]
        self.by_time = _greatest(np.where(items > 0, -np.inf, seconds), first)
        self.most = _greatest(items, first)

    def listed(self, run: Run, views: Sequence[ItemView], watermarks: Watermarks) -> NDArray[np.bool_]:
        """Which entries of the lists of a run's rows are needed; `views` are of all runs that it is merged with."""
        rows = run.rows.of_class(IN_WINDOWS)
        row, entries = expand(run.rows.member_starts[rows], run.rows.member_starts[rows + 1])
        documents, sides = run.rows.documents[rows[row]], run.rows.members[entries]
        window = place_of(self.windows, sides)
        known = np.flatnonzero(window >= 0)
        entry, wait = expand(self.starts[window[known]], self.starts[window[known] + 1])
        entry = known[entry]
        times = run.times[documents[entry]]
        reached = self._reached(run.streams[documents[entry]], self.waits[wait], watermarks)
        held = reached - times <= self.by_time[wait]
        counted = np.flatnonzero(~held & (self.most[wait] > 0))
        newer = _newer(views, sides[entry[counted]], times[counted], reached[counted])
        held[counted] = newer < self.most[wait[counted]]
        found = np.zeros(len(run.rows.members), np.bool_)
        found[entries[entry[held]]] = True
        return found

    def _reached(self, streams: Ints, waits: Ints, watermarks: Watermarks) -> Floats:
        """How far the slowest stream has come that items of a stream wait for."""
        pairs, place = np.unique(streams << 32 | waits, return_inverse=True)
        least = [
            min((watermarks.least(source, pair >> 32) for source in self.annotated[pair & 0xFFFFFFFF]), default=np.inf)
            for pair in pairs.tolist()
        ]
        return np.array(least, np.float64)[place]


def _newer(views: Sequence[ItemView], sides: Ints, times: Floats, reached: Floats) -> Ints:
    """How many items of a side are later than a time and not later than what is reached."""
    found = np.zeros(len(sides), np.int64)
    for view in views:
        place = view.place_of(sides)
        after, upto = (np.searchsorted(view.times, when, "right") for when in (times, reached))
        lo, hi = (np.searchsorted(view.entries, np.maximum(place, 0) << 32 | end) for end in (after, upto))
        found += np.where(place >= 0, np.maximum(hi - lo, 0), 0)
    return found


def _greatest(values: NDArray[Any], starts: Ints) -> NDArray[Any]:
    return np.maximum.reduceat(values, starts) if len(starts) else values
