"""Decides when a hash join per shape is cheaper than one set of edges for all shapes.

With edge sets, all shapes with one anchor share its lookup and visit each document that has the anchor's value: hits.
With hash joins, each shape has its own lookup and index over all its edges, and visits only its join partners: matches.
Edge sets are better if there are many shapes or if the anchor is selective. Hash joins are better if few shapes share
an anchor with many hits and their other edges leave few of them. In: plain join tables, the statistics. Out: the two
costs.
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
"""Cost of the lookup and the index of a shape, in hits."""


@dataclass(frozen=True, slots=True)
class ShapeCosts:
    """Steps per document."""

    by_shape: float
    by_sets: float


def cheaper_by_shape(tables: Mapping[int, JoinTable], statistics: Statistics) -> list[int]:
    """The positions of the plain tables for which a hash join per shape is cheaper."""
    found: list[int] = []
    for places in by_anchor(tables).values():
        cost = shape_costs([tables[place] for place in places], statistics)
        if cost is not None and cost.by_shape < cost.by_sets:
            found += places
    return sorted(found)


def by_anchor(tables: Mapping[int, JoinTable]) -> dict[Hashable, list[int]]:
    """The positions of tables that are looked up by the same values."""
    grouped: dict[Hashable, list[int]] = defaultdict(list)
    for place, table in tables.items():
        edge = table.template.edges[table.anchor]
        grouped[table.variable(0, edge.left).key, table.variable(1, edge.right).key].append(place)
    return grouped


def shape_costs(tables: Sequence[JoinTable], statistics: Statistics) -> ShapeCosts | None:
    """The costs of tables with one anchor; None if its values have not been counted."""
    anchor = known(tables[0], tables[0].template.edges[tables[0].anchor], statistics)
    if not anchor.count:
        return None
    retained = min(RETAINED, anchor.count)
    matches = sum(retained / min(_combinations(table, statistics), retained) for table in tables)
    return ShapeCosts(SHAPE * len(tables) + matches, SHAPE + retained / anchor.distinct)


def _combinations(table: JoinTable, statistics: Statistics) -> float:
    """Number of distinct combinations of the values of all edges, assuming independence."""
    return math.prod(max(1.0, known(table, edge, statistics).distinct) for edge in table.template.edges)


def known(table: JoinTable, edge: Edge, statistics: Statistics) -> PathStatistics:
    """The statistics of the more selective end of an edge."""
    found = (statistics.get(key, PathStatistics()) for key in edge_keys(table, edge))
    return max(found, key=lambda one: one.distinct)


def edge_keys(table: JoinTable, edge: Edge) -> tuple[str, ...]:
    """The keys of the statistics for both ends of an edge."""
    sides = ((table.template.left, edge.left), (table.template.right, edge.right))
    return tuple(path_key(side.source, dotted(side.path(node))) for side, node in sides)
