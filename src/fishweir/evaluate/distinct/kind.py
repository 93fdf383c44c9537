"""The `distinct` kind: it wraps the kinds that select documents, and passes on the first document of each key."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fishweir.algebra.codec import from_json
from fishweir.algebra.nodes import Constant
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.bundles import to_bundles
from fishweir.evaluate.distinct.group import DistinctGroup
from fishweir.evaluate.distinct.stage import DistinctOperator, DistinctStage
from fishweir.evaluate.distinct.state import state_from_arrays
from fishweir.evaluate.group import (
    Bundle,
    ExplainContext,
    Group,
    GroupSummary,
    Kind,
    PlacedBundle,
    Stage,
    State,
    Strategy,
)
from fishweir.evaluate.query_rows import QueryRow
from fishweir.evaluate.select.filter_kind import Filters
from fishweir.evaluate.select.kind import Selections
from fishweir.evaluate.select.rules import SELECTING
from fishweir.evaluate.statistics import Statistics

INNER: dict[str, Kind] = {kind.name: kind for kind in (Selections(), Filters())}


class DistinctKind(Kind):
    name = "distinct"

    def build(self, rows: Iterable[QueryRow], statistics: Statistics) -> list[Group]:
        found: dict[tuple[Any, ...], list[QueryRow]] = defaultdict(list)
        for number, template, constants in rows:
            own = (template.distinct, template.sources, template.inner.kind)
            found[own].append((number, template.inner, constants))
        return [
            DistinctGroup(distinct, sources, group)
            for (distinct, sources, kind), own in found.items()
            for group in INNER[kind].build(own, statistics)
        ]

    def merge(self, groups: Sequence[DistinctGroup], dropped: Ints, statistics: Statistics) -> list[Group]:
        found: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
        for group in groups:
            found[group.merge_key].append(group.inner)
        return [
            DistinctGroup(distinct, sources, group)
            for (distinct, sources, kind), own in found.items()
            for group in INNER[kind].merge(own, dropped, statistics)
        ]

    def read(self, header: Any, arrays: Mapping[str, Any]) -> Group:
        distinct, sources, kind, own = header
        return DistinctGroup(from_json(distinct), from_json(sources), INNER[kind].read(own, arrays))

    def stage(self, operators: Sequence[DistinctOperator]) -> Stage:
        return DistinctStage(operators, INNER)

    def read_state(self, arrays: Mapping[str, Any]) -> State:
        return state_from_arrays(arrays)

    def explain(self, number: int, template: Any, constants: Sequence[Constant], about: ExplainContext) -> list[str]:
        kind = template.inner.kind
        own = replace(about, bundles=[one for placed in about.bundles for one in inner_bundles(placed, kind)])
        lines = INNER[kind].explain(number, template.inner, constants, own)
        return [*lines, f"  distinct  {template.distinct}, in arrival order"]

    def describe(self, bundles: Sequence[PlacedBundle]) -> tuple[list[GroupSummary], list[str]]:
        described, lines = list[GroupSummary](), list[str]()
        for name, kind in INNER.items():
            some, more = kind.describe([one for placed in bundles for one in inner_bundles(placed, name)])
            described += some
            lines += more
        return described, lines


class FirstOfEach(Strategy):
    """Evaluates all groups of a segment together. The rules choose how the documents of each group are selected."""

    name, kind = "first-of-each", "distinct"

    def take(self, groups: Mapping[int, Any], statistics: Statistics) -> list[Bundle]:
        if not groups:
            return []
        inner = to_bundles({place: group.inner for place, group in groups.items()}, SELECTING, statistics)
        arrays = {f"{i}:{name}": array for i, one in enumerate(inner) for name, array in one.arrays.items()}
        return [self.bundle(groups, json.dumps([one.header() for one in inner]), arrays)]

    def operator(self, placed: PlacedBundle) -> DistinctOperator:
        rules = {rule.name: rule for rule in SELECTING}
        inner = [
            (kind, rules[one.bundle.strategy].operator(one)) for kind in INNER for one in inner_bundles(placed, kind)
        ]
        groups: Any = dict(zip(placed.bundle.groups, placed.groups, strict=True))
        return DistinctOperator(placed.segment, groups, inner)


def inner_bundles(placed: PlacedBundle, kind: str) -> list[PlacedBundle]:
    """The bundles of inner groups of one kind."""
    groups: dict[int, Any] = dict(zip(placed.bundle.groups, placed.groups, strict=True))
    found = []
    for i, one in enumerate(json.loads(placed.bundle.parameter)):
        own = {name: array for name, array in placed.bundle.arrays.items() if name.startswith(f"{i}:")}
        bundle = Bundle.read(one, {name.partition(":")[2]: array for name, array in own.items()})
        inner = tuple(groups[place].inner for place in bundle.groups)
        if inner[0].kind == kind:
            found.append(PlacedBundle(placed.segment, bundle, inner))
    return found
