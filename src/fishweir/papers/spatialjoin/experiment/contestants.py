"""Fishweir's strategies as contestants, and the check that all contestants find the same pairs.

A contestant registers the queries of a work when it is created. `match` takes a batch of tuples and has all pairs of
tuple and query in memory when it returns, in its own form. `pairs` converts them to two columns and is not timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes import KERNELS, BitMatches, GridIndex, Index, Matches, choose
from fishweir.evaluate.select.boxes.regions import tuple_keys
from fishweir.papers.experiment.contestants import Disagreement
from fishweir.papers.spatialjoin.experiment.work import Floats, Work
from fishweir.papers.spatialjoin.regions import SJBatch
from fishweir.papers.spatialjoin.regions.hilbert import hilbert_order

Ints = npt.NDArray[np.int64]
Pairs = tuple[Ints, Ints]
BATCH = 500
"""Number of tuples that are matched at once. Their pairs are discarded before the next ones."""


class Contestant(Protocol):
    name: str
    batch: int
    clock: ClassVar[Callable[[], float]]

    def match(self, tuples: Floats) -> Any:
        """All pairs of this batch, in memory."""
        ...

    def pairs(self, found: Any) -> Pairs:
        """Numbers of tuples in the batch, and of queries."""
        ...


class Strategy:
    """One of the kernels by name; lists as CSR."""

    batch = BATCH
    clock: ClassVar[Callable[[], float]] = time.process_time

    def __init__(self, work: Work, name: str) -> None:
        self.name = name
        self.index: Index = KERNELS[name](work.boxes)

    def match(self, tuples: Floats) -> Matches:
        return self.index.match(tuples)

    def pairs(self, found: Matches) -> Pairs:
        return found.tuple_numbers(), found.numbers.astype(np.int64)


class Chosen(Strategy):
    """The strategy that `choose` takes, by a sample of the tuples."""

    def __init__(self, work: Work) -> None:
        self.choice = choose(work.boxes, work.tuples[:256])
        self.name, self.index = f"chosen ({self.choice.strategy})", self.choice.index


class Batchwise(Strategy):
    """SJ-Batch, with the batch size of the experiment, and a given Ndc or the one it finds."""

    def __init__(self, work: Work, batch: int, cluster_size: int | None = None) -> None:
        self.name, self.batch = "sj-batch", batch
        self.index: SJBatch = SJBatch(work.boxes, cluster_size)

    def ndc(self, tuples: Floats) -> int:
        """The given cluster size, or the one found for such a batch."""
        keys = tuple_keys(tuples[: self.batch], self.index.index.attributes)[:, self.index.index.used]
        return self.index.cluster_size(keys[hilbert_order(keys)])


class GridBitmaps:
    """The grid's other form: a bitmap of queries per tuple, without lists."""

    name = "grid, bitmaps"
    batch = BATCH
    clock: ClassVar[Callable[[], float]] = time.process_time

    def __init__(self, work: Work) -> None:
        self.index = GridIndex(work.boxes)

    def match(self, tuples: Floats) -> BitMatches:
        return self.index.bitmaps(tuples)

    def pairs(self, found: BitMatches) -> Pairs:
        listed = found.csr()
        return listed.tuple_numbers(), listed.numbers.astype(np.int64)


def naive_pairs(work: Work, tuples: Floats) -> Pairs:
    """Compares each tuple with each query, by definition."""
    found = [np.flatnonzero(((work.low <= row) & (row <= work.high)).all(axis=1)) for row in tuples]
    rows = np.repeat(np.arange(len(tuples)), [len(queries) for queries in found])
    return rows, np.concatenate(found) if found else np.empty(0, np.int64)


def check_agreement(work: Work, contestants: Sequence[Contestant], count: int) -> int:
    """Returns the number of pairs. Raises Disagreement unless all contestants find the naive evaluation's pairs for
    some tuples."""
    some = work.tuples[np.linspace(0, len(work.tuples) - 1, min(count, len(work.tuples))).astype(int)]
    expected = _codes(work, naive_pairs(work, some))
    for contestant in contestants:
        given = _codes(work, contestant.pairs(contestant.match(some)))
        if not np.array_equal(given, expected):
            wrong = np.setxor1d(given, expected)[:3]
            examples = [(int(code) // work.queries, int(code) % work.queries) for code in wrong]
            raise Disagreement(
                f"{work.name}: {contestant.name} finds {len(given):,} pairs instead of {len(expected):,};"
                f" (tuple, query) e.g. {examples}"
            )
    return len(expected)


def _codes(work: Work, pairs: Pairs) -> Ints:
    rows, queries = pairs
    return np.sort(rows.astype(np.int64) * work.queries + queries)
