"""How results are shared out among tasks that read them: many small micro-batches a task, or a part of a large one.

In: commits. Out: parts, in order, each for one task: micro-batches with the share of them that is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from fishweir.evaluate.arrays import Ints
from fishweir.pipeline.commits import Commit

AT_ONCE = 50_000
"""Results that one task reads, about: some tenths of a second."""


@dataclass(frozen=True)
class Share:
    """The `place`-th of `count` about equal parts of a micro-batch's results."""

    place: int = 0
    count: int = 1

    def of(self, sizes: Ints, documents: Ints) -> slice:
        """Which of the entries, whose sizes and last documents are given. What is over one document stays together:
        whether a result came before by another alternative is known within a share."""
        if self.count == 1:
            return slice(0, len(sizes))
        ends = np.cumsum(sizes)
        firsts = np.flatnonzero(np.append(True, (documents[1:] != documents[:-1]).any(axis=1)))
        bounds = []
        for place in (self.place, self.place + 1):
            wanted = np.searchsorted(ends, ends[-1] * place / self.count) if len(ends) and place else 0
            after = np.searchsorted(firsts, wanted)
            bounds.append(len(sizes) if place == self.count or after == len(firsts) else int(firsts[after]))
        return slice(*bounds)


WHOLE = Share()
Part = tuple[tuple[Commit, Share], ...]
"""What one task reads."""


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
    """A commit without what concerns the job only, and without the index that has been asked."""
    return replace(commit, fired=None, offsets={}, states=[], watermarks={}, dropped_by={}, missed={}, shed={})
