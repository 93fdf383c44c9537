"""Superseded rows of changing files: documents that arrive after a new version of a row join only the new version.

In: all runs, including those of the micro-batch. Out: for pairs of documents, whether each was still in force when the
other arrived. A row of a file that changes in place (`rows PATH key PATH`) is in force from its arrival until the next
entry with its key, which is a new version or its deletion. Documents of other streams are in force forever.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.state import Run, Versions


def needed_versions(runs: Sequence[Run], kept: Sequence[NDArray[np.bool_]]) -> Ints:
    """The sorted entries that end the validity of documents that are `kept`: their own and the next with their key."""
    parts = [run.versions for run in runs]
    streams, numbers, keys = (
        np.concatenate([np.empty(0, kind), *(getattr(part, name) for part in parts)])
        for name, kind in (("streams", np.int64), ("numbers", np.int64), ("keys", np.uint64))
    )
    some = [_place(run.streams[own], run.numbers[own]) for run, own in zip(runs, kept, strict=True)]
    order = np.lexsort((numbers, keys, streams))
    places = _place(streams, numbers)[order]
    needed = np.isin(places, np.concatenate([np.empty(0, np.int64), *some]))
    same = (np.diff(streams[order]) == 0) & (np.diff(keys[order].view(np.int64)) == 0)
    needed[1:] |= needed[:-1] & same
    return np.sort(places[needed])


class SupersededRows:
    """The arrival of each row's next version. Built once per micro-batch and task."""

    def __init__(self, runs: Sequence[Run]) -> None:
        parts = [run.versions for run in runs if len(run.versions)]
        self.is_empty = not parts
        self._until: dict[int, tuple[Run, NDArray[np.float64]]] = {}
        if self.is_empty:
            return
        streams, numbers, arrivals, keys = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("streams", "numbers", "arrivals", "keys")
        )
        _, first = np.unique(_place(streams, numbers), return_index=True)  # all parts of a run have all of its versions
        order = first[np.lexsort((numbers[first], keys[first], streams[first]))]
        streams, numbers, arrivals, keys = streams[order], numbers[order], arrivals[order], keys[order]
        again = np.flatnonzero((streams[1:] == streams[:-1]) & (keys[1:] == keys[:-1]))
        places = _place(streams[again], numbers[again])
        by_place = np.argsort(places, kind="stable")
        self._places, self._ends = places[by_place], arrivals[again + 1][by_place]

    def until(self, run: Run) -> NDArray[np.float64]:
        """The time at which each document of a run was superseded; infinity if it is still in force."""
        if id(run) not in self._until:  # the run is kept with its times, so that its id is not reused
            own = _place(run.streams, run.numbers)
            found = np.full(len(run), np.inf)
            if len(self._places):
                at = np.minimum(np.searchsorted(self._places, own), len(self._places) - 1)
                found = np.where(self._places[at] == own, self._ends[at], np.inf)
            self._until[id(run)] = run, found
        return self._until[id(run)][1]

    def in_force(self, left: Run, right: Run, lefts: Ints, rights: Ints) -> NDArray[np.bool_]:
        one = right.arrivals[rights] < self.until(left)[lefts]
        two = left.arrivals[lefts] < self.until(right)[rights]
        return one & two


def _place(streams: Ints, numbers: Ints) -> Ints:
    return streams << 44 | numbers


def are_among(versions: Versions, places: Ints) -> NDArray[np.bool_]:
    """Mask of the entries that are in a list of needed ones."""
    if not len(versions):
        return np.empty(0, np.bool_)
    return np.isin(_place(versions.streams, versions.numbers), places)
