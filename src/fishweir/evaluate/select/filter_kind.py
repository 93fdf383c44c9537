"""Filters: all predicates of a source form one group, factorized into one plan (filters.py, filter_plan.py)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.normal import dotted
from fishweir.algebra.predicates import Predicate
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
    Strategy,
)
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.query_rows import Columns, QueryRow, by_template
from fishweir.evaluate.select.explain import describe_filters, explain_filters
from fishweir.evaluate.select.filter_plan import build_filters, merge_filters, replanned
from fishweir.evaluate.select.filters import FilterTable, filters_from_arrays, match_filters
from fishweir.evaluate.select.kind import SelectionStage
from fishweir.evaluate.statistics import Statistics, path_key
from fishweir.evaluate.witnesses.path_tables import Path, PathTable


class Filters(Kind):
    name = "filters"

    def build(self, rows: Iterable[QueryRow], statistics: Statistics) -> list[Group]:
        by_source: dict[Source, dict[Predicate, Columns]] = defaultdict(dict)
        for predicate, columns in by_template(rows).items():
            by_source[predicate.source][predicate] = columns
        return [build_filters(source, some, statistics) for source, some in by_source.items()]

    def merge(self, groups: Sequence[FilterTable], dropped: Ints, statistics: Statistics) -> list[Group]:
        """Replans a source's filters if they come from several groups or if some are dropped."""
        by_source: dict[Source, list[FilterTable]] = defaultdict(list)
        for group in groups:
            by_source[group.source].append(group)
        merged: list[FilterTable | None] = []
        for plans in by_source.values():
            same = len(plans) == 1 and not np.isin(plans[0].members, dropped).any()
            merged.append(plans[0] if same else merge_filters(plans, dropped, statistics))
        return [group for group in merged if group is not None]

    def read(self, header: Any, arrays: Mapping[str, Any]) -> Group:
        return filters_from_arrays(header, arrays)

    def stage(self, operators: Sequence[Any]) -> Stage:
        return SelectionStage(operators)

    def drift(self, group: FilterTable) -> Drift:
        return Drift(tuple(path_key(group.source, dotted(one.signature.path)) for one in group.groups), group.counted)

    def replanned(self, group: FilterTable, statistics: Statistics) -> Group | None:
        return replanned(group, statistics)

    def explain(self, number: int, template: Any, constants: Sequence[Constant], about: ExplainContext) -> list[str]:
        return explain_filters(number, template, constants, about)

    def describe(self, bundles: Sequence[PlacedBundle]) -> tuple[list[GroupSummary], list[str]]:
        return [], describe_filters(bundles)


@dataclass(frozen=True)
class FilterOperator:
    """The plan of one source in one segment."""

    placed: PlacedBundle

    @property
    def table(self) -> FilterTable:
        (table,) = self.placed.groups
        return table  # type: ignore[return-value]

    @property
    def segment(self) -> str:
        return self.placed.segment

    @property
    def source(self) -> Source:
        return self.table.source

    def matches(self, witnesses: Mapping[Path, PathTable]) -> Iterator[tuple[int, Matches]]:
        matches = match_filters(self.table, witnesses)
        if matches is not None:
            yield self.placed.first, matches

    def planned_by(self) -> Iterator[Path]:
        return (path for path, valued in self.table.own_paths.items() if valued)

    def worded(self) -> Iterator[Path]:
        return iter(self.table.worded)


class FactorizedFilters(Strategy):
    """VCA with VCB (RoSeS 4.3 and 5): one plan per source, in which each shared conjunction is evaluated once."""

    name, kind = "vcb", "filters"

    def take(self, groups: Mapping[int, Any], statistics: Statistics) -> list[Bundle]:
        return [self.bundle([place]) for place in groups]

    def operator(self, placed: PlacedBundle) -> FilterOperator:
        return FilterOperator(placed)
