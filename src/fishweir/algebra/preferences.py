"""Preferences: how much the parts of a query's results matter, as declared by its author.

`pref v(name) = 0.2, v(tel) = 0.1` assigns numbers (the numerical preference model of utility-driven shedding, section
4.1), `pref name > price > tel` an order (the prioritized one, 4.2). A condition makes a preference depend on values:
`v(order[price > 1000]) = 0.9` is the utility of documents with such an order, and `pref price > 1000` prefers documents
or tuples that satisfy it. A pattern is named by the end of its path. `shedding/utility.py` turns preferences into
utilities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishweir.records import dataclass

if TYPE_CHECKING:
    from fishweir.algebra.nodes import Constant


@dataclass(frozen=True, slots=True)
class ValueCondition:
    """Some value at a path of names satisfies the comparison."""

    path: tuple[str, ...]
    op: str
    constant: Constant


@dataclass(frozen=True, slots=True)
class Score:
    """The utility of a pattern; with a condition, of documents where the condition holds below it."""

    pattern: tuple[str, ...]
    utility: float
    condition: ValueCondition | None = None


@dataclass(frozen=True, slots=True)
class Preference:
    """Scores or a ranking, most preferred first; in addition, scores of documents by value."""

    scores: tuple[Score, ...] = ()
    ranking: tuple[tuple[str, ...], ...] = ()

    @property
    def by_value(self) -> tuple[Score, ...]:
        return tuple(score for score in self.scores if score.condition is not None)

    @property
    def by_pattern(self) -> tuple[Score, ...]:
        return tuple(score for score in self.scores if score.condition is None)
