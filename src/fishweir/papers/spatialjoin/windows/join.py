"""Base of sliding window joins over two streams of tuples, shared by all strategies.

In: batches of tuples of R and S with their times. Out: (query, r, s) for the pairs that a batch completes. Shared: all
queries share the retained tuples, whatever their windows.

A batch is inserted, then each of its tuples probes the retained tuples of the other side, then tuples that no window
can reach any more are invalidated. If r is older than s, they can join if s.t - r.t is at most the range of R, or if
fewer than n tuples of R lie between r and s, including those of the time of s. Tuples of equal times can always join.
The order is by (time, arrival). The answer is therefore the same however tuples in the order of time are divided into
batches, provided that all tuples of both sides with the same time are in one batch (`process_both`). A late tuple joins
what is retained.

A tuple is retained if a new one with the latest time minus `lateness` seconds could still join it.
Paper: Spatial Join CQ, section 6, figure 13.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.regions import Floats
from fishweir.papers.spatialjoin.windows.queries import LEFT, RIGHT, JoinQueries
from fishweir.papers.spatialjoin.windows.side import Ints, Side
from fishweir.papers.spatialjoin.windows.triples import Triples

EVERYTHING = np.iinfo(np.int64).max


class WindowJoin(Protocol):
    """A strategy, including the retained tuples."""

    def process(self, side: int, times: npt.ArrayLike, columns: npt.ArrayLike) -> Triples:
        """Probe, insert, invalidate for tuples of one side (rows x attributes, NaN for NULL)."""
        ...

    def process_both(self, left: Arrivals, right: Arrivals) -> Triples: ...

    def state_size(self) -> int:
        """The number of retained tuples."""
        ...


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A batch of one side in arrival order. `numbers` identify the tuples, ascending from batch to batch."""

    times: Floats
    columns: Floats
    numbers: Ints | None = None

    @classmethod
    def of(cls, times: npt.ArrayLike, columns: npt.ArrayLike, numbers: npt.ArrayLike | None = None) -> Arrivals:
        named = None if numbers is None else np.asarray(numbers, dtype=np.int64)
        return cls(np.asarray(times, dtype=np.float64), np.asarray(columns, dtype=np.float64), named)

    @classmethod
    def none(cls, attributes: int) -> Arrivals:
        return cls(np.empty(0), np.empty((0, attributes)))


@dataclass(frozen=True, slots=True)
class State:
    """The state of a join: the retained tuples, the next number of each side, the latest time seen."""

    left: Arrivals
    right: Arrivals
    next: tuple[int, int]
    clock: float


class SlidingJoin(ABC):
    """Base class. Strategies implement `_remember`, `_probe` and, if they store more than the tuples, `_forget`."""

    def __init__(self, queries: JoinQueries, lateness: float = 0.0) -> None:
        self.queries, self.lateness = queries, lateness
        self.attributes = tuple(boxes.attributes for boxes in queries.selections)
        self.sides = tuple(Side(attributes) for attributes in self.attributes)
        self._clock = -np.inf
        self._next = [0, 0]

    def process(
        self, side: int, times: npt.ArrayLike, columns: npt.ArrayLike, numbers: npt.ArrayLike | None = None
    ) -> Triples:
        arrivals = [Arrivals.none(attributes) for attributes in self.attributes]
        arrivals[side] = Arrivals.of(times, columns, numbers)
        return self.process_both(*arrivals)

    def process_both(self, left: Arrivals, right: Arrivals) -> Triples:
        return Triples.joined(self._run(left, right, np.empty(0, np.int64)))

    def count(self, left: Arrivals, right: Arrivals) -> Ints:
        """Like process_both, but returns only the number of results of each query."""
        counts = np.zeros(self.queries.count, np.int64)
        self._run(left, right, counts)
        return counts

    def state(self) -> State:
        """The state, for a checkpoint or for a join with other queries."""
        kept = []
        for side in self.sides:
            order = np.argsort(side.numbers)
            kept.append(Arrivals(side.times[order], side.columns[side.slots[order]], side.numbers[order]))
        return State(kept[LEFT], kept[RIGHT], (self._next[LEFT], self._next[RIGHT]), self._clock)

    def restore(self, state: State) -> None:
        """Continues from the state of another join. This one must not have seen any tuples."""
        self._insert(LEFT, state.left)
        self._insert(RIGHT, state.right)
        self._next, self._clock = list(state.next), state.clock
        self._invalidate()

    def forget(self, retained: Callable[[Ints], npt.NDArray[np.bool_]]) -> None:
        """Drops the oldest tuples of each side, up to the first one whose number is still retained."""
        for number, side in enumerate(self.sides):
            first = int(np.argmax(np.append(retained(side.numbers), True)))
            self._forget(number, side.drop_before(first))

    def state_size(self) -> int:
        return sum(len(side) for side in self.sides)

    def _run(self, left: Arrivals, right: Arrivals, counts: Ints) -> list[Triples]:
        first_new = tuple(self._insert(side, arrivals) for side, arrivals in ((LEFT, left), (RIGHT, right)))
        parts: list[Triples] = []
        # The right tuple finds the pairs of two new tuples.
        for side, limit in ((LEFT, first_new[RIGHT]), (RIGHT, EVERYTHING)):
            new = np.flatnonzero(self.sides[side].numbers >= first_new[side])
            if len(new) and len(self.sides[1 - side]):
                parts.extend(self._probe(side, new, limit, counts))
        self._invalidate()
        return parts

    def _insert(self, side: int, arrivals: Arrivals) -> int:
        """Inserts a batch and returns its first number."""
        count, first = len(arrivals.times), self._next[side]
        if arrivals.columns.shape != (count, self.attributes[side]):
            wanted = (count, self.attributes[side])
            raise ValueError(f"expected a batch of shape {wanted}, got {arrivals.columns.shape}")
        if not count:
            return first
        if not np.isfinite(arrivals.times).all():
            raise ValueError("a tuple without a time cannot be in a window")
        numbers = arrivals.numbers if arrivals.numbers is not None else np.arange(first, first + count)
        if len(numbers) != count or int(numbers[0]) < first or (np.diff(numbers) <= 0).any():
            raise ValueError("numbers of tuples must ascend in arrival order")
        slots = self.sides[side].insert(arrivals.times, arrivals.columns, numbers)
        self._next[side] = int(numbers[-1]) + 1
        self._clock = max(self._clock, float(arrivals.times.max()))
        self._remember(side, slots)
        return int(numbers[0])

    def _invalidate(self) -> None:
        reach = self.queries.reach
        for number, side in enumerate(self.sides):
            first = len(side)
            if reach.seconds[number] >= 0:
                apart = (self._clock - self.lateness) - side.times
                first = int(np.searchsorted(-apart, -reach.seconds[number]))
            rows = int(reach.rows[number])
            if rows:
                there = int(np.searchsorted(side.times, self._clock - self.lateness, "right"))
                first = min(first, there - rows)
            self._forget(number, side.drop_before(max(0, first)))

    def _remember(self, side: int, slots: Ints) -> None:  # noqa: B027
        """Called when new tuples are in their slots."""

    def _forget(self, side: int, slots: Ints) -> None:  # noqa: B027
        """Called when these slots are free."""

    @abstractmethod
    def _probe(self, side: int, new: Ints, limit: int, counts: Ints) -> list[Triples]:
        """Joins the new tuples of a side (positions in the order of time) with those of the other side numbered below
        the limit.

        If `counts` is not empty, results are counted there and not listed."""
