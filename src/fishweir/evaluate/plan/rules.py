"""Rules that choose the strategy for each group: one tuple, tried in order, for every segment that is written.

A rule takes the groups that it evaluates best; the next rule gets the rest. The order and its reasons:

1. Regions, before twigs and anchors: if queries have conditions on several attributes and each attribute alone leaves
   many candidates, a lookup by all attributes is cheaper. The rule estimates when it pays (select/region_rule.py).
2. Twigs: many small tables with a pattern each, for which an index over few constants is not worthwhile.
3. The anchor: one lookup per value; the other conditions are checked on the candidates. It takes every table.
4. The factorized filter plan: it takes every source's filters.
5. Hash joins per shape, before edge sets: if few shapes share an anchor value that many documents have, a lookup by
   all edges is cheaper. The rule compares the cost per shape with the cost per set (join/shape_rule.py).
6. Edge sets, before rows: a join of two streams by equality alone is decided by a set of bits per pair.
7. Rows: every other join of two streams.
8. The multiway join: joins of more streams.
9. Windows: joins that collect, which no earlier rule takes (annotation joins).
10. The first of each: `distinct`, around groups for which rules 1 to 4 choose.

A strategy that is requested by name comes before all of these and takes every group that it can evaluate.
"""

from __future__ import annotations

from collections.abc import Sequence

from fishweir.evaluate.bundles import requested_strategy, to_bundles
from fishweir.evaluate.distinct.kind import FirstOfEach
from fishweir.evaluate.group import Bundle, Group, Strategy
from fishweir.evaluate.join.kind import ByEdgeSets, ByMultiwayJoin, ByRows, ByShape, ByWindows
from fishweir.evaluate.select.rules import SELECTING
from fishweir.evaluate.statistics import Statistics

RULES: tuple[Strategy, ...] = (
    *SELECTING,
    ByShape(),
    ByEdgeSets(),
    ByRows(),
    ByMultiwayJoin(),
    ByWindows(),
    FirstOfEach(),
)

_BY_NAME = {rule.name: rule for rule in RULES}


def register_rule(strategy: Strategy) -> None:
    """Adds the strategy of a kind that is not built in."""
    _BY_NAME[strategy.name] = strategy


def choose_strategies(
    groups: Sequence[Group], statistics: Statistics, requested: Sequence[Strategy] = (), outline: bool = False
) -> tuple[Bundle, ...]:
    """The bundles of a segment, or their outline. Every group is in one bundle."""
    return to_bundles(dict(enumerate(groups)), (*requested, *_BY_NAME.values()), statistics, outline)


def strategy_of(bundle: Bundle) -> Strategy:
    """The strategy that a segment names."""
    return requested_strategy(bundle) or _BY_NAME[bundle.strategy]
