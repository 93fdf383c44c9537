"""The results of a window join: pairs of tuples, each with the queries that it satisfies.

The queries of pair p are numbers[offsets[p]:offsets[p + 1]] (CSR): a pair that satisfies a thousand queries is one row.
Tuples are identified by their numbers in arrival order. The order of pairs, and of a pair's queries, depends on the
strategy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.matches import Numbers, Offsets

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Triples:
    left: Ints
    right: Ints
    offsets: Offsets
    numbers: Numbers

    def __len__(self) -> int:
        """The number of triples."""
        return len(self.numbers)

    @property
    def pairs(self) -> int:
        return len(self.left)

    def expanded(self) -> tuple[Numbers, Ints, Ints]:
        """Columns (query, tuple of R, tuple of S), one row per triple."""
        lengths = np.diff(self.offsets)
        return self.numbers, np.repeat(self.left, lengths), np.repeat(self.right, lengths)

    @classmethod
    def joined(cls, parts: Sequence[Triples]) -> Triples:
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.int32))
        before = np.concatenate(([0], np.cumsum([len(part) for part in parts])))
        offsets = [part.offsets[1:] + b for part, b in zip(parts, before[:-1], strict=True)]
        return cls(
            np.concatenate([part.left for part in parts]),
            np.concatenate([part.right for part in parts]),
            np.concatenate((np.zeros(1, np.int64), *offsets)),
            np.concatenate([part.numbers for part in parts]),
        )
