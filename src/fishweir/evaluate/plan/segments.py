"""Segments: immutable pieces of the shared plan, one file each, mapped by every worker that needs it.

A segment holds the tables of the queries whose change numbers lie in (after, upto]. One more query
among a million is a new segment of one row: the others do not travel again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from fishweir.algebra.annotations import AnnotationTemplate
from fishweir.algebra.codec import from_json, to_json
from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.normal import Template
from fishweir.algebra.predicates import Predicate
from fishweir.evaluate.arrays import Ints, read_arrays, to_column, write_arrays
from fishweir.evaluate.join.annotations.tables import (
    AnnotationRow,
    AnnotationTable,
    annotation_arrays,
    annotation_header,
    annotations_from_arrays,
    build_annotations,
    merge_annotations,
)
from fishweir.evaluate.join.many.tables import (
    ManyTable,
    build_many,
    many_arrays,
    many_from_arrays,
    many_header,
    merge_many,
)
from fishweir.evaluate.join.tables import (
    JoinTable,
    build_join,
    join_arrays,
    join_from_arrays,
    join_header,
    merge_joins,
)
from fishweir.evaluate.select.anchors import Anchor, choose_anchor
from fishweir.evaluate.select.constant_tables import Table, build_table, merge_tables, table_arrays, table_from_arrays
from fishweir.evaluate.select.filter_plan import build_filters, merge_filters
from fishweir.evaluate.select.filters import FilterTable, filter_arrays, filter_header, filters_from_arrays
from fishweir.evaluate.select.region_rule import Pool
from fishweir.evaluate.select.regions import Pooled
from fishweir.evaluate.statistics import Statistics
from fishweir.evaluate.witnesses.path_tables import Path

QueryRow = tuple[int, Template | Predicate | JoinTemplate | AnnotationTemplate, Sequence[Constant]]
"""A query as the plan sees it: its number, its template, its constants in the template's order."""

AnyTable = Table | FilterTable | JoinTable | ManyTable | AnnotationTable


@dataclass(frozen=True)
class Segment:
    """Filter plans come after the tables, then joins, of two and of more, then annotations.

    `pools` are the tables that are evaluated together as boxes."""

    id: str
    tables: tuple[AnyTable, ...]
    pools: tuple[Pool, ...] = ()

    @cached_property
    def pooled(self) -> tuple[Pooled, ...]:
        return tuple(pool.of(plain_tables(self.tables)) for pool in self.pools)

    @property
    def size(self) -> int:
        return sum(table.size for table in self.tables)

    def join_paths(self, sources: tuple[Source, ...]) -> dict[Path, bool]:
        """What its joins read of some sources, and whether the values: worked out once per segment."""
        if sources not in self._join_paths:
            found: dict[Path, bool] = {}
            for table in self.tables:
                for path, valued in table.paths(sources).items() if isinstance(table, JoinTable | ManyTable) else ():
                    found[path] = found.get(path, False) or valued
            self._join_paths[sources] = found
        return self._join_paths[sources]

    @cached_property
    def _join_paths(self) -> dict[tuple[Source, ...], dict[Path, bool]]:
        return {}


def plain_tables(tables: Iterable[AnyTable]) -> list[Table]:
    """Without filter plans and joins: their places stay what they are."""
    return [table for table in tables if isinstance(table, Table)]


def build_tables(queries: Iterable[QueryRow], statistics: Statistics) -> tuple[AnyTable, ...]:
    """One table per template, its anchor chosen by the statistics of the moment; one filter plan per source."""
    grouped: dict[Template, tuple[list[int], list[Sequence[Constant]]]] = defaultdict(lambda: ([], []))
    filters: dict[Source, list[tuple[int, Predicate, Sequence[Constant]]]] = defaultdict(list)
    joins: dict[JoinTemplate, tuple[list[int], list[Sequence[Constant]]]] = defaultdict(lambda: ([], []))
    many: dict[JoinTemplate, tuple[list[int], list[Sequence[Constant]]]] = defaultdict(lambda: ([], []))
    annotations: list[AnnotationRow] = []
    for number, template, constants in queries:
        if isinstance(template, Predicate):
            filters[template.source].append((number, template, constants))
            continue
        if isinstance(template, AnnotationTemplate):
            annotations.append((number, template, constants))
            continue
        if isinstance(template, JoinTemplate):
            numbers, rows = joins[template] if len(template.sides) == 2 else many[template]
        else:
            numbers, rows = grouped[template]
        numbers.append(number)
        rows.append(constants)
    tables = [_table(template, *columns, statistics) for template, columns in grouped.items()]
    plans = [build_filters(source, some, statistics) for source, some in filters.items()]
    joined = [build_join(template, *columns, statistics) for template, columns in joins.items()]
    noted = [build_annotations(annotations, statistics)] if annotations else []
    several = [build_many(template, *columns) for template, columns in many.items()]
    return (*tables, *plans, *joined, *several, *noted)


