"""Rank coordinates: divide each attribute at every end of a range.

In: query regions in keys. Out: the sorted cuts of each attribute. A range [low, high] becomes ranks [first, last), and
a tuple's key becomes one rank. A rank is entirely inside or entirely outside every range, so comparing ranks is exact.
Shared: equal ends are one cut, regardless of their queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.regions import HIGHEST, LOWEST, Keys

Ranks = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class RankSpace:
    """One attribute: rank r represents the keys in [cuts[r - 1], cuts[r])."""

    cuts: Keys
    first: Ranks
    last: Ranks

    @classmethod
    def of(cls, low: Keys, high: Keys) -> RankSpace:
        bounded = ((low != LOWEST) | (high != HIGHEST)) & (low <= high)
        ends = np.sort(np.concatenate((low[bounded], high[bounded] + 1)))  # np.unique's hash set is much slower
        cuts = ends[np.diff(ends, prepend=LOWEST) != 0]
        first = np.zeros(len(low), dtype=np.int32)
        last = np.full(len(low), len(cuts) + 1, dtype=np.int32)
        last[low > high] = 0
        first[bounded] = np.searchsorted(cuts, low[bounded], side="right")
        last[bounded] = np.searchsorted(cuts, high[bounded] + 1, side="right")
        return cls(cuts, first, last)

    @property
    def size(self) -> int:
        return len(self.cuts) + 1

    def rank(self, keys: Keys) -> Ranks:
        return np.searchsorted(self.cuts, keys, side="right").astype(np.int32)
