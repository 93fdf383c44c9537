"""Joins: groups are join tables, each the queries of one join template with any number of sides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.nodes import Constant
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import Bundle, Described, Explained, Group, Kind, Placed, QueryRow, Stage, State, Strategy
from fishweir.evaluate.join.explain import describe_joins, explain_join
from fishweir.evaluate.join.join_tables import JoinTable, build_join, join_from_arrays, merge_joins
from fishweir.evaluate.join.operators import EdgeSetJoins, JoinOperator, JoinsByRows, MultiwayJoins
from fishweir.evaluate.join.rows.row_joins import join_signature
from fishweir.evaluate.join.stage import JoinStage
from fishweir.evaluate.join.state import run_from_arrays
from fishweir.evaluate.statistics import Statistics


class JoinKind(Kind):
    name, misses_late = "joins", True

    def build(self, rows: Iterable[QueryRow], statistics: Statistics) -> list[Group]:
        grouped: dict[JoinTemplate, tuple[list[int], list[Sequence[Constant]]]] = defaultdict(lambda: ([], []))
        for number, template, constants in rows:
            numbers, values = grouped[template]
            numbers.append(number)
            values.append(constants)
        return [build_join(template, *columns, statistics) for template, columns in grouped.items()]

    def merge(self, groups: Sequence[JoinTable], dropped: Ints, statistics: Statistics) -> list[Group]:
        grouped: dict[Hashable, list[JoinTable]] = defaultdict(list)
        for group in groups:
            grouped[group.merge_key].append(group)
        merged = (merge_joins(tables, dropped) for tables in grouped.values())
        return [table for table in merged if table is not None]

    def read(self, header: Any, arrays: Mapping[str, Any]) -> Group:
        return join_from_arrays(header, arrays)

    def stage(self, operators: Sequence[JoinOperator]) -> Stage:
        return JoinStage(operators)

    def read_state(self, arrays: Mapping[str, Any]) -> State:
        return run_from_arrays(arrays)

    def explain(self, number: int, template: Any, constants: Sequence[Constant], about: Explained) -> list[str]:
        return explain_join(number, template, constants, about)

    def describe(self, bundles: Sequence[Placed]) -> tuple[list[Described], list[str]]:
        return describe_joins(bundles), []


class ByEdgeSets(Strategy):
    """Plain joins of a segment together: the set of equal values of two documents decides which queries want them."""

    name, kind = "edge-sets", "joins"

    def take(self, groups: Mapping[int, JoinTable], statistics: Statistics) -> list[Bundle]:
        plain = [place for place, table in groups.items() if table.is_plain]
        return [self.bundle(plain)] if plain else []

    def operator(self, placed: Placed) -> EdgeSetJoins:
        return EdgeSetJoins(placed.groups)  # type: ignore[arg-type]


class ByRows(Strategy):
    """Joins of two streams with one signature together: rows looked up by value, by order or by time."""

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
    """Joins of any number of streams, each template by itself: combinations grow side by side (an MJoin)."""

    name, kind = "mjoin", "joins"

    def take(self, groups: Mapping[int, JoinTable], statistics: Statistics) -> list[Bundle]:
        return [self.bundle([place]) for place in groups]

    def operator(self, placed: Placed) -> MultiwayJoins:
        return MultiwayJoins(placed.groups)  # type: ignore[arg-type]
