"""Places selections below or above the join (NiagaraCQ 3.5), by a cost model.

Below: each document is looked up in the constants of both sides' queries, and its row lists the queries that it
satisfies. A pair satisfies the queries that both rows list, which costs at most one word per 64 queries. Above: a row
has the values that the constants are compared with, and the constants are looked up for the joined pairs, as regions
(rows/pair_regions.py): a hash join of one shape. Below is better if constants let few documents through, or if there
are many pairs. Above is better if many queries share a join that leaves few pairs and a document satisfies many of
them, since the lists of rows are written, and rewritten when states are merged.

In: a join template, its queries' constants, the statistics. Out: the two costs. The choice is made when a query is
first planned, like the choice of the anchor: it determines the form in which rows are retained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.normal import ConstantCondition, Template, dotted
from fishweir.algebra.values import COMPARE
from fishweir.evaluate.arrays import Column
from fishweir.evaluate.select.anchors import anchors, selectivity
from fishweir.evaluate.statistics import PathStatistics, Statistics, path_key

SHARED = 64
"""Minimum number of queries of a template over columns for placement above. Fewer share the rows of their join
signature."""
REGIONS = 4
"""Cost of a lookup among regions, in ordinary lookups."""
LISTED = 4
"""Steps for each query in the list of a row: it is looked up, sorted, written with the row and at every merge."""
RETAINED = 100_000
"""Cap on the number of retained documents of a side that the cost model assumes."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Steps per document for either placement."""

    below: float
    above: float

    @property
    def is_above(self) -> bool:
        return self.above < self.below


def is_movable(template: JoinTemplate) -> bool:
    """Whether the constants can be checked on pairs: they must be compared with a number or with the hash of a text."""
    conditions = [c for side in template.sides for c in side.conditions]
    if any(side.absent for side in template.sides):
        return False
    return bool(conditions) and all(
        isinstance(c, ConstantCondition)
        and c.part == "value"
        and c.op in COMPARE
        and (c.type == "number" or (c.type == "string" and c.op in ("=", "!=")))
        for c in conditions
    )


def costs(template: JoinTemplate, anchor: int, columns: Sequence[Column], statistics: Statistics) -> Costs:
    """The cost of a document with the queries of one table, averaged over both sides."""
    queries = len(columns[0]) if columns else 0
    partners = _expected_partners(template, anchor, statistics)
    first = len(template.left.types)
    parts = columns[:first], columns[first : first + len(template.right.types)]
    shares = [_shares(side, list(own), statistics) for side, own in zip(template.sides, parts, strict=True)]
    listed = [queries * math.prod(some) for some in shares]
    passing = math.prod(min(1.0, many) for many in listed)
    look_up = math.log2(queries + 2)
    below = sum(look_up + LISTED * many for many, some in zip(listed, shares, strict=True) if some)
    both = min(queries / 64, sum(many for many, some in zip(listed, shares, strict=True) if some))
    satisfied = queries * math.prod(share for some in shares for share in some)
    return Costs(below / 2 + partners * passing * (1 + both), 1 + partners * (REGIONS * look_up + satisfied))


def _expected_partners(template: JoinTemplate, anchor: int, statistics: Statistics) -> float:
    """Average number of documents of the other side that share a document's anchor value; 1 if unknown."""
    if anchor < 0:
        return RETAINED
    if not is_counted(template, anchor, statistics):
        return 1.0
    known = [_known(side, template, anchor, statistics) for side in (0, 1)]
    return min(RETAINED, max(k.count for k in known)) / max(k.distinct for k in known)


def is_counted(template: JoinTemplate, anchor: int, statistics: Statistics) -> bool:
    """Whether the documents of both sides have been counted."""
    return anchor >= 0 and all(_known(side, template, anchor, statistics).count for side in (0, 1))


def is_better_above(template: JoinTemplate, anchor: int, columns: Sequence[Column], statistics: Statistics) -> bool:
    if not is_movable(template) or (template.left.columns and len(columns[0]) < SHARED):
        return False
    return costs(template, anchor, columns, statistics).is_above


def _known(side: int, template: JoinTemplate, anchor: int, statistics: Statistics) -> PathStatistics:
    edge, own = template.edges[anchor], template.sides[side]
    node = edge.right if side else edge.left
    return statistics.get(path_key(own.source, dotted(own.path(node))), PathStatistics())


def _shares(side: Template, columns: list[Column], statistics: Statistics) -> list[float]:
    """The share of documents that satisfies an average query, for each of its conditions."""
    return [selectivity(anchor, side, columns, statistics) for anchor in anchors(side)]
