"""The utility of patterns and shed queries, from a query's preference (utility-driven shedding, section 4).

Numerical preferences are used as given (4.1). The k-th pattern of a ranking has utility 1/2^k (4.2). For patterns
without a preference (4.3): a pattern with patterns below it has the sum of the utilities directly below it; leaves are
equal, each with the smallest given utility divided by 2^w, where w is the number of such leaves. A query's utility is
the sum over its patterns, normalized by that of the original; the empty query's is 0 (4.4).

Preferences by value are the paper's future work. The value of a document is the greatest utility among the conditions
that hold for it. If none holds, it is half of the smallest one, as for a leaf without a preference. The utility of a
shed query for a document is its normalized utility times that value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fishweir.algebra.preferences import Preference, Score
from fishweir.records import dataclass
from fishweir.shedding.patterns import PatternTree


@dataclass(frozen=True, slots=True)
class Utilities:
    """The utility of each pattern of a tree."""

    of: tuple[float, ...]

    def total(self, kept: Iterable[int]) -> float:
        return sum(self.of[pattern] for pattern in kept)

    def normalized(self, kept: Iterable[int]) -> float:
        """The share of the original query's utility; 1 if the original has no utility."""
        whole = sum(self.of)
        return self.total(kept) / whole if whole else 1.0


def utilities(tree: PatternTree, preference: Preference | None) -> Utilities:
    given = dict(_given(tree, preference or Preference()))
    leaves = {i for i in range(len(tree.patterns)) if not tree.children(i)}
    unknown = len(leaves - given.keys())
    least = min(given.values(), default=1.0) / 2**unknown
    of = [0.0] * len(tree.patterns)
    for i in reversed(range(len(tree.patterns))):  # children come after their parents
        below = sum(of[child] for child in tree.children(i))
        of[i] = given.get(i, least if i in leaves else below)
    return Utilities(tuple(of))


def _given(tree: PatternTree, preference: Preference) -> list[tuple[int, float]]:
    ranked = [(names, 1 / 2**k) for k, names in enumerate(preference.ranking, 1)]
    scored = [(score.pattern, score.utility) for score in preference.by_pattern]
    return [(i, worth) for names, worth in (*scored, *ranked) for i in named(tree, names)]


def named(tree: PatternTree, names: Sequence[str]) -> list[int]:
    """The patterns whose paths end with these names."""
    count = len(names)
    return [i for i, pattern in enumerate(tree.patterns) if pattern.names[-count:] == tuple(names)]


def unnamed(tree: PatternTree, preference: Preference) -> list[tuple[str, ...]]:
    """Names in a preference that are not patterns of the query."""
    mentioned = [*(score.pattern for score in preference.by_pattern), *preference.ranking]
    return [names for names in mentioned if not named(tree, names)]


def otherwise(scores: Sequence[Score]) -> float:
    """The value of a document for which no condition of a preference holds."""
    return min((score.utility for score in scores), default=2.0) / 2