def _table(template: Template, numbers: list[int], rows: list[Sequence[Constant]], statistics: Statistics) -> Table:
    columns = [to_column(values, kind) for kind, values in zip(template.types, zip(*rows, strict=True), strict=True)]
    anchor = choose_anchor(template, columns, statistics)
    return build_table(template, anchor, np.array(numbers, dtype=np.int64), columns)


def merge_segments(segments: Iterable[Segment], dead: Ints, statistics: Statistics) -> tuple[AnyTable, ...]:
    """The tables of several segments as one: each query in the group it was put into at first; a source's
    filters planned anew if they come from several tables or some are dead."""
    grouped: dict[tuple[Template, Anchor], list[Table]] = defaultdict(list)
    filters: dict[Source, list[FilterTable]] = defaultdict(list)
    joins: dict[tuple[JoinTemplate, int, bool], list[JoinTable]] = defaultdict(list)
    many: dict[JoinTemplate, list[ManyTable]] = defaultdict(list)
    annotations: list[AnnotationTable] = []
    for segment in segments:
        for table in segment.tables:
            if isinstance(table, FilterTable):
                filters[table.source].append(table)
            elif isinstance(table, JoinTable):
                joins[table.template, table.anchor, table.above].append(table)
            elif isinstance(table, ManyTable):
                many[table.template].append(table)
            elif isinstance(table, AnnotationTable):
                annotations.append(table)
            else:
                grouped[table.template, table.anchor].append(table)
    merged: list[AnyTable | None] = [merge_tables(tables, dead) for tables in grouped.values()]
    for plans in filters.values():
        same = len(plans) == 1 and not np.isin(plans[0].members, dead).any()
        merged.append(plans[0] if same else merge_filters(plans, dead, statistics))
    merged += [merge_joins(tables, dead) for tables in joins.values()]
    merged += [merge_many(some, dead) for some in many.values()]
    if annotations:
        merged.append(merge_annotations(annotations, dead, statistics))
    return tuple(table for table in merged if table is not None)


def write_segment(folder: FilePath, segment: Segment) -> None:
    headers = [table_header(table) for table in segment.tables]
    header = {"tables": headers, "pools": [asdict(pool) for pool in segment.pools]}
    arrays = {f"{i}:{k}": v for i, table in enumerate(segment.tables) for k, v in _arrays(table).items()}
    write_arrays(segment_path(folder, segment.id), header, arrays)


def read_segment(folder: FilePath, id: str) -> Segment:
    header: Any
    header, arrays = read_arrays(segment_path(folder, id))
    per_table: dict[int, dict[str, Any]] = defaultdict(dict)
    for name, array in arrays.items():
        index, _, key = name.partition(":")
        per_table[int(index)][key] = array
    tables = tuple(table_from_header(head, per_table[i]) for i, head in enumerate(header["tables"]))
    return Segment(id, tables, tuple(Pool(tuple(p["tables"]), p["strategy"]) for p in header["pools"]))


def table_header(table: AnyTable) -> list[Any]:
    if isinstance(table, FilterTable):
        return filter_header(table)
    if isinstance(table, JoinTable):
        return join_header(table)
    if isinstance(table, ManyTable):
        return many_header(table)
    if isinstance(table, AnnotationTable):
        return annotation_header(table)
    return ["table", to_json(table.template), table.anchor.node, table.anchor.conditions]


def _arrays(table: AnyTable) -> dict[str, Any]:
    if isinstance(table, FilterTable):
        return filter_arrays(table)
    if isinstance(table, AnnotationTable):
        return annotation_arrays(table)
    if isinstance(table, ManyTable):
        return many_arrays(table)
    return join_arrays(table) if isinstance(table, JoinTable) else table_arrays(table)


def table_from_header(header: list[Any], arrays: dict[str, Any]) -> AnyTable:
    if header[0] == "filters":
        return filters_from_arrays(header, arrays)
    if header[0] == "join":
        return join_from_arrays(header, arrays)
    if header[0] == "many":
        return many_from_arrays(header, arrays)
    if header[0] == "annotations":
        return annotations_from_arrays(header, arrays)
    _, template, node, conditions = header
    return table_from_arrays(from_json(template), Anchor(node, tuple(conditions)), arrays)


def segment_path(folder: FilePath, id: str) -> FilePath:
    return folder / f"segment-{id}.bin"
