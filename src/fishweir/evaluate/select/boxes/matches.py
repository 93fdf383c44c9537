"""The queries that each tuple of a batch satisfies.

The numbers of tuple t are numbers[offsets[t]:offsets[t + 1]] (CSR). Their order within a tuple is determined by the
index and is the same for the same set. A tuple may satisfy most queries, so a result can be requested in parts: an
index stops when the given room is used up, and reports which tuples are done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fishweir.jit import kernel

Numbers = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

TUPLES_TO_GO_BY = 32

Step = Callable[[int, int, Numbers, Offsets], tuple[int, int]]
"""(first tuple, position, numbers, offsets) -> (first tuple not done for lack of room, position)."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The satisfied queries of each tuple as CSR."""

    offsets: Offsets
    numbers: Numbers
    order: npt.NDArray[np.intp] | None = None
    """The tuple of each row, unless the rows are the first tuples of the batch in order."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, row: int) -> Numbers:
        return self.numbers[self.offsets[row] : self.offsets[row + 1]]

    @property
    def tuples(self) -> npt.NDArray[np.intp]:
        """The tuple of each row."""
        return np.arange(len(self)) if self.order is None else self.order

    def tuple_numbers(self) -> npt.NDArray[np.int64]:
        """The row of each entry of `numbers`; together they are the pairs of the join."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def ascending(self) -> Matches:
        """The same matches, with the numbers of each tuple in ascending order."""
        order = np.lexsort((self.numbers, self.tuple_numbers()))
        return Matches(self.offsets, self.numbers[order], self.order)

    def kept(self, keep: npt.NDArray[np.bool_]) -> Matches:
        """Only the given entries, after a refinement of the pairs."""
        before = np.concatenate(([0], np.cumsum(keep)))
        return Matches(before[self.offsets], self.numbers[keep], self.order)

    def in_order(self) -> Matches:
        """The same matches, with rows in the order of the tuples."""
        if self.order is None:
            return self
        back = np.argsort(self.order)
        tuples = self.order[back]
        offsets, numbers = np.zeros_like(self.offsets), np.empty_like(self.numbers)
        copy_runs(self.numbers, self.offsets, back, numbers, offsets)
        first = not len(tuples) or tuples[-1] == len(tuples) - 1
        return Matches(offsets, numbers, None if first else tuples)

    @classmethod
    def from_lists(cls, lists: list[npt.NDArray[np.integer]]) -> Matches:
        offsets = np.concatenate(([0], np.cumsum([len(part) for part in lists], dtype=np.int64)))
        numbers = np.concatenate(lists) if lists else np.empty(0)
        return cls(offsets.astype(np.int64), numbers.astype(np.int32))

    @classmethod
    def from_kernel(cls, step: Step, count: int, most: int, room: int | None = None, guess: float = 2.0) -> Matches:
        """Runs a kernel until its room is used up, then provides room for the estimated rest.

        `most` is the maximum that a single tuple may need; a kernel stops if less than that is left. With a given
        `room`, it is called only once, and the result has as many tuples as fit, at least one. `guess` is the expected
        average per tuple.
        """
        offsets = np.zeros(count + 1, dtype=np.int64)
        numbers = np.empty((int(guess * count) if room is None else room) + most, dtype=np.int32)
        done, position = step(0, 0, numbers, offsets)
        while done < count and room is None:
            # Too few tuples predict little about the rest, and a second copy costs more than some unused room.
            expected = int(1.1 * position / done * count) if done >= TUPLES_TO_GO_BY else 0
            wider = np.empty(max(4 * len(numbers), expected + most), dtype=np.int32)
            wider[:position] = numbers[:position]
            numbers = wider
            done, position = step(done, position, numbers, offsets)
        return cls(offsets[: done + 1], numbers[:position])


@kernel
def copy_runs(numbers: Any, offsets: Any, rows: Any, copied: Any, ends: Any) -> None:
    """Copies the numbers of some rows one after the other."""
    to = 0
    for i in range(len(rows)):
        for place in range(offsets[rows[i]], offsets[rows[i] + 1]):
            copied[to] = numbers[place]
            to += 1
        ends[i + 1] = to


@dataclass(frozen=True, slots=True)
class BitMatches:
    """One bitmap per tuple: bit q % 64 of words[t, q // 64] is set if tuple t satisfies query q."""

    words: Words
    queries: int

    def __len__(self) -> int:
        return len(self.words)

    def counts(self) -> npt.NDArray[np.int64]:
        return np.bitwise_count(self.words).sum(axis=1, dtype=np.int64)

    def of(self, row: int) -> Numbers:
        bits = np.unpackbits(self.words[row].view(np.uint8), count=self.queries, bitorder="little")
        return np.flatnonzero(bits).astype(np.int32)

    def distinct(self) -> tuple[BitMatches, npt.NDArray[np.intp]]:
        """The distinct sets of queries, and for each tuple the index of its set."""
        if not self.queries:
            return BitMatches(self.words[:1], 0), np.zeros(len(self), dtype=np.intp)
        as_bytes = np.ascontiguousarray(self.words).view(np.dtype((np.void, self.words.shape[1] * 8))).ravel()
        _, first, which = np.unique(as_bytes, return_index=True, return_inverse=True)
        return BitMatches(self.words[first], self.queries), which

    def csr(self) -> Matches:
        return Matches.from_lists([self.of(row) for row in range(len(self))])
