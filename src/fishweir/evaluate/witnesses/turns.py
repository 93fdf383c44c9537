"""Turns: which paths are suspended, by document or by element.

In: sets of paths, each with the number of consecutive documents it is suspended for. Out: the turn of a document, by
its number in the stream. After the last turn, the first one starts again. This implements the switching between shed
queries by counters (utility-driven shedding, section 6.3): <60, 10, 20> topmost elements. A topmost element is a
document here, or one of many elements of a document (`ElementTurns`). The counter is the number of the document, or of
the element in it, and not a counter of the walk. A repeated micro-batch, or one divided differently into tasks,
therefore suspends the same paths in the same places.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from fishweir.evaluate.witnesses.path_tables import Path
from fishweir.jit import lean_kernel

WHOLE_RANGE = 1 << 32
"""Turns of elements are ranges of a 32-bit number that is computed from the numbers of the document and the element."""


@dataclass(frozen=True)
class Turns:
    """In turn i, the paths `suspended[i]` are not evaluated in `counts[i]` documents."""

    counts: tuple[int, ...]
    suspended: tuple[frozenset[Path], ...]

    @cached_property
    def _ends(self) -> Sequence[int]:
        return tuple(accumulate(self.counts))

    def at(self, number: int) -> int:
        """The turn of the document with this number."""
        return bisect_right(self._ends, number % self._ends[-1])


@dataclass(frozen=True)
class ElementTurns:
    """Turns within documents. The walk switches at each element on the path `unit`, a list of names. Turn i applies to
    elements below `ends[i]` in the range. Elements beyond the last turn are left out entirely."""

    unit: tuple[str, ...]
    ends: tuple[int, ...]
    suspended: tuple[frozenset[Path], ...]


EVERYTHING = Turns((1,), (frozenset(),))
"""A single turn in which nothing is suspended."""


@lean_kernel
def turn_at(number: int, node: int, ends: Any) -> int:
    """The turn of an element of a document, by their numbers; `len(ends)` if the element is left out."""
    mixed = (number * 0x9E3779B1 + node * 0x85EBCA77) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 12)) * 0x297A2D39) & 0xFFFFFFFF
    mixed ^= mixed >> 15
    turn = 0
    while turn < len(ends) and mixed >= ends[turn]:
        turn += 1
    return turn
