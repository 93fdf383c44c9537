"""Converts the engine's joins of tuples to window join queries of Spatial Join CQ.

In: join tables over one pair of streams. Out: the columns of each stream that are attributes, and the queries: a region
over the attributes of each side, comparisons between both, and a window per side in seconds or rows.

Equality in the engine compares texts. A column that is compared for equality is a separate attribute, the hash of its
text as a number. If a query has a range or an order on one of the two columns, only numbers can satisfy it, and equal
texts are equal numbers. Then the numbers are compared too, and their diagonal is divided into regions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.normal import Template
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.select.boxes import Boxes
from fishweir.evaluate.select.boxes.regions import HIGHEST, LOWEST, Floats, float_keys
from fishweir.evaluate.select.regions import cut, is_side, required
from fishweir.evaluate.witnesses.path_tables import Path
from fishweir.papers.spatialjoin.windows import ALL_ROWS, LEFT, OPERATORS, RIGHT, Comparisons, JoinQueries

Attribute = tuple[Path, bool]
"""A column, and whether the attribute is the hash of its text or its number."""
Comparison = tuple[int, str, int, bool]
"""Node of the left side, operator, node of the right side, and whether texts are compared."""


def is_published(table: JoinTable) -> bool:
    """Whether a join is one of the paper's: two streams, tuples, ranges of numbers, comparisons, sliding windows.
    Windows of rows require two different streams: in a join of a stream with itself, two tuples of one time have an
    order."""
    template = table.template
    if not table.is_of_two:
        return False
    compared = [{edge.left for edge in template.edges}, {edge.right for edge in template.edges}]
    return (
        bool(template.edges)
        and all(edge.op in OPERATORS for edge in template.edges)
        and not template.strict
        and not (any(template.counts_rows) and _may_be_one_stream(template))
        and all(_is_region(side, nodes) for side, nodes in zip(template.sides, compared, strict=True))
    )


def _may_be_one_stream(template: JoinTemplate) -> bool:
    left, right = template.sources
    return left == right or left.dtd or right.dtd


def _is_region(side: Template, compared: set[int]) -> bool:
    ranges = all(is_side(c) and c.type == "number" and c.part == "value" for c in side.constants)
    return side.columns and ranges and not (side.negated or side.joins or side.absent) and required(side) <= compared


def comparisons_of(template: JoinTemplate) -> Iterator[Comparison]:
    """The edges, and the equalities of numbers that follow from those of texts."""
    numbers = [{(side, c.node) for c in own.constants} for side, own in enumerate(template.sides)]
    orders = {end for e in template.edges if not e.is_equality for end in ((LEFT, e.left), (RIGHT, e.right))}
    known = orders.union(*numbers)
    for edge in template.edges:
        yield edge.left, edge.op, edge.right, edge.is_equality
        if edge.is_equality and ((LEFT, edge.left) in known or (RIGHT, edge.right) in known):
            yield edge.left, edge.op, edge.right, False


def compared_attributes(tables: Sequence[JoinTable], side: int) -> dict[Attribute, None]:
    """The attributes of one side that the comparisons of some joins read."""
    return {
        (table.template.sides[side].path((left, right)[side]), texts): None
        for table in tables
        for left, _, right, texts in comparisons_of(table.template)
    }


def attributes_of(tables: Sequence[JoinTable], side: int) -> dict[Attribute, int]:
    """The attributes of one side, each with its axis. Numbers come first, so that they divide the queries."""
    sides = (table.template.sides[side] for table in tables)
    found = compared_attributes(tables, side) | {
        (own.path(c.node), False): None for own in sides for c in own.constants
    }
    return {attribute: axis for axis, attribute in enumerate(sorted(found, key=lambda one: one[1]))}


def to_queries(
    tables: Sequence[JoinTable], attributes: Sequence[Mapping[Attribute, int]], part: int, parts: int
) -> tuple[JoinQueries, Ints]:
    """Every `parts`-th query starting from `part`, and the number of each."""
    size = sum(table.size for table in tables)
    low = [np.full((size, len(own)), LOWEST, np.int64) for own in attributes]
    high = [np.full((size, len(own)), HIGHEST, np.int64) for own in attributes]
    comparisons = Comparisons.of([], [], [], [])
    first = 0
    for table in tables:
        rows = slice(first, first + table.size)
        _cut_sides(table, attributes, [ends[rows] for ends in low], [ends[rows] for ends in high])
        for left, op, right, texts in comparisons_of(table.template):
            axes = [
                np.full(table.size, own[side.path(node), texts])
                for side, own, node in zip(table.template.sides, attributes, (left, right), strict=True)
            ]
            every = np.arange(first, first + table.size)
            comparisons = comparisons.and_also(Comparisons.of(every, axes[0], [op] * table.size, axes[1]))
        first += table.size
    mine = np.arange(part, size, parts)
    boxes = [Boxes.of_keys(least[mine], most[mine]) for least, most in zip(low, high, strict=True)]
    windows = [_windows(table) for table in tables]
    seconds, rows_of_windows = (np.concatenate([one[i] for one in windows])[mine] for i in (0, 1))
    numbers = np.concatenate([table.numbers for table in tables])[mine]
    mine_only = _only(comparisons, part, parts)
    return JoinQueries.of(boxes[LEFT], boxes[RIGHT], mine_only, seconds, rows_of_windows), numbers


def _windows(table: JoinTable) -> tuple[Floats, Ints]:
    """Seconds and rows of each query and side. Zero rows are like zero seconds: tuples of equal times still join."""
    reaches = np.stack(table.reaches, axis=1)
    by_rows = np.array(table.template.counts_rows) & (reaches >= 1)
    by_time = ~np.array(table.template.counts_rows)
    seconds = np.where(by_rows, np.inf, np.where(by_time, reaches, -1.0))
    return seconds, np.where(by_rows, np.minimum(reaches, ALL_ROWS), ALL_ROWS).astype(np.int64)


def _cut_sides(
    table: JoinTable, attributes: Sequence[Mapping[Attribute, int]], low: list[Ints], high: list[Ints]
) -> None:
    first = 0
    for side, template in enumerate(table.template.sides):
        for condition in template.constants:
            axis = attributes[side][template.path(condition.node), False]
            keys = float_keys(np.asarray(table.columns[first + condition.slot], np.float64))
            cut(low[side][:, axis], high[side][:, axis], condition.op, keys)
        first += len(template.types)


def _only(comparisons: Comparisons, part: int, parts: int) -> Comparisons:
    """The comparisons of one task's queries, which are renumbered."""
    mine = comparisons.query % parts == part
    rest = (getattr(comparisons, name)[mine] for name in ("left", "right", "low", "high"))
    return Comparisons.bands(comparisons.query[mine] // parts, *rest)
