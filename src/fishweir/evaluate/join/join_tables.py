"""A join table: the queries of one join template behind one anchor edge.

In: the query numbers and constants of one join template. Out: how far each query's window reaches, the constant
tables of its two sides, and the variables (source and path) that its documents must be kept by. The anchor is the
equality that is enumerated, the most selective by the statistics of the moment (-1: there is no equality).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.codec import to_json
from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.normal import Template, dotted
from fishweir.evaluate.arrays import Column, Ints, take, to_column
from fishweir.evaluate.join.placement import Check, checks_of, is_better_above
from fishweir.evaluate.select.anchors import Anchor, choose_anchor
from fishweir.evaluate.select.constant_tables import Table, build_table, concatenated, template_paths
from fishweir.evaluate.statistics import PathStatistics, Statistics, path_key
from fishweir.evaluate.witnesses.path_tables import Path


@dataclass(frozen=True)
class Variable:
    """What a value or node of a document is kept under: equal definitions are one variable."""

    source: Source
    path: Path
    columns: bool = False

    @cached_property
    def key(self) -> int:
        steps = [f"{step.axis} {step.name} {step.namespace!r}{step.position or ''}" for step in self.path]
        return key_of("\t".join([repr(self.source.name), str(self.source.dtd), str(self.columns), *steps]))

    def __hash__(self) -> int:
        return self.key


@lru_cache(maxsize=100_000)
def variables_in(template: Template) -> tuple[Variable, ...]:
    """The variable of each node of a side."""
    return tuple(Variable(template.source, template.path(i), template.columns) for i in range(len(template.nodes)))


@lru_cache(maxsize=100_000)
def kept_nodes(template: Template) -> tuple[int, ...]:
    """The nodes that decide whether, and how often, a pattern lies over a document."""
    return tuple(sorted({*template.leaves, *template.referred}))


def key_of(text: str) -> int:
    """A number that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


class Numbered:
    """What all tables of joins are: rows of queries, by their `numbers`."""

    kind: ClassVar[str] = "joins"

    numbers: Ints

    @property
    def size(self) -> int:
        return len(self.numbers)

    @property
    def members(self) -> Ints:
        return self.numbers

    def positions_of(self, number: int) -> Ints:
        return np.flatnonzero(self.numbers == number)


def side_paths(template: Template, kept: Iterable[int], compared: Iterable[int]) -> dict[Path, bool]:
    """The paths that a side's documents are walked for, and whether their values are read."""
    found = template_paths(template)
    found |= {template.path(node): found.get(template.path(node), False) for node in kept}
    return found | {template.path(node): True for node in compared}


def together(paths: Iterable[Mapping[Path, bool]]) -> dict[Path, bool]:
    """The paths of several sides; values are read where any reads them."""
    found: dict[Path, bool] = {}
    for own in paths:
        for path, valued in own.items():
            found[path] = found.get(path, False) or valued
    return found


