"""When a hash join per shape is cheaper than one set of edges for all (cost per shape against cost per set).

By sets, all shapes with one anchor share its look-up and visit each document that has the anchor's value: hits. By
shape, each has a look-up and an index of its own, over all its edges at once, and visits the documents it joins with:
matches. So sets are better where shapes are many or the anchor is selective, shapes where few of them share an anchor
with many hits of which their other edges leave little. In: plain join tables, the statistics. Out: the two costs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from fishweir.algebra.joins import Edge
from fishweir.algebra.normal import dotted
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.placement import RETAINED
from fishweir.evaluate.statistics import PathStatistics, Statistics, path_key

SHAPE = 128
"""Hits that cost as much as the look-up and the index of a shape."""


@dataclass(frozen=True, slots=True)
class ShapeCosts:
    """Steps per document."""

    by_shape: float
    by_sets: float


def cheaper_by_shape(tables: Mapping[int, JoinTable], statistics: Statistics) -> list[int]:
    """The places of the plain tables that are."""
    found: list[int] = []
    for places in by_anchor(tables).values():
        cost = shape_costs([tables[place] for place in places], statistics)
        if cost is not None and cost.by_shape < cost.by_sets:
            found += places
    return sorted(found)


def by_anchor(tables: Mapping[int, JoinTable]) -> dict[Hashable, list[int]]:
    """Places of tables that are looked up by the same values."""
    grouped: dict[Hashable, list[int]] = defaultdict(list)
    for place, table in tables.items():
        edge = table.template.edges[table.anchor]
        grouped[table.variable(0, edge.left).key, table.variable(1, edge.right).key].append(place)
    return grouped


def shape_costs(tables: Sequence[JoinTable], statistics: Statistics) -> ShapeCosts | None:
    """Of tables with one anchor; None where its values have not been counted."""
    anchor = known(tables[0], tables[0].template.edges[tables[0].anchor], statistics)
    if not anchor.count:
        return None
    retained = min(RETAINED, anchor.count)
    matches = sum(retained / min(_combinations(table, statistics), retained) for table in tables)
    return ShapeCosts(SHAPE * len(tables) + matches, SHAPE + retained / anchor.distinct)


def _combinations(table: JoinTable, statistics: Statistics) -> float:
    """Distinct values of all edges together, if they are independent."""
    return math.prod(max(1.0, known(table, edge, statistics).distinct) for edge in table.template.edges)


def known(table: JoinTable, edge: Edge, statistics: Statistics) -> PathStatistics:
    """What is known of the more selective end of an edge."""
    found = (statistics.get(key, PathStatistics()) for key in edge_keys(table, edge))
    return max(found, key=lambda one: one.distinct)


def edge_keys(table: JoinTable, edge: Edge) -> tuple[str, ...]:
    """What the statistics have of either end of an edge."""
    sides = ((table.template.left, edge.left), (table.template.right, edge.right))
    return tuple(path_key(side.source, dotted(side.path(node))) for side, node in sides)
