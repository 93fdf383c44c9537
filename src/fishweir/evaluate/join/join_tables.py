"""Join tables: the queries of one join template, with any number of sides.

In: the query numbers and constants of one join template. Out: the reaches of each query's windows, the constant tables
of the sides, and the state that the sides keep of documents. The anchor of a two-way join is the equality that is
enumerated: the most selective one by the current statistics (-1 if there is none). The rules decide which strategy
evaluates a table (plan/rules.py). Each strategy builds its own structure from it: EdgeSets, RowJoin (rows/),
MultiwayJoin (many/), Links (annotations/). Tables of several segments with the same merge key are merged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.annotations import ROLES
from fishweir.algebra.codec import from_json, to_json
from fishweir.algebra.joins import Edge, JoinTemplate
from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.normal import Template, dotted
from fishweir.evaluate.arrays import Column, Ints, take, to_column
from fishweir.evaluate.join.annotations.feed_sides import with_sides
from fishweir.evaluate.join.placement import is_better_above
from fishweir.evaluate.join.variables import Variable, kept_nodes, key_of, side_paths, together, variables_in
from fishweir.evaluate.query_rows import QueryRow, by_template
from fishweir.evaluate.select.anchors import Anchor, choose_anchor
from fishweir.evaluate.select.constant_tables import Table, build_table, concatenated
from fishweir.evaluate.statistics import PathStatistics, Statistics, path_key
from fishweir.evaluate.witnesses.path_tables import Path

Value = tuple[int, bool]
"""A node of a side whose value edges compare, and whether they compare its hash or its number."""


@dataclass(frozen=True)
class JoinTable:
    """`numbers` and `columns` have one row per query, ordered by number. The columns hold the constants that the join
    compares itself, then the sides of its windows that filters match (annotations/feed_sides.py)."""

    kind: ClassVar[str] = "joins"

    template: JoinTemplate
    anchor: int
    numbers: Ints
    columns: tuple[Column, ...]
    above: bool = False
    """Whether constants are checked on the joined pairs instead of on documents (placement.py)."""

    @property
    def size(self) -> int:
        return len(self.numbers)

    @property
    def members(self) -> Ints:
        return self.numbers

    def positions_of(self, number: int) -> Ints:
        return np.flatnonzero(self.numbers == number)

    @property
    def sources(self) -> tuple[Source, ...]:
        return self.template.sources

    @property
    def is_of_two(self) -> bool:
        return self.template.is_of_two

    def constant(self, place: int) -> Column:
        """One of the constants that the join compares itself, of each query."""
        return self.columns[place - self.template.matched]

    @property
    def collected(self) -> tuple[Ints, ...]:
        """The sides of the queries' windows, by window: those of feeds, which filters match."""
        return self.columns[len(self.columns) - len(self.template.collects) :]  # type: ignore[return-value]

    @property
    def collecting(self) -> tuple[Ints, ...]:
        """The sides of the items that collect, by role."""
        roles = self.template.sides[0].roles if self.template.collects else ()
        return tuple(self.numbers * ROLES + role for role in range(len(roles)))

    @property
    def matched_sides(self) -> Ints:
        """Its sides that another kind matches."""
        return np.unique(np.concatenate([np.empty(0, np.int64), *self.collected, *self.collecting]))

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """The classes of its sides' rows, independent of the segment of its queries. In a join of more than two sides,
        a side without constants has the same class in all tables that compare the same values: its rows are stored
        once."""
        whole = [to_json(self.template), self.anchor, self.above]
        return tuple(
            key_of(json.dumps([i, *whole] if self.is_of_two or side.types else [to_json(side), self.values[i]]))
            for i, side in enumerate(self.template.sides)
        )

    @property
    def is_plain(self) -> bool:
        """Whether the set of equal values of two documents decides: no constants, no other comparisons."""
        return (
            self.is_of_two
            and self.anchor >= 0
            and all(edge.is_equality for edge in self.template.edges)
            and not any(side.conditions or side.joins or side.columns or side.absent for side in self.template.sides)
            and not any(self.template.counts_rows)
        )

    @property
    def merge_key(self) -> tuple[JoinTemplate, int, bool]:
        """The common properties of the queries of one table."""
        return self.template, self.anchor, self.above

    def header(self) -> Any:
        return [to_json(self.template), self.anchor, self.above]

    def arrays(self) -> dict[str, Any]:
        return {"numbers": self.numbers} | {f"column{i}": column for i, column in enumerate(self.columns)}

    def paths(self, sources: Sequence[Source]) -> dict[Path, bool]:
        """The paths to find in some sources' documents, each with a flag: whether its values are read. The filters of
        feeds add their own."""
        own = (i for i, side in enumerate(self.template.sides) if not set(sources).isdisjoint(side.sources))
        return together(map(self._walked, own))

    def _walked(self, side: int) -> dict[Path, bool]:
        template = self.template.sides[side]
        if template.filters:
            return {template.path(value): True for value in self.joined(side)}
        return side_paths(template, self.kept(side), self.joined(side))

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
        ends = (np.full(self.size, -1.0) if w.end is None else self.constant(w.end.index) for w in windows)
        return tuple(np.asarray(end, np.float64) for end in ends)

    def waiting(self) -> Iterator[tuple[Source, Source, bool, NDArray[np.float64]]]:
        """How long documents of a source wait for those of another, by query: in rows, or in seconds. The rows of a
        feed are not those of its source: the lists of its rows determine how many documents it holds."""
        template = self.template
        for i, side in enumerate(template.sides):
            rows, reaches = template.counts_rows[i], np.maximum(self.reaches[i], 0.0)
            if rows and side.filters:
                rows, reaches = False, np.full(self.size, np.inf)
            yield from ((source, other, rows, reaches) for source in side.sources for other in template.awaited(i))

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
    types = template.types[template.matched :]
    columns = list(zip(*rows, strict=True))
    constants = (to_column(values, kind) for values, kind in zip(columns, types, strict=False))
    return *constants, *(np.array(sides, np.int64) for sides in columns[len(types) :])


