"""The shedding problem (utility-driven shedding, section 5.2): how many elements each shed query gets.

A choice is a vector: x[i] elements are evaluated with candidate i, the remaining ones with the empty query. It
maximizes the sum of utilities, with a cost within the budget and no more elements than there are.
"""

from __future__ import annotations

from collections.abc import Sequence

from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """A shed query other than the empty one: its normalized utility and its cost per element."""

    utility: float
    cost: float


@dataclass(frozen=True, slots=True)
class Choice:
    """Numbers of elements by candidate, and the number of dropped elements."""

    counts: tuple[int, ...]
    dropped: int

    def utility(self, candidates: Sequence[Candidate]) -> float:
        return sum(n * one.utility for n, one in zip(self.counts, candidates, strict=True))

    def cost(self, candidates: Sequence[Candidate]) -> float:
        return sum(n * one.cost for n, one in zip(self.counts, candidates, strict=True))
