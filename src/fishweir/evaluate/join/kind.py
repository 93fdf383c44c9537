"""The kind of joins. Its groups are join tables, each with the queries of one join template with any number of sides.

Some joins return combinations of documents, others are semi-joins that collect the matches of a document. This is a
property of their template, which determines the strategy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fishweir.algebra.nodes import Constant
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import (
    Bundle,
    Drift,
    ExplainContext,
    Group,
    GroupSummary,
    Kind,
    PlacedBundle,
    Stage,
    State,
    Strategy,
    Walk,
)
from fishweir.evaluate.join.annotations.annotation_joins import AnnotationJoins
from fishweir.evaluate.join.annotations.feed_sides import side_rows
from fishweir.evaluate.join.binding import bound_nodes
from fishweir.evaluate.join.explain import describe_joins, explain_join
from fishweir.evaluate.join.join_tables import JoinTable, build_joins, join_from_arrays, merge_tables
from fishweir.evaluate.join.operators import EdgeSetJoins, JoinOperator, JoinsByRows, MultiwayJoins
from fishweir.evaluate.join.rows.row_joins import join_signature
from fishweir.evaluate.join.shape_rule import cheaper_by_shape, edge_keys
from fishweir.evaluate.join.shapes import ShapeJoins
from fishweir.evaluate.join.stage import JoinStage
from fishweir.evaluate.join.state import run_from_arrays
from fishweir.evaluate.query_rows import QueryRow
from fishweir.evaluate.statistics import Statistics


class JoinKind(Kind):
    name, misses_late = "joins", True

    def build(self, rows: Iterable[QueryRow], statistics: Statistics) -> list[Group]:
        return build_joins(rows, statistics)  # type: ignore[return-value]

    def side_rows(self, rows: Iterable[QueryRow]) -> Iterable[QueryRow]:
        return side_rows(row for row in rows if row[1].collects)

    def sides(self, group: JoinTable) -> Ints:
        return group.matched_sides

    def merge(self, groups: Sequence[JoinTable], dropped: Ints, statistics: Statistics) -> list[Group]:
        grouped: dict[Hashable, list[JoinTable]] = defaultdict(list)
        for group in groups:
            grouped[group.merge_key].append(group)
        merged = (merge_tables(tables, dropped) for tables in grouped.values())
        return [table for table in merged if table is not None]

    def drift(self, group: JoinTable) -> Drift | None:
        """Statistics of the anchor's values, which decide between a hash join per shape and edge sets."""
        if not group.is_plain or len(group.template.edges) < 2:
            return None
        return Drift(edge_keys(group, group.template.edges[group.anchor]))

    def read(self, header: Any, arrays: Mapping[str, Any]) -> Group:
        return join_from_arrays(header, arrays)

    def stage(self, operators: Sequence[JoinOperator]) -> Stage:
        return JoinStage(operators)

    def read_state(self, arrays: Mapping[str, Any]) -> State:
        return run_from_arrays(arrays)

    def bound_nodes(
        self, template: Any, constants: Sequence[Constant], documents: Sequence[Walk]
    ) -> Iterator[tuple[int, ...]]:
        return bound_nodes(template, constants, documents)

    def explain(self, number: int, template: Any, constants: Sequence[Constant], about: ExplainContext) -> list[str]:
        return explain_join(number, template, constants, about)

    def describe(self, bundles: Sequence[PlacedBundle]) -> tuple[list[GroupSummary], list[str]]:
        return describe_joins(bundles), []


class ByShape(Strategy):
    """Plain joins whose anchor value many documents share: a hash join per shape over all its edges."""

    name, kind = "shapes", "joins"

    def take(self, groups: Mapping[int, JoinTable], statistics: Statistics) -> list[Bundle]:
        plain = {place: table for place, table in groups.items() if table.is_plain}
        taken = cheaper_by_shape(plain, statistics)
        return [self.bundle(taken)] if taken else []

    def operator(self, placed: PlacedBundle) -> ShapeJoins:
        return ShapeJoins(placed.groups)  # type: ignore[arg-type]


class ByEdgeSets(Strategy):
    """All plain joins of a segment together: the set of equal values of two documents decides which queries hold."""

    name, kind = "edge-sets", "joins"

    def take(self, groups: Mapping[int, JoinTable], statistics: Statistics) -> list[Bundle]:
        plain = [place for place, table in groups.items() if table.is_plain]
        return [self.bundle(plain)] if plain else []

    def operator(self, placed: PlacedBundle) -> EdgeSetJoins:
        return EdgeSetJoins(placed.groups)  # type: ignore[arg-type]


class ByRows(Strategy):
    """Two-way joins with one signature together: rows are looked up by value, by order or by time."""

    name, kind = "rows", "joins"

    def take(self, groups: Mapping[int, JoinTable], statistics: Statistics) -> list[Bundle]:
        signatures: dict[Hashable, list[int]] = defaultdict(list)
        for place, table in groups.items():
            if table.is_of_two:
                signatures[join_signature(table)].append(place)
        return [self.bundle(places) for places in signatures.values()]

    def operator(self, placed: PlacedBundle) -> JoinsByRows:
        return JoinsByRows(placed.groups)  # type: ignore[arg-type]


class ByMultiwayJoin(Strategy):
    """Joins of any number of streams, one template at a time: combinations grow side by side (an MJoin)."""

    name, kind = "mjoin", "joins"

    def take(self, groups: Mapping[int, JoinTable], statistics: Statistics) -> list[Bundle]:
        return [self.bundle([place]) for place, table in groups.items() if not table.template.collects]

    def operator(self, placed: PlacedBundle) -> MultiwayJoins:
        return MultiwayJoins(placed.groups)  # type: ignore[arg-type]


class ByWindows(Strategy):
    """All semi-joins of a segment that collect, together. They share windows over the same items and equal
    comparisons."""

    name, kind = "windows", "joins"

    def take(self, groups: Mapping[int, JoinTable], statistics: Statistics) -> list[Bundle]:
        return [self.bundle(groups)] if groups else []

    def operator(self, placed: PlacedBundle) -> AnnotationJoins:
        return AnnotationJoins(placed.groups)  # type: ignore[arg-type]