@dataclass(frozen=True)
class JoinTable(Numbered):
    """`numbers` and `columns` have one row per query, in registration order."""

    template: JoinTemplate
    anchor: int
    numbers: Ints
    columns: tuple[Column, ...]
    above: bool = False
    """Whether constants are checked on the pairs that the join leaves, not on documents (placement.py)."""

    @property
    def sources(self) -> tuple[Source, ...]:
        return self.template.sources

    @cached_property
    def keys(self) -> tuple[int, int]:
        """What the rows of its two sides are kept under, in whatever segment its queries are."""
        key = key_of(json.dumps([to_json(self.template), self.anchor, *(["above"] if self.above else [])]))
        return key & ~1, key | 1

    @property
    def is_plain(self) -> bool:
        """Whether the set of equal values of two documents decides: no constants, no other comparisons."""
        sides = self.template.sides
        return (
            self.anchor >= 0
            and all(edge.is_equality for edge in self.template.edges)
            and not any(side.conditions or side.joins or side.columns or side.absent for side in sides)
            and not any(self.template.counts_rows)
        )

    @property
    def merge_key(self) -> Hashable:
        """What queries of one table have in common."""
        return self.template, self.anchor, self.above

    def header(self) -> Any:
        return [to_json(self.template), self.anchor, self.above]

    def arrays(self) -> dict[str, Any]:
        return column_arrays(self.numbers, self.columns)

    def merged(self, others: Sequence[JoinTable], dropped: Ints) -> JoinTable | None:
        kept = merged_columns([self, *others], dropped)
        return None if kept is None else replace(self, numbers=kept[0], columns=kept[1])

    def paths(self, sources: Sequence[Source]) -> dict[Path, bool]:
        """The paths that some sources' documents are walked for, and whether their values are read."""
        return together(
            side_paths(template, self.kept(side), self.joined(side))
            for side, template in enumerate(self.template.sides)
            if template.source in sources
        )

    def joined(self, side: int) -> tuple[int, ...]:
        """The nodes of a side that its edges compare."""
        return tuple(dict.fromkeys(e.right if side else e.left for e in self.template.edges))

    @cached_property
    def _kept(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return kept_nodes(self.template.left), kept_nodes(self.template.right)

    @cached_property
    def _variables(self) -> tuple[tuple[Variable, ...], tuple[Variable, ...]]:
        return variables_in(self.template.left), variables_in(self.template.right)

    def kept(self, side: int) -> tuple[int, ...]:
        return self._kept[side]

    def variable(self, side: int, node: int) -> Variable:
        return self._variables[side][node]

    @cached_property
    def reaches(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How long the left documents wait for later ones, and the right ones; -1 where they do not."""
        left, right = reaches_of(self.template, self.columns, self.size)
        return left, right

    @cached_property
    def sides(self) -> tuple[Table, Table]:
        """The constant tables of the two sides: which queries' constants a document satisfies. A side without
        constants has one member, which stands for all."""
        first = len(self.template.left.types)
        parts = self.columns[:first], self.columns[first : first + len(self.template.right.types)]
        left, right = (
            build_table(side, choose_anchor(side, list(own), {}), self.numbers if own else np.zeros(1, np.int64), own)
            for side, own in zip(self.template.sides, parts, strict=True)
        )
        return left, right

    @cached_property
    def bare(self) -> tuple[Table, Table]:
        """The sides without their constants; the nodes compared with them are outputs after the side's own."""
        left, right = (
            build_table(side, Anchor(side.leaves[0], ()), np.zeros(1, np.int64), ())
            for side in (
                replace(side, constants=(), outputs=(*side.outputs, *self.compared(i)))
                for i, side in enumerate(self.template.sides)
            )
        )
        return left, right

    def compared(self, side: int) -> tuple[int, ...]:
        """The nodes of a side that constants are compared with and that are no outputs of it."""
        template = self.template.sides[side]
        return tuple(dict.fromkeys(c.node for c in template.constants if c.node not in template.outputs))

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        return checks_of(self.template, self.columns)


def reaches_of(template: JoinTemplate, columns: Sequence[Column], size: int) -> tuple[NDArray[np.float64], ...]:
    """How long the documents of each side wait for later ones, query by query, in seconds or rows; -1: they do not."""
    ends = (np.full(size, -1.0) if window.end is None else columns[window.end.index] for window in template.windows)
    return tuple(np.asarray(end, np.float64) for end in ends)


def build_join(
    template: JoinTemplate, numbers: Sequence[int], rows: Sequence[Sequence[Constant]], statistics: Statistics
) -> JoinTable:
    columns = tuple(to_column(v, kind) for kind, v in zip(template.types, zip(*rows, strict=True), strict=True))
    anchor = choose_edge(template, statistics)
    above = is_better_above(template, anchor, columns, statistics)
    return JoinTable(template, anchor, np.array(numbers, dtype=np.int64), columns, above)


def choose_edge(template: JoinTemplate, statistics: Statistics) -> int:
    """The equality that the fewest pairs satisfy: that with the most distinct values on either side."""
    equalities = [(i, edge) for i, edge in enumerate(template.edges) if edge.is_equality]

    def distinct(side: Template, node: int) -> float:
        key = path_key(side.source, dotted(variables_in(side)[node].path))
        return statistics.get(key, PathStatistics()).distinct

    def most(pair: tuple[int, Any]) -> float:
        return max(distinct(template.left, pair[1].left), distinct(template.right, pair[1].right))

    if len(equalities) < 2 or not statistics:
        return equalities[0][0] if equalities else -1
    return max(equalities, key=most)[0]


class Columnar(Protocol):
    @property
    def numbers(self) -> Ints: ...

    @property
    def columns(self) -> tuple[Column, ...]: ...


def merged_columns(tables: Sequence[Columnar], dropped: Ints) -> tuple[Ints, tuple[Column, ...]] | None:
    """The queries of several tables by number, without the dropped ones; None where none is left."""
    numbers = np.concatenate([table.numbers for table in tables])
    keep = np.flatnonzero(~np.isin(numbers, dropped))
    keep = keep[np.argsort(numbers[keep], kind="stable")]
    if not len(keep):
        return None
    columns = zip(*(table.columns for table in tables), strict=True)
    return numbers[keep], tuple(take(concatenated(parts), keep) for parts in columns)


def column_arrays(numbers: Ints, columns: Sequence[Column]) -> dict[str, Any]:
    return {"numbers": numbers} | {f"column{i}": column for i, column in enumerate(columns)}


def variables_of(tables: Sequence[JoinTable]) -> Iterator[tuple[Variable, bool]]:
    """The variables of plain joins, each with whether its values are compared."""
    for table in tables:
        for side in (0, 1):
            joined = table.joined(side)
            for node in dict.fromkeys((*joined, *table.kept(side))):
                yield table.variable(side, node), node in joined
