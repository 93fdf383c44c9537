"""Join tables: the queries of one join template, with any number of sides.

In: the query numbers and constants of one join template. Out: the reaches of each query's windows, the constant tables
of the sides, and the state that the sides keep of documents. The anchor of a two-way join is the equality that is
enumerated: the most selective one by the current statistics (-1 if there is none). The rules decide which strategy
evaluates a table (plan/rules.py). Each strategy builds its own structure from it: EdgeSets, RowJoin (rows/),
MultiwayJoin (many/).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.codec import to_json
from fishweir.algebra.joins import Edge, JoinTemplate
from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.normal import Template, dotted
from fishweir.evaluate.arrays import Column, Ints, take, to_column
from fishweir.evaluate.join.placement import is_better_above
from fishweir.evaluate.join.query_tables import QueryTable, read_columns
from fishweir.evaluate.join.variables import Variable, kept_nodes, key_of, side_paths, together, variables_in
from fishweir.evaluate.query_rows import QueryRow, by_template
from fishweir.evaluate.select.anchors import Anchor, choose_anchor
from fishweir.evaluate.select.constant_tables import Table, build_table
from fishweir.evaluate.statistics import PathStatistics, Statistics, path_key
from fishweir.evaluate.witnesses.path_tables import Path

Value = tuple[int, bool]
"""A node of a side whose value edges compare, and whether they compare its hash or its number."""


@dataclass(frozen=True)
class JoinTable(QueryTable):
    """The queries of a join whose results are combinations of documents."""

    template: JoinTemplate
    anchor: int
    numbers: Ints
    columns: tuple[Column, ...]
    above: bool = False
    """Whether constants are checked on the joined pairs instead of on documents (placement.py)."""

    @property
    def sources(self) -> tuple[Source, ...]:
        return self.template.sources

    @property
    def is_of_two(self) -> bool:
        return len(self.template.sides) == 2

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """The classes of its sides' rows, independent of the segment of its queries. In a join of more than two sides,
        a side without constants has the same class in all tables that compare the same values: its rows are stored
        once."""
        whole = [to_json(self.template), self.anchor, self.above]
        return tuple(
            key_of(json.dumps([i, *whole] if self.is_of_two or side.conditions else [to_json(side), self.values[i]]))
            for i, side in enumerate(self.template.sides)
        )

    @property
    def is_plain(self) -> bool:
        return (
            self.is_of_two
            and self.anchor >= 0
            and all(edge.is_equality for edge in self.template.edges)
            and not any(side.conditions or side.joins or side.columns or side.absent for side in self.template.sides)
            and not any(self.template.counts_rows)
        )

    @property
    def merge_key(self) -> tuple[JoinTemplate, int, bool]:
        return self.template, self.anchor, self.above

    def header(self) -> Any:
        return [to_json(self.template), self.anchor, self.above]

    def paths(self, sources: Sequence[Source]) -> dict[Path, bool]:
        return together(
            side_paths(template, self.kept(side), self.joined(side))
            for side, template in enumerate(self.template.sides)
            if template.source in sources
        )

    @cached_property
    def values(self) -> tuple[tuple[Value, ...], ...]:
        """The distinct values that edges compare, by side."""
        return tuple(
            tuple(sorted({(node, is_hashed(edge)) for edge, node in self._ends(side)}))
            for side in range(len(self.template.sides))
        )

    def joined(self, side: int) -> tuple[int, ...]:
        """The nodes of a side that its edges compare."""
        return tuple(dict.fromkeys(node for _, node in self._ends(side)))

    def _ends(self, side: int) -> Iterator[tuple[Edge, int]]:
        for edge in self.template.edges:
            if edge.left_side == side:
                yield edge, edge.left
            if edge.right_side == side:
                yield edge, edge.right

    @cached_property
    def _kept(self) -> tuple[tuple[int, ...], ...]:
        return tuple(map(kept_nodes, self.template.sides))

    @cached_property
    def _variables(self) -> tuple[tuple[Variable, ...], ...]:
        return tuple(map(variables_in, self.template.sides))

    def kept(self, side: int) -> tuple[int, ...]:
        return self._kept[side]

    def variable(self, side: int, node: int) -> Variable:
        return self._variables[side][node]

    @cached_property
    def reaches(self) -> tuple[NDArray[np.float64], ...]:
        """How long the documents of each side wait for later ones, by query, in seconds or rows; -1 if they do not
        wait."""
        windows = self.template.windows
        ends = (np.full(self.size, -1.0) if w.end is None else self.columns[w.end.index] for w in windows)
        return tuple(np.asarray(end, np.float64) for end in ends)

    def waiting(self) -> Iterator[tuple[Source, Source, bool, NDArray[np.float64]]]:
        for side, other in permutations(range(len(self.sources)), 2):
            reaches = np.maximum(self.reaches[side], 0.0)
            yield self.sources[side], self.sources[other], self.template.counts_rows[side], reaches

    @cached_property
    def sides(self) -> tuple[Table, ...]:
        """The constant tables of the sides, which determine the queries whose constants a document satisfies. A side
        without constants has one member, which stands for all queries."""
        return side_tables(self.template, self.numbers, self.columns)

    @cached_property
    def bare(self) -> tuple[Table, ...]:
        """The sides without their constants. The nodes compared with constants are outputs after the side's own
        outputs."""
        sides = (
            replace(side, constants=(), outputs=(*side.outputs, *self.compared(i)))
            for i, side in enumerate(self.template.sides)
        )
        return tuple(build_table(side, Anchor(side.leaves[0], ()), np.zeros(1, np.int64), ()) for side in sides)

    def compared(self, side: int) -> tuple[int, ...]:
        """The nodes of a side that are compared with constants and are not among its outputs."""
        template = self.template.sides[side]
        return tuple(dict.fromkeys(c.node for c in template.constants if c.node not in template.outputs))

    def positions(self, numbers: Ints) -> Ints:
        """The position of each query in the table, -1 if it is in another table."""
        at = np.minimum(np.searchsorted(self.numbers, numbers), self.size - 1)
        return np.where(self.numbers[at] == numbers, at, -1)


def is_hashed(edge: Edge) -> bool:
    return edge.op in ("=", "!=")


def side_tables(template: JoinTemplate, numbers: Ints, columns: Sequence[Column]) -> tuple[Table, ...]:
    found, first = [], 0
    for side in template.sides:
        own = tuple(columns[first : first + len(side.types)])
        first += len(side.types)
        members = numbers if own else np.zeros(1, np.int64)
        found.append(build_table(side, choose_anchor(side, list(own), {}), members, own))
    return tuple(found)


def to_columns(template: JoinTemplate, rows: Sequence[Sequence[Constant]]) -> tuple[Column, ...]:
    return tuple(to_column(v, kind) for kind, v in zip(template.types, zip(*rows, strict=True), strict=True))


def build_join(
    template: JoinTemplate, numbers: Sequence[int], rows: Sequence[Sequence[Constant]], statistics: Statistics
) -> JoinTable:
    own = np.array(numbers, dtype=np.int64)
    order = np.argsort(own, kind="stable")
    columns = tuple(take(column, order) for column in to_columns(template, rows))
    if len(template.sides) > 2:
        return JoinTable(template, -1, own[order], columns)
    anchor = choose_edge(template, statistics)
    return JoinTable(template, anchor, own[order], columns, is_better_above(template, anchor, columns, statistics))


def build_joins(rows: Iterable[QueryRow], statistics: Statistics) -> list[JoinTable]:
    """Builds a table for each template."""
    return [build_join(template, *columns, statistics) for template, columns in by_template(rows).items()]


def choose_edge(template: JoinTemplate, statistics: Statistics) -> int:
    """The equality that the fewest pairs satisfy: the one with the most distinct values on either side."""
    equalities = [(i, edge) for i, edge in enumerate(template.edges) if edge.is_equality]

    def distinct(side: Template, node: int) -> float:
        key = path_key(side.source, dotted(variables_in(side)[node].path))
        return statistics.get(key, PathStatistics()).distinct

    def most(pair: tuple[int, Any]) -> float:
        return max(distinct(template.left, pair[1].left), distinct(template.right, pair[1].right))

    if len(equalities) < 2 or not statistics:
        return equalities[0][0] if equalities else -1
    return max(equalities, key=most)[0]


def join_from_arrays(template: JoinTemplate, header: Sequence[Any], arrays: Mapping[str, Any]) -> JoinTable:
    numbers, columns = read_columns(arrays)
    return JoinTable(template, header[1], numbers, columns, header[2])


def variables_of(tables: Sequence[JoinTable]) -> Iterator[tuple[Variable, bool]]:
    """The variables of plain joins, each with a flag: whether its values are compared."""
    for table in tables:
        for side in (0, 1):
            joined = table.joined(side)
            for node in dict.fromkeys((*joined, *table.kept(side))):
                yield table.variable(side, node), node in joined
