"""Turns: which paths are suspended, document by document or element by element.

In: how many documents in a row a set of paths is suspended for, one set after the other. Out: for the number of a
document in its stream, whose turn it is. When all have had their turn, the first begins again. It is the switching
between shed queries by counters (utility-driven shedding, section 6.3): <60, 10, 20> topmost elements. Such an element
is a document here, or one of many elements of a document (`ElementTurns`). The counter is the number of the document,
or of the element in it, not one of the walk, so a repeated micro-batch, or one cut otherwise into tasks, suspends the
same paths in the same places.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from fishweir.evaluate.jit import lean_kernel
from fishweir.evaluate.witnesses.path_tables import Path

WHOLE_RANGE = 1 << 32
"""Turns of elements are ranges of a 32-bit number that is made of the numbers of a document and an element."""


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


@dataclass(frozen=True)
class ElementTurns:
    """Turns within documents: at each element at the path `unit`, a list of names, the walk switches. Turn i is taken
    by elements below `ends[i]` of the range; those beyond the last one are left out as a whole."""

    unit: tuple[str, ...]
    ends: tuple[int, ...]
    suspended: tuple[frozenset[Path], ...]


EVERYTHING = Turns((1,), (frozenset(),))
"""Nothing is suspended."""


@lean_kernel
def turn_at(number: int, node: int, ends: Any) -> int:
    """Whose turn an element of a document is, by their numbers; `len(ends)` where it is left out."""
    mixed = (number * 0x9E3779B1 + node * 0x85EBCA77) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 12)) * 0x297A2D39) & 0xFFFFFFFF
    mixed ^= mixed >> 15
    turn = 0
    while turn < len(ends) and mixed >= ends[turn]:
        turn += 1
    return turn
