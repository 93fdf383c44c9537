"""Numbers retained documents consistently from one micro-batch to the next.

In: the runs of each probe, which the engine merges and drops as it sees fit. Out: a number for each document, and the
current place of the document with a given number. The state that a published algorithm keeps between batches
(relations, views, windows) refers to documents by these numbers, so the cost of a batch depends on its own documents
only. Numbering restarts if the old runs are unknown, as in another process or when a micro-batch is repeated, or if
most documents have been dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.state import Run


@dataclass(frozen=True)
class NumberedRuns:
    """The runs of one probe with the numbers of their documents, the new runs last."""

    numbers: Sequence[Ints]
    """The numbers of each run's documents."""
    restarted: bool
    """Whether the state of earlier batches has to be rebuilt from the old runs."""
    first_new: int
    """The first number of the new documents."""
    _first: Ints
    _places: Ints

    def is_retained(self, numbers: Ints) -> NDArray[np.bool_]:
        """Mask of the numbers whose documents are still retained."""
        return self._places[numbers] >= 0

    def locate(self, numbers: Ints) -> tuple[Ints, Ints]:
        """The run of each number, and the document in that run."""
        places = self._places[numbers]
        runs = np.searchsorted(self._first, places, "right") - 1
        return runs, places - self._first[runs]


class DocumentNumbering:
    """Numbers documents, probe by probe. The numbers of a stream's documents ascend in arrival order."""

    def __init__(self) -> None:
        self._keys, self._numbers, self._next = np.empty(0, np.int64), np.empty(0, np.int64), 0

    def number(self, old: Sequence[Run], new: Sequence[Run]) -> NumberedRuns:
        before, after = _keys(old), _keys(new)
        known = self._number_of(before)
        restarted = bool((known < 0).any() or (self._number_of(after) >= 0).any() or 2 * len(before) < len(self._keys))
        if restarted:
            self._keys, self._numbers, self._next = np.empty(0, np.int64), np.empty(0, np.int64), 0
            self._add(before)
        first_new = self._next
        self._add(after)
        numbers = self._number_of(np.append(before, after))
        first = np.append(0, np.cumsum([len(run) for run in (*old, *new)]))
        places = np.full(self._next, -1)
        places[numbers] = np.arange(len(numbers))
        return NumberedRuns(np.split(numbers, first[1:-1]), restarted, first_new, first[:-1], places)

    def _add(self, keys: Ints) -> None:
        numbers = np.append(self._numbers, np.arange(self._next, self._next + len(keys)))
        keys = np.append(self._keys, np.sort(keys))
        order = np.argsort(keys, kind="stable")
        self._keys, self._numbers, self._next = keys[order], numbers[order], int(numbers.max(initial=-1)) + 1

    def _number_of(self, keys: Ints) -> Ints:
        """The number of each document, -1 if it is unknown."""
        if not len(self._keys):
            return np.full(len(keys), -1)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._numbers[at], -1)


def _keys(runs: Sequence[Run]) -> Ints:
    """Stream and number of each document, packed into one integer."""
    parts = [(run.streams.astype(np.int64) << 40) | run.numbers for run in runs]
    return np.concatenate([np.empty(0, np.int64), *parts])
