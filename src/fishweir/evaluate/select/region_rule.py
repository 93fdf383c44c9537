"""Region sets: decides which tables of a segment are evaluated together as boxes, and by which kernel.

In: the tables of a segment, and the statistics. Out: sets of regions. A table with one anchor enumerates all queries
that the anchor lets through and checks their other conditions pair by pair. A set of regions compares a tuple with all
its queries on all attributes at once (regions.py, boxes/).

The rule: a table qualifies if it has sides of regions on at least two attributes. Flat templates of one source (tuples,
and items without nesting) go into one set, regardless of their attributes and operators, since a region may leave an
attribute unconstrained. Any other template forms its own set. Among the qualifying tables,

- a table of `SMALL` queries or more keeps its anchor if the anchor lets through fewer than `FEW` queries per value, as
  equality with one of many constants does;
- the others become regions if they have `SMALL` queries together and regions cost less: the anchors cost
  `NS_PER_TABLE` per table and `NS_PER_CANDIDATE` for each query let through, the regions cost `NS_PER_ATTRIBUTE` per
  attribute plus the time of the grid of bitmaps for their number. The grid is the more expensive kernel if few
  queries match.

The number of queries that an anchor lets through is estimated from the statistics. Without statistics, equality is
estimated from the number of distinct constants, and other conditions by operator. `boxes/choose.py` then chooses the
kernel, with tuples drawn from the sampled values of each path, or from the constants if some path has no sample. The
choice of the kernel is repeated whenever the segment is written, and that of the tables whenever twice as many values
have been counted, from 1,000 on. They affect how queries are evaluated, but not their groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fishweir.algebra.normal import Template, dotted
from fishweir.evaluate.select.anchors import selectivity
from fishweir.evaluate.select.boxes import HasDetail
from fishweir.evaluate.select.boxes.choose import SAMPLE, choose, grid_work, sample_from_queries
from fishweir.evaluate.select.boxes.regions import Floats
from fishweir.evaluate.select.constant_tables import Table
from fishweir.evaluate.select.regions import RegionSet, attribute_count, is_flat
from fishweir.evaluate.statistics import PathStatistics, Statistics, path_key
from fishweir.evaluate.witnesses.path_tables import PathTable

SMALL = 512
FEW = 8
NS_PER_TABLE = 300.0
NS_PER_CANDIDATE = 60.0
NS_PER_ATTRIBUTE = 150.0


RegionChoice = tuple[tuple[int, ...], str, Mapping[str, Any]]
"""The places of the tables in the segment, the kernel, and the arrays of its index, if it can be stored."""


def choose_regions(
    tables: Mapping[int, Table], statistics: Statistics, kernel: str | None = None
) -> list[RegionChoice]:
    """The region sets that are worthwhile; with a given kernel, all possible region sets, evaluated by that kernel."""
    if kernel is not None:
        return [(places, kernel, {}) for places in region_places(tables, statistics, every=True)]
    return [_with_kernel(tables, places, statistics) for places in region_places(tables, statistics)]


def region_places(tables: Mapping[int, Table], statistics: Statistics, every: bool = False) -> list[tuple[int, ...]]:
    """The places of the tables of each worthwhile region set, or of every possible one."""
    grouped: dict[Hashable, list[int]] = defaultdict(list)
    for place, table in tables.items():
        if attribute_count(table.template) > 1:
            grouped[_together(table.template)].append(place)
    if every:
        return [tuple(places) for places in grouped.values()]
    found = (_worthwhile(tables, places, statistics) for places in grouped.values())
    return [places for places in found if places]


def _together(template: Template) -> Hashable:
    return (template.source, template.columns) if is_flat(template) else template


def _worthwhile(tables: Mapping[int, Table], places: Sequence[int], statistics: Statistics) -> tuple[int, ...]:
    """Those of some tables that become regions."""
    if sum(tables[i].size for i in places) < SMALL:
        return ()
    let_through = {i: candidates(tables[i], statistics) for i in places}
    chosen = tuple(i for i in places if tables[i].size < SMALL or let_through[i] >= FEW)
    if not chosen or sum(tables[i].size for i in chosen) < SMALL:
        return ()
    region_set = RegionSet(tuple(tables[i] for i in chosen), chosen, "grid")
    behind_anchors = sum(NS_PER_TABLE + NS_PER_CANDIDATE * let_through[i] for i in chosen)
    attributes = len(region_set.attributes)
    is_cheaper = behind_anchors >= NS_PER_ATTRIBUTE * attributes + grid_work(region_set.size, attributes)
    return chosen if is_cheaper else ()


def _with_kernel(tables: Mapping[int, Table], places: tuple[int, ...], statistics: Statistics) -> RegionChoice:
    region_set = RegionSet(tuple(tables[i] for i in places), places, "grid")
    choice = choose(region_set.boxes, sampled(region_set, statistics))
    return places, choice.strategy, choice.index.arrays()


def candidates(table: Table, statistics: Statistics) -> float:
    """The number of queries that the anchor of a table lets through for one value."""
    template, anchor = table.template, table.anchor
    if not anchor.conditions:
        return float(table.size)
    known = statistics.get(path_key(template.source, dotted(template.path(anchor.node))), PathStatistics())
    if not known.count and [template.constants[i].op for i in anchor.conditions] == ["="]:
        return table.size / len(table.anchor_constants)
    return table.size * selectivity(anchor, template, list(table.columns), statistics)


def kernel_detail(region_set: RegionSet, statistics: Statistics) -> str:
    """Details reported by the kernel for a batch of sampled tuples; empty for most kernels."""
    if not isinstance(region_set.index, HasDetail):
        return ""
    values = sampled(region_set, statistics)
    return region_set.index.detail(sample_from_queries(region_set.boxes) if values is None else values)


def sampled(region_set: RegionSet, statistics: Statistics) -> Floats | None:
    """Plausible tuples: a sampled value for each path, drawn independently."""
    known = [statistics.get(path_key(region_set.source, dotted(path)), PathStatistics()) for path in region_set.paths]
    if not all(known[attribute.place].sample for attribute in region_set.attributes):
        return None
    random = np.random.default_rng(0)
    tables = [_values(random.choice(some.sample, SAMPLE).tolist() if some.sample else []) for some in known]
    return region_set.values(tables, [None] * len(tables), SAMPLE)


def _values(texts: list[str]) -> PathTable:
    nodes = np.zeros((len(texts), 1), np.int64)
    return PathTable(np.arange(len(texts)), nodes, pa.array(texts, pa.large_string()))
