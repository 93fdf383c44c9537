"""A table of joins of several streams: the queries of one template, and what its sides keep of documents.

In: the query numbers and constants of one join template. Out: how far the window of each side reaches, query by query,
the constant tables of the sides, and what its rows have of a document (views.py). A side without constants is the
same for all joins that compare the same columns: its rows are kept once, whichever tables read them.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.codec import to_json
from fishweir.algebra.joins import Edge, JoinTemplate
from fishweir.algebra.nodes import Constant, Source
from fishweir.evaluate.arrays import Column, Ints, take, to_column
from fishweir.evaluate.join.join_tables import (
    Numbered,
    column_arrays,
    kept_nodes,
    key_of,
    merged_columns,
    reaches_of,
    side_paths,
    together,
)
from fishweir.evaluate.select.anchors import choose_anchor
from fishweir.evaluate.select.constant_tables import Table, build_table
from fishweir.evaluate.witnesses.path_tables import Path

if TYPE_CHECKING:
    from fishweir.evaluate.join.many.side_views import SideView

Value = tuple[int, bool]
"""A node of a side whose value edges compare, and whether by its hash, or else as a number."""


@dataclass(frozen=True)
class ManyTable(Numbered):
    """`numbers` and `columns` have one row per query, by number."""

    template: JoinTemplate
    numbers: Ints
    columns: tuple[Column, ...]

    @property
    def sources(self) -> tuple[Source, ...]:
        return self.template.sources

    @cached_property
    def values(self) -> tuple[tuple[Value, ...], ...]:
        """What the rows of each side have of a document, each once."""
        found: list[dict[Value, None]] = [{} for _ in self.template.sides]
        for edge in self.template.edges:
            found[edge.left_side][edge.left, is_hashed(edge)] = None
            found[edge.right_side][edge.right, is_hashed(edge)] = None
        return tuple(tuple(sorted(own)) for own in found)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many nodes the rows of each side have; a result over columns is over whole tuples."""
        return tuple(0 if side.columns else len(side.outputs) for side in self.template.sides)

    def value(self, side: int, node: int, hashed: bool) -> int:
        return self.values[side].index((node, hashed))

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """What the rows of its sides are kept under, in whatever segment its queries are."""
        whole = to_json(self.template)
        return tuple(
            key_of(json.dumps(["many", whole, i] if side.conditions else ["side", to_json(side), self.values[i]]))
            for i, side in enumerate(self.template.sides)
        )

    @property
    def merge_key(self) -> Hashable:
        return self.template

    def header(self) -> Any:
        return [to_json(self.template)]

    def arrays(self) -> dict[str, Any]:
        return column_arrays(self.numbers, self.columns)

    def merged(self, others: Sequence[ManyTable], dropped: Ints) -> ManyTable | None:
        kept = merged_columns([self, *others], dropped)
        return None if kept is None else ManyTable(self.template, *kept)

    def paths(self, sources: Sequence[Source]) -> dict[Path, bool]:
        """The paths that some sources' documents are walked for, and whether their values are read."""
        return together(
            side_paths(template, kept_nodes(template), (node for node, _ in self.values[side]))
            for side, template in enumerate(self.template.sides)
            if template.source in sources
        )

    @cached_property
    def reaches(self) -> tuple[NDArray[np.float64], ...]:
        """How long the documents of each side wait for later ones, in seconds or in rows. One that does not wait must
        be the newest of its result, 0 seconds before it."""
        return tuple(np.maximum(reach, 0.0) for reach in reaches_of(self.template, self.columns, self.size))

    @cached_property
    def longest(self) -> NDArray[np.float64]:
        """The longest window of each side."""
        return np.array([reach.max(initial=-1.0) for reach in self.reaches])

    @cached_property
    def sides(self) -> tuple[Table, ...]:
        """The constant tables of the sides; one without constants has one member, which stands for all."""
        found, first = [], 0
        for side in self.template.sides:
            own = self.columns[first : first + len(side.types)]
            first += len(side.types)
            numbers = self.numbers if side.conditions else np.zeros(1, np.int64)
            found.append(build_table(side, choose_anchor(side, list(own), {}), numbers, own))
        return tuple(found)

    def positions(self, numbers: Ints) -> Ints:
        """The place of each query in the table, -1 where it is in another one."""
        at = np.minimum(np.searchsorted(self.numbers, numbers), self.size - 1)
        return np.where(self.numbers[at] == numbers, at, -1)

    @cached_property
    def views(self) -> OrderedDict[tuple[int, int], SideView]:
        """Runs as its sides see them (views.py)."""
        return OrderedDict()


def is_hashed(edge: Edge) -> bool:
    return edge.op in ("=", "!=")


def build_many(template: JoinTemplate, numbers: Sequence[int], rows: Sequence[Sequence[Constant]]) -> ManyTable:
    columns = [to_column(v, kind) for kind, v in zip(template.types, zip(*rows, strict=True), strict=True)]
    own = np.array(numbers, dtype=np.int64)
    order = np.argsort(own, kind="stable")
    return ManyTable(template, own[order], tuple(take(column, order) for column in columns))
