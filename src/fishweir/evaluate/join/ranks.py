"""Windows that count rows: how many newer documents of its stream lie between a document and its join partner.

In: all runs, including those of the micro-batch. Out: the position of each document in its stream, and the position of
a stream's newest document at a given time. Their difference is the rank of the document among the newest (SQL's `[rows
n]`, as in CQL). Documents are ordered by time, and equal times by arrival. A later document of the same stream is
itself the newest. For a document of another stream, those of its own time have already arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.state import Run

Times = NDArray[np.float64]
_NONE = 0, np.empty(0)
"""Stands for a stream without counted documents."""


class Ranks:
    """The documents of each stream in order. Built once per micro-batch and task."""

    def __init__(self, runs: Sequence[Run]) -> None:
        streams, numbers, times = (
            np.concatenate([np.empty(0, kind), *(getattr(run, name) for run in runs)])
            for name, kind in (("streams", np.int64), ("numbers", np.int64), ("times", np.float64))
        )
        since = np.concatenate([np.empty(0, np.int64), *(run.since for run in runs)])
        order = np.lexsort((numbers, times, streams))
        order = order if since.min(initial=0) >= 0 else order[since[order] >= 0]
        places = np.zeros(len(since), np.int64)
        places[order] = np.arange(len(order))
        ends = np.cumsum([len(run) for run in runs])
        self._runs = list(runs)
        self._places = {id(run): places[end - len(run) : end] for run, end in zip(runs, ends.tolist(), strict=True)}
        """Positions are numbered across all streams, one after the other."""
        known, starts = np.unique(streams[order], return_index=True)
        stops = np.append(starts, len(order))[1:].tolist()
        self._times: Mapping[int, tuple[int, Times]] = {
            int(stream): (start, times[order[start:stop]])
            for stream, start, stop in zip(known, starts.tolist(), stops, strict=True)
        }

    def places(self, run: Run) -> Ints:
        """The position of each document of a run in the order of its stream. Positions are numbered stream after
        stream."""
        return self._places[id(run)]

    def behind(self, stream: int, when: Times) -> Ints:
        """The position after the last document of a stream that is not later than `when`."""
        start, times = self._times.get(stream, _NONE)
        return start + np.searchsorted(times, when, "right")

    def times_at(self, stream: int, places: Ints, default: float) -> Times:
        """The times at some positions of a stream; `default` beyond its end, the first time before its beginning."""
        start, times = self._times.get(stream, _NONE)
        if not len(times):
            return np.full(len(places), default)
        inside = np.clip(places - start, 0, len(times) - 1)
        return np.where(places - start < len(times), times[inside], default)

    def newest(self, streams: Ints, when: Times) -> Ints:
        """The position after the newest document of each stream at a time."""
        newest = np.zeros(len(streams), np.int64)
        for stream in np.unique(streams):
            mine = streams == stream
            newest[mine] = self.behind(int(stream), when[mine])
        return newest


def oldest_of_newest(runs: Sequence[Run], stream: int, reached: float, rows: float) -> float:
    """The time from which documents of a stream are among the newest `rows` at the time `reached`, or later than that;
    minus infinity if the stream has fewer documents."""
    own = [run.counted_times[stream] for run in runs if stream in run.counted_times]
    ends = [int(np.searchsorted(times, reached, "right")) for times in own]
    if sum(ends) < rows:
        return -np.inf
    firsts = [max(0, end - int(rows)) for end in ends]
    before = np.concatenate([times[first:end] for times, first, end in zip(own, firsts, ends, strict=True)])
    place = len(before) - int(rows)
    return float(np.partition(before, place)[place])


def arrival_blocks(
    times: Sequence[Times], arrivals: Sequence[Times], front: float | None = None
) -> list[list[NDArray[np.bool_]]]:
    """Divides the documents of some runs into blocks. Evaluating the blocks in order gives the same results as
    evaluating each document when it arrived. A document that arrives later stays in the same block as long as its time
    is newer too, because then no window contains it. With `front`, the time of the newest document before these, it
    must be newer than everything that arrived before it: windows are evaluated for old documents too."""
    when, came = np.concatenate([np.empty(0), *times]), np.concatenate([np.empty(0), *arrivals])
    stamps, group = np.unique(came, return_inverse=True)
    oldest, newest = np.full(len(stamps), np.inf), np.full(len(stamps), -np.inf)
    np.minimum.at(oldest, group, when)
    np.maximum.at(newest, group, when)
    block, of_stamp = 0, np.zeros(len(stamps), np.int64)
    reached = -np.inf if front is None else front
    for stamp, (least, greatest) in enumerate(zip(oldest.tolist(), newest.tolist(), strict=True)):
        if stamp and least <= reached:
            block, reached = block + 1, -np.inf if front is None else reached
        of_stamp[stamp], reached = block, max(reached, greatest)
    ends = np.cumsum([len(some) for some in arrivals])[:-1]
    return [np.split(of_stamp[group] == number, ends) for number in range(block + 1 if len(stamps) else 0)]
