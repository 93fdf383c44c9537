"""The engine's joins of tuples as window join queries of Spatial Join CQ.

In: join tables over one pair of streams. Out: which columns of each stream are attributes, and the queries: a region
over the attributes of each side, comparisons between both, windows in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fishweir.algebra.normal import Template
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.select.boxes import Boxes
from fishweir.evaluate.select.boxes.regions import HIGHEST, LOWEST, float_keys
from fishweir.evaluate.select.regions import cut, is_side, required
from fishweir.evaluate.witnesses.path_tables import Path
from fishweir.papers.spatialjoin.windows import OPERATORS, Comparisons, JoinQueries

COMPARED = tuple(op for op in OPERATORS if op != "=")
"""Equality in the engine is that of texts, which these joins do not have."""


def is_published(table: JoinTable) -> bool:
    """Whether a join is one of the paper's: two streams, tuples, numbers, ranges, seconds."""
    template = table.template
    if not table.is_of_two:
        return False
    compared = [{edge.left for edge in template.edges}, {edge.right for edge in template.edges}]
    return (
        bool(template.edges)
        and all(edge.op in COMPARED for edge in template.edges)
        and not template.strict
        and not any(template.counts_rows)
        and all(_is_region(side, nodes) for side, nodes in zip(template.sides, compared, strict=True))
    )


def _is_region(side: Template, compared: set[int]) -> bool:
    ranges = all(is_side(c) and c.type == "number" and c.part == "value" for c in side.constants)
    return side.columns and ranges and not (side.negated or side.joins or side.absent) and required(side) <= compared


def columns_of(tables: Sequence[JoinTable], side: int) -> dict[Path, int]:
    """The attributes of one side, each with its axis."""
    found: dict[Path, int] = {}
    for table in tables:
        template = table.template.sides[side]
        nodes = [*table.joined(side), *(c.node for c in template.constants)]
        for node in nodes:
            found.setdefault(template.path(node), len(found))
    return found


def to_queries(
    tables: Sequence[JoinTable], columns: Sequence[Mapping[Path, int]], part: int, parts: int
) -> tuple[JoinQueries, Ints]:
    """Every `parts`-th query from `part` on, and the number of each."""
    size = sum(table.size for table in tables)
    low = [np.full((size, len(own)), LOWEST, np.int64) for own in columns]
    high = [np.full((size, len(own)), HIGHEST, np.int64) for own in columns]
    comparisons = Comparisons.of([], [], [], [])
    first = 0
    for table in tables:
        rows = slice(first, first + table.size)
        _cut_sides(table, columns, [ends[rows] for ends in low], [ends[rows] for ends in high])
        for edge in table.template.edges:
            axes = [
                own[side.path(node)]
                for side, own, node in zip(table.template.sides, columns, (edge.left, edge.right), strict=True)
            ]
            left, right = (np.full(table.size, axis) for axis in axes)
            every = np.arange(first, first + table.size)
            comparisons = comparisons.and_also(Comparisons.of(every, left, [edge.op] * table.size, right))
        first += table.size
    mine = np.arange(part, size, parts)
    boxes = [Boxes.of_keys(least[mine], most[mine]) for least, most in zip(low, high, strict=True)]
    seconds = np.concatenate([np.stack(table.reaches, axis=1) for table in tables])[mine]
    numbers = np.concatenate([table.numbers for table in tables])[mine]
    return JoinQueries.of(boxes[0], boxes[1], _only(comparisons, part, parts), seconds), numbers


def _cut_sides(table: JoinTable, columns: Sequence[Mapping[Path, int]], low: list[Ints], high: list[Ints]) -> None:
    first = 0
    for side, template in enumerate(table.template.sides):
        for condition in template.constants:
            axis = columns[side][template.path(condition.node)]
            keys = float_keys(np.asarray(table.columns[first + condition.slot], np.float64))
            cut(low[side][:, axis], high[side][:, axis], condition.op, keys)
        first += len(template.types)


def _only(comparisons: Comparisons, part: int, parts: int) -> Comparisons:
    """Those of one task's queries, which are numbered anew."""
    mine = comparisons.query % parts == part
    rest = (getattr(comparisons, name)[mine] for name in ("left", "right", "low", "high"))
    return Comparisons.bands(comparisons.query[mine] // parts, *rest)