def build_join(
    template: JoinTemplate, numbers: Sequence[int], rows: Sequence[Sequence[Constant]], statistics: Statistics
) -> JoinTable:
    own = np.array(numbers, dtype=np.int64)
    order = np.argsort(own, kind="stable")
    columns = tuple(take(column, order) for column in to_columns(template, rows))
    if not template.is_of_two:
        return JoinTable(template, -1, own[order], columns)
    anchor = choose_edge(template, statistics)
    return JoinTable(template, anchor, own[order], columns, is_better_above(template, anchor, columns, statistics))


def build_joins(rows: Iterable[QueryRow], statistics: Statistics) -> list[JoinTable]:
    """Builds a table for each template."""
    rows = list(rows)
    combining, collecting = ([row for row in rows if bool(row[1].collects) is collects] for collects in (False, True))
    grouped = by_template(chain(combining, with_sides(collecting)))
    return [build_join(template, *columns, statistics) for template, columns in grouped.items()]


def merge_tables(tables: Sequence[JoinTable], dropped: Ints) -> JoinTable | None:
    """Merges several tables with the same merge key, without the dropped queries; None if no query is left."""
    numbers = np.concatenate([table.numbers for table in tables])
    keep = np.flatnonzero(~np.isin(numbers, dropped))
    keep = keep[np.argsort(numbers[keep], kind="stable")]
    if not len(keep):
        return None
    columns = zip(*(table.columns for table in tables), strict=True)
    merged = tuple(take(concatenated(parts), keep) for parts in columns)
    return replace(tables[0], numbers=numbers[keep], columns=merged)


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


def join_from_arrays(header: Sequence[Any], arrays: Mapping[str, Any]) -> JoinTable:
    columns = tuple(arrays[f"column{i}"] for i in range(len(arrays) - 1))
    return JoinTable(from_json(header[0]), header[1], arrays["numbers"], columns, header[2])


def variables_of(tables: Sequence[JoinTable]) -> Iterator[tuple[Variable, bool]]:
    """The variables of plain joins, each with a flag: whether its values are compared."""
    for table in tables:
        for side in (0, 1):
            joined = table.joined(side)
            for node in dict.fromkeys((*joined, *table.kept(side))):
                yield table.variable(side, node), node in joined
