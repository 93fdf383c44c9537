"""Joins: groups are join tables, each the queries of one join template with any number of sides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from fishweir.algebra.codec import from_json
from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.nodes import Constant
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import Bundle, Described, Explained, Group, Kind, Placed, QueryRow, Stage, State, Strategy
from fishweir.evaluate.join.explain import describe_joins, explain_join
from fishweir.evaluate.join.join_tables import JoinTable, build_join
from fishweir.evaluate.join.many.many_tables import ManyTable, build_many
from fishweir.evaluate.join.operators import JoinOperator, Joins
from fishweir.evaluate.join.rows.row_joins import join_signature
from fishweir.evaluate.join.stage import JoinStage
from fishweir.evaluate.join.state import run_from_arrays
from fishweir.evaluate.statistics import Statistics

JoinGroup = JoinTable | ManyTable


class JoinKind(Kind):
    name, misses_late = "joins", True

    def build(self, rows: Iterable[QueryRow], statistics: Statistics) -> list[Group]:
        grouped: dict[JoinTemplate, tuple[list[int], list[Sequence[Constant]]]] = defaultdict(lambda: ([], []))
        for number, template, constants in rows:
            numbers, values = grouped[template]
            numbers.append(number)
            values.append(constants)
        return [_group(template, *columns, statistics) for template, columns in grouped.items()]

    def merge(self, groups: Sequence[Any], dropped: Ints, statistics: Statistics) -> list[Group]:
        grouped: dict[Hashable, list[Any]] = defaultdict(list)
        for group in groups:
            grouped[group.merge_key].append(group)
        merged = (first.merged(others, dropped) for first, *others in grouped.values())
        return [group for group in merged if group is not None]

    def read(self, header: Any, arrays: Mapping[str, Any]) -> Group:
        template: JoinTemplate = from_json(header[0])
        columns = tuple(arrays[f"column{i}"] for i in range(len(template.types)))
        if len(template.sides) > 2:
            return ManyTable(template, arrays["numbers"], columns)
        return JoinTable(template, header[1], arrays["numbers"], columns, header[2])

    def stage(self, operators: Sequence[JoinOperator]) -> Stage:
        return JoinStage(operators)

    def read_state(self, arrays: Mapping[str, Any]) -> State:
        return run_from_arrays(arrays)

    def explain(self, number: int, template: Any, constants: Sequence[Constant], about: Explained) -> list[str]:
        return explain_join(number, template, constants, about)

    def describe(self, bundles: Sequence[Placed]) -> tuple[list[Described], list[str]]:
        return describe_joins(bundles), []


def _group(
    template: JoinTemplate, numbers: list[int], rows: list[Sequence[Constant]], statistics: Statistics
) -> JoinGroup:
    if len(template.sides) > 2:
        return build_many(template, numbers, rows)
    return build_join(template, numbers, rows, statistics)


class ByEdgeSets(Strategy):
    """Plain joins of a segment together: the set of equal values of two documents decides which queries want them."""

    name, kind = "edge-sets", "joins"

    def take(self, groups: Mapping[int, Any], statistics: Statistics) -> list[Bundle]:
        plain = [place for place, table in groups.items() if len(table.template.sides) == 2 and table.is_plain]
        return [self.bundle(plain)] if plain else []

    def operator(self, placed: Placed) -> Joins:
        return Joins(placed.groups)  # type: ignore[arg-type]


class ByRows(Strategy):
    """Joins of two streams with one signature together: rows looked up by value, by order or by time."""

    name, kind = "rows", "joins"

    def take(self, groups: Mapping[int, Any], statistics: Statistics) -> list[Bundle]:
        signatures: dict[Hashable, list[int]] = defaultdict(list)
        for place, table in groups.items():
            if len(table.template.sides) == 2:
                signatures[join_signature(table)].append(place)
        return [self.bundle(places) for places in signatures.values()]

    def operator(self, placed: Placed) -> Joins:
        return Joins(placed.groups)  # type: ignore[arg-type]


class ByMultiwayJoin(Strategy):
    """Joins of any number of streams, each template by itself: combinations grow side by side (an MJoin)."""

    name, kind = "mjoin", "joins"

    def take(self, groups: Mapping[int, Any], statistics: Statistics) -> list[Bundle]:
        return [self.bundle([place]) for place in groups]

    def operator(self, placed: Placed) -> Joins:
        return Joins(placed.groups)  # type: ignore[arg-type]
