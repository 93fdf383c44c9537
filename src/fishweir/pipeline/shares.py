"""Distributes results over the tasks that read them: a task reads many small micro-batches, or a part of a large one.

In: commits. Out: parts in order, one per task: micro-batches, each with the share to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from fishweir.evaluate.arrays import Ints
from fishweir.pipeline.commits import Commit
from fishweir.records import dataclass

AT_ONCE = 50_000
"""The approximate number of results that one task reads: some tenths of a second."""


@dataclass(frozen=True)
class Share:
    """The `place`-th of `count` about equal parts of a micro-batch's results."""

    place: int = 0
    count: int = 1

    def of(self, sizes: Ints, documents: Ints) -> slice:
        """The slice of the entries, given their sizes and last documents. Results of one document stay together: only
        within a share is it known whether another alternative already yielded a result.
        """
        if self.count == 1:
            return slice(0, len(sizes))
        ends = np.cumsum(sizes)
        firsts = np.flatnonzero(np.append(True, documents[1:] != documents[:-1]))
        bounds = []
        for place in (self.place, self.place + 1):
            wanted = np.searchsorted(ends, ends[-1] * place / self.count) if len(ends) and place else 0
            after = np.searchsorted(firsts, wanted)
            bounds.append(len(sizes) if place == self.count or after == len(firsts) else int(firsts[after]))
        return slice(*bounds)


WHOLE = Share()
Part = tuple[tuple[Commit, Share], ...]
"""The input of one task."""


def parts_of(commits: Iterable[Commit]) -> Iterator[Part]:
    waiting: list[tuple[Commit, Share]] = []
    size = 0
    for commit in commits:
        count = -(-commit.matches // AT_ONCE)
        if waiting and size + commit.matches > AT_ONCE:
            yield tuple(waiting)
            waiting, size = [], 0
        if count > 1:
            yield from (((_light(commit), Share(place, count)),) for place in range(count))
        else:
            waiting.append((_light(commit), WHOLE))
            size += commit.matches
    if waiting:
        yield tuple(waiting)


def _light(commit: Commit) -> Commit:
    """A commit without the data that only the job needs, and without the index, which has already been used."""
    return replace(commit, fired=None, offsets={}, states=[], watermarks={}, dropped_by={}, missed={}, shed={})
