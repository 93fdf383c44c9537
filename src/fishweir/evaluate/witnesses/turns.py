"""Turns: which paths are suspended, document by document.

In: how many documents in a row a set of paths is suspended for, one set after the other. Out: for the number of a
document in its stream, whose turn it is. When all have had their turn, the first begins again. It is the switching
between shed queries by counters (utility-driven shedding, section 6.3): <60, 10, 20> topmost elements, each a document
here. The counter is the document's number, not one of the walk, so a repeated micro-batch, or one cut otherwise into
tasks, suspends the same paths in the same documents.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from fishweir.evaluate.witnesses.path_tables import Path


@dataclass(frozen=True)
class Turns:
    """Turn i: `suspended[i]` are the paths that are not looked for in `counts[i]` documents."""

    counts: tuple[int, ...]
    suspended: tuple[frozenset[Path], ...]

    @cached_property
    def _ends(self) -> Sequence[int]:
        return tuple(accumulate(self.counts))

    def at(self, number: int) -> int:
        """Whose turn the document with this number is."""
        return bisect_right(self._ends, number % self._ends[-1])


EVERYTHING = Turns((1,), (frozenset(),))
"""Nothing is suspended."""
