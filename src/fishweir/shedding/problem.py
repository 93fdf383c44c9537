"""The shedding problem (utility-driven shedding, section 5.2): how many elements are given to each shed query.

A choice is a vector: x[i] elements are run with candidate i, and what is left over with the empty query. It maximizes
the sum of utilities while its cost stays within the budget and it takes no more elements than there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """A shed query other than the empty one: its normalized utility and its cost per element."""

    utility: float
    cost: float


@dataclass(frozen=True, slots=True)
class Choice:
    """Elements by candidate, and those that are dropped."""

    counts: tuple[int, ...]
    dropped: int

    def utility(self, candidates: Sequence[Candidate]) -> float:
        return sum(n * one.utility for n, one in zip(self.counts, candidates, strict=True))

    def cost(self, candidates: Sequence[Candidate]) -> float:
        return sum(n * one.cost for n, one in zip(self.counts, candidates, strict=True))
