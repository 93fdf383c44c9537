"""Selections: groups are constant tables, each with the queries of one template and one anchor (constant_tables.py).

Strategies (strategies.py) decide how the tables of a segment are evaluated: by their anchors, as regions, or as twigs.
Their operators are objects with `segment`, `source`, `matches` and `planned_by`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fishweir.algebra.codec import from_json
from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.normal import Template, dotted
from fishweir.evaluate.arrays import Ints, take, to_column
from fishweir.evaluate.group import (
    CompactQueries,
    Drift,
    ExplainContext,
    Group,
    GroupSummary,
    Kind,
    PlacedBundle,
    Stage,
    Strategy,
)
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.query_rows import PathRow, QueryRow, by_template
from fishweir.evaluate.select.anchors import Anchor, split_by_anchor
from fishweir.evaluate.select.constant_tables import Table, build_table, merge_tables, table_from_arrays
from fishweir.evaluate.select.explain import describe_tables, explain_selection
from fishweir.evaluate.select.many_paths import many_paths, read_paths
from fishweir.evaluate.select.region_rule import SMALL
from fishweir.evaluate.select.regions import attribute_count
from fishweir.evaluate.select.relaxed import RelaxedTables
from fishweir.evaluate.select.strategies import SelectionOperator, TableOperator
from fishweir.evaluate.statistics import Statistics, path_key
from fishweir.evaluate.witnesses.path_tables import Path, PathTable

FEW_VALUES = 500
"""A number of values that may not be typical. The strategies of tables are inspected from twice as many on."""


class Selections(Kind):
    name = "selections"

    def build(self, rows: Iterable[QueryRow], statistics: Statistics) -> list[Group]:
        """One table per template and anchor. The current statistics choose the anchors."""
        grouped = by_template(rows).items()
        return [table for template, columns in grouped for table in _tables(template, *columns, statistics)]

    def compact(
        self, rows: Iterable[PathRow], requested: Sequence[Strategy]
    ) -> tuple[Sequence[CompactQueries], Sequence[QueryRow]]:
        return many_paths(rows, requested)

    def merge(self, groups: Sequence[Table], dropped: Ints, statistics: Statistics) -> list[Group]:
        """Merges tables with the same template and anchor. Each query stays in its first group."""
        grouped: dict[tuple[Template, Anchor], list[Table]] = defaultdict(list)
        for table in groups:
            grouped[table.template, table.anchor].append(table)
        merged = (merge_tables(tables, dropped) for tables in grouped.values())
        return [table for table in merged if table is not None]

    def drift(self, group: Table) -> Drift | None:
        """Statistics of the anchor's values, which decide whether a large table keeps its anchor or becomes regions."""
        template, anchor = group.template, group.anchor
        if group.size < SMALL or not anchor.conditions or attribute_count(template) < 2:
            return None
        return Drift((path_key(template.source, dotted(template.path(anchor.node))),), FEW_VALUES)

    def read(self, header: Any, arrays: Mapping[str, Any]) -> Group:
        template, node, conditions = header
        return table_from_arrays(from_json(template), Anchor(node, tuple(conditions)), arrays)

    def read_all(self, header: Any, arrays: Mapping[str, Any]) -> Sequence[Group]:
        if len(header) > 1:
            return [self.read(header, arrays)]
        rows = read_paths(from_json(header[0]), arrays)
        return [table for some in rows for table in self.build(some, {})]

    def stage(self, operators: Sequence[SelectionOperator]) -> Stage:
        return SelectionStage(operators)

    def explain(self, number: int, template: Any, constants: Sequence[Constant], about: ExplainContext) -> list[str]:
        return explain_selection(number, template, constants, about)

    def describe(self, bundles: Sequence[PlacedBundle]) -> tuple[list[GroupSummary], list[str]]:
        return describe_tables(bundles), []


def _tables(
    template: Template, numbers: list[int], rows: list[Sequence[Constant]], statistics: Statistics
) -> Iterator[Table]:
    columns = [to_column(values, kind) for kind, values in zip(template.types, zip(*rows, strict=True), strict=True)]
    all_numbers = np.array(numbers, dtype=np.int64)
    anchors = split_by_anchor(template, columns, statistics)
    if len(anchors) == 1:
        yield build_table(template, anchors[0][0], all_numbers, columns)
        return
    for anchor, places in anchors:
        yield build_table(template, anchor, all_numbers[places], [take(column, places) for column in columns])


class SelectionStage(Stage):
    """Operators by source. A batch is matched only by the operators of its own sources."""

    def __init__(self, operators: Sequence[SelectionOperator]) -> None:
        self.by_source: dict[Source, list[SelectionOperator]] = defaultdict(list)
        for operator in operators:
            self.by_source[operator.source].append(operator)
        self._relaxed: dict[tuple[tuple[Source, ...], frozenset[Path]], list[tuple[str, RelaxedTables]]] = {}

    def relaxed(self, sources: Sequence[Source], paths: frozenset[Path]) -> Sequence[tuple[str, RelaxedTables]]:
        key = tuple(sources), paths
        if key not in self._relaxed:
            over = [one for one in self._over(sources) if isinstance(one, TableOperator)]
            self._relaxed[key] = [(one.segment, RelaxedTables(one.placed, one.tables, paths)) for one in over]
        return self._relaxed[key]

    def matches(
        self, sources: Sequence[Source], witnesses: Mapping[Path, PathTable]
    ) -> Iterator[tuple[str, int, Matches]]:
        for operator in self._over(sources):
            for index, matches in operator.matches(witnesses):
                yield operator.segment, index, matches

    def counted(self, sources: Sequence[Source]) -> tuple[list[Path], set[Path]]:
        found = (path for operator in self._over(sources) for path in operator.planned_by())
        return list(dict.fromkeys(found)), {path for operator in self._over(sources) for path in operator.worded()}

    def _over(self, sources: Sequence[Source]) -> Iterator[SelectionOperator]:
        return (operator for source in sources for operator in self.by_source.get(source, ()))
