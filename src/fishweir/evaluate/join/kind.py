"""The kind of joins. Its groups are join tables, each with the queries of one join template with any number of sides.

Some joins return combinations of documents. Annotation joins are semi-joins that collect the matches of a document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from fishweir.algebra.codec import from_json
from fishweir.algebra.nodes import Constant
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import (
    Bundle,
    Described,
    Drift,
    Explained,
    Group,
    Kind,
    Placed,
    Stage,
    State,
    Strategy,
    Walk,
)
from fishweir.evaluate.join.annotations.annotation_joins import AnnotationJoins
from fishweir.evaluate.join.annotations.annotation_tables import annotations_from_arrays, build_annotations, side_rows
from fishweir.evaluate.join.annotations.explain import describe_annotations, explain_annotation
from fishweir.evaluate.join.binding import bound_nodes
from fishweir.evaluate.join.explain import describe_joins, explain_join
from fishweir.evaluate.join.join_tables import JoinTable, build_joins, join_from_arrays
from fishweir.evaluate.join.operators import EdgeSetJoins, JoinOperator, JoinsByRows, MultiwayJoins
from fishweir.evaluate.join.query_tables import QueryTable, merge_tables
from fishweir.evaluate.join.rows.row_joins import join_signature
from fishweir.evaluate.join.shape_rule import cheaper_by_shape, edge_keys
from fishweir.evaluate.join.shapes import ShapeJoins
from fishweir.evaluate.join.stage import JoinStage
from fishweir.evaluate.join.state import run_from_arrays
from fishweir.evaluate.query_rows import QueryRow
from fishweir.evaluate.statistics import Statistics

Row = TypeVar("Row")


class JoinKind(Kind):
    name, misses_late = "joins", True

    def build(self, rows: Iterable[QueryRow], statistics: Statistics) -> list[Group]:
        combining, collecting = _apart(rows, lambda row: row[1])
        return [*build_joins(combining, statistics), *build_annotations(collecting)]

    def side_rows(self, rows: Iterable[QueryRow]) -> Iterable[QueryRow]:
        return side_rows(_apart(rows, lambda row: row[1])[1])

    def sides(self, group: QueryTable) -> Ints:
        return group.matched_sides

    def merge(self, groups: Sequence[QueryTable], dropped: Ints, statistics: Statistics) -> list[Group]:
        grouped: dict[Hashable, list[QueryTable]] = defaultdict(list)
        for group in groups:
            grouped[group.merge_key].append(group)
        merged = (merge_tables(tables, dropped) for tables in grouped.values())
        return [table for table in merged if table is not None]

    def drift(self, group: QueryTable) -> Drift | None:
        """Statistics of the anchor's values, which decide between a hash join per shape and edge sets."""
        if not isinstance(group, JoinTable) or not group.is_plain or len(group.template.edges) < 2:
            return None
        return Drift(edge_keys(group, group.template.edges[group.anchor]))

    def read(self, header: Any, arrays: Mapping[str, Any]) -> Group:
        template = from_json(header[0])
        return (
            annotations_from_arrays(template, arrays)
            if template.collects
            else join_from_arrays(template, header, arrays)
        )

    def stage(self, operators: Sequence[JoinOperator]) -> Stage:
        return JoinStage(operators)

    def read_state(self, arrays: Mapping[str, Any]) -> State:
        return run_from_arrays(arrays)

    def bound_nodes(
        self, template: Any, constants: Sequence[Constant], documents: Sequence[Walk]
    ) -> Iterator[tuple[int, ...]]:
        return bound_nodes(template, constants, documents)

    def explain(self, number: int, template: Any, constants: Sequence[Constant], about: Explained) -> list[str]:
        explain = explain_annotation if template.collects else explain_join
        own = [placed for placed in about.bundles if placed.groups[0].template.collects == template.collects]  # type: ignore[attr-defined]
        return explain(number, template, constants, replace(about, bundles=own))

    def describe(self, bundles: Sequence[Placed]) -> tuple[list[Described], list[str]]:
        combining, collecting = _apart(bundles, lambda placed: placed.groups[0].template)  # type: ignore[attr-defined]
        return [*describe_joins(combining), *describe_annotations(collecting)], []


def _apart(some: Iterable[Row], template: Callable[[Row], Any]) -> tuple[list[Row], list[Row]]:
    """Separates the rows of joins that return combinations from those of joins that collect."""
    found: tuple[list[Row], list[Row]] = [], []
    for one in some:
        found[template(one).collects].append(one)
    return found


class ByShape(Strategy):
    """Plain joins whose anchor value many documents share: a hash join per shape over all its edges."""

    name, kind = "shapes", "joins"

    def take(self, groups: Mapping[int, JoinTable], statistics: Statistics) -> list[Bundle]:
        plain = {place: table for place, table in groups.items() if table.is_plain}
        taken = cheaper_by_shape(plain, statistics)
        return [self.bundle(taken)] if taken else []

    def operator(self, placed: Placed) -> ShapeJoins:
        return ShapeJoins(placed.groups)  # type: ignore[arg-type]


class ByEdgeSets(Strategy):
    """All plain joins of a segment together: the set of equal values of two documents decides which queries hold."""

    name, kind = "edge-sets", "joins"

    def take(self, groups: Mapping[int, JoinTable], statistics: Statistics) -> list[Bundle]:
        plain = [place for place, table in groups.items() if table.is_plain]
        return [self.bundle(plain)] if plain else []

    def operator(self, placed: Placed) -> EdgeSetJoins:
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

    def operator(self, placed: Placed) -> JoinsByRows:
        return JoinsByRows(placed.groups)  # type: ignore[arg-type]


class ByMultiwayJoin(Strategy):
    """Joins of any number of streams, one template at a time: combinations grow side by side (an MJoin)."""

    name, kind = "mjoin", "joins"

    def take(self, groups: Mapping[int, JoinTable], statistics: Statistics) -> list[Bundle]:
        return [self.bundle([place]) for place, table in groups.items() if not table.template.collects]

    def operator(self, placed: Placed) -> MultiwayJoins:
        return MultiwayJoins(placed.groups)  # type: ignore[arg-type]


class ByWindows(Strategy):
    """All annotation joins of a segment together. They share windows over the same items and equal comparisons."""

    name, kind = "windows", "joins"

    def take(self, groups: Mapping[int, QueryTable], statistics: Statistics) -> list[Bundle]:
        return [self.bundle(groups)] if groups else []

    def operator(self, placed: Placed) -> AnnotationJoins:
        return AnnotationJoins(placed.groups)  # type: ignore[arg-type]
