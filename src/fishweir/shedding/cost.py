"""The cost model of XML streams (utility-driven shedding, section 3): the cost of a shed query per topmost element.

    UPC = ULC + UBC + UMC

- **Locating** (ULC): each start tag that leads to a state costs `transit`, any other one `null`, each end tag
  `backtrack` (equations 1 and 2). Cutting off a state turns its tags from the first kind into the second (3 and 4).
- **Buffering** (UBC): the tokens of the storing pattern set. It consists of the topmost kept patterns, since those
  below them are stored with them (equation 5, figure 6).
- **Manipulation** (UMC): a comparison for each node that a condition reads, and the structural join, a reference for
  each returned node, for the share of elements that pass the conditions. So removing a selection pattern may cost more
  than it saves, because then all elements pass.

In: counts per topmost element, collected by the walk, and constants of the machine. Out: a cost for each shed query.
"""

from __future__ import annotations

from collections.abc import Iterable

from fishweir.records import dataclass
from fishweir.shedding.patterns import PatternTree


@dataclass(frozen=True, slots=True)
class Constants:
    """Seconds, or any other unit, per elementary operation."""

    transit: float
    null: float
    backtrack: float
    buffer: float
    compare: float = 0.0
    join: float = 0.0


@dataclass(frozen=True, slots=True)
class PatternCounts:
    """For one pattern, per topmost element: its elements, the tokens in each, the start tags that activate its
    states.
    """

    elements: float
    tokens: float
    active: float
    selectivity: float = 1.0
    """The share of topmost elements for which the pattern's conditions hold."""


@dataclass(frozen=True, slots=True)
class ElementCounts:
    """For a topmost element: all its start tags, those that lead to the root's states, and its patterns."""

    start_tags: float
    root_active: float
    patterns: tuple[PatternCounts, ...]


def storing_set(tree: PatternTree, kept: Iterable[int]) -> frozenset[int]:
    """The topmost of the kept patterns: those below them are stored with them (figure 6)."""
    patterns = frozenset(kept)
    return frozenset(i for i in patterns if tree.patterns[i].parent not in patterns)


def locating(counts: ElementCounts, kept: Iterable[int], cost: Constants) -> float:
    """ULC: equations 1 and 2."""
    active = counts.root_active + sum(counts.patterns[i].active for i in kept)
    found = active * (cost.transit + cost.backtrack)
    return found + (counts.start_tags - active) * (cost.null + cost.backtrack)


def buffering(tree: PatternTree, counts: ElementCounts, kept: Iterable[int], cost: Constants) -> float:
    """UBC: equation 5."""
    stored = (counts.patterns[i] for i in storing_set(tree, kept))
    return sum(pattern.elements * pattern.tokens for pattern in stored) * cost.buffer


def manipulation(tree: PatternTree, counts: ElementCounts, kept: Iterable[int], cost: Constants) -> float:
    """UMC: conditions for all elements, the join for those that pass."""
    patterns = list(kept)
    selected = [i for i in patterns if tree.patterns[i].selected]
    passing = 1.0
    for i in selected:
        passing *= counts.patterns[i].selectivity
    compared = sum(counts.patterns[i].elements for i in selected) * cost.compare
    returned = sum(counts.patterns[i].elements for i in patterns if tree.patterns[i].returned)
    return compared + passing * returned * cost.join


def unit_cost(tree: PatternTree, counts: ElementCounts, kept: Iterable[int], cost: Constants) -> float:
    """UPC of a topmost element; the empty query costs nothing, as in section 5.2."""
    patterns = frozenset(kept)
    if not patterns:
        return 0.0
    located = locating(counts, patterns, cost)
    return located + buffering(tree, counts, patterns, cost) + manipulation(tree, counts, patterns, cost)


def saved_locating(counts: ElementCounts, removed: Iterable[int], cost: Constants) -> float:
    """The savings from cutting off patterns: equation 3 minus equation 4."""
    return sum(counts.patterns[i].active for i in removed) * (cost.transit - cost.null)
