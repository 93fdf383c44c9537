"""Determines how long items stay in windows: until no item can arrive whose window would hold them.

In: the links of annotation joins, a run, the watermarks. Out: a mask over the entries in the lists of the run's rows:
whether an item that is not older than the watermark of its stream may still find the entry. It may if the entry is in
reach by time or, for a window that counts items, among the newest items that are not later than the watermark.
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
    """The longest reach of each window for each source that its items wait for. `windows` begin at `starts`, `waits`
    are the sources, `by_time` the seconds, `most` the number of items."""

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
        """Mask of the needed entries in the lists of a run's rows. `views` are those of all runs that it is merged
        with."""
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
        """The lowest watermark of the streams that items of a stream wait for."""
        pairs, place = np.unique(streams << 32 | waits, return_inverse=True)
        least = [
            min((watermarks.least(source, pair >> 32) for source in self.annotated[pair & 0xFFFFFFFF]), default=np.inf)
            for pair in pairs.tolist()
        ]
        return np.array(least, np.float64)[place]


def _newer(views: Sequence[ItemView], sides: Ints, times: Floats, reached: Floats) -> Ints:
    """The number of a side's items that are later than `times` and not later than `reached`."""
    found = np.zeros(len(sides), np.int64)
    for view in views:
        place = view.place_of(sides)
        after, upto = (np.searchsorted(view.times, when, "right") for when in (times, reached))
        lo, hi = (np.searchsorted(view.entries, np.maximum(place, 0) << 32 | end) for end in (after, upto))
        found += np.where(place >= 0, np.maximum(hi - lo, 0), 0)
    return found


def _greatest(values: NDArray[Any], starts: Ints) -> NDArray[Any]:
    return np.maximum.reduceat(values, starts) if len(starts) else values
