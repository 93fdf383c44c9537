"""Segments: immutable pieces of the shared plan, one file each, mapped by every worker that needs it.

A segment holds the tables of the queries whose change numbers lie in (after, upto]. One more query
among a million is a new segment of one row: the others do not travel again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fishweir.algebra.codec import from_json, to_json
from fishweir.algebra.nodes import Constant, Step
from fishweir.algebra.normal import Template
from fishweir.sharing.arrays import Ints, read_arrays, to_column, write_arrays
from fishweir.sharing.grouping import Anchor, choose_anchor
from fishweir.sharing.pooled import Pooled
from fishweir.sharing.pools import Pool
from fishweir.sharing.statistics import Statistics
from fishweir.sharing.tables import Table, build_table, merge_tables, table_arrays, table_from_arrays

QueryRow = tuple[int, Template, Sequence[Constant]]
"""A query as the plan sees it: its number, its template, its constants in the template's order."""


@dataclass(frozen=True)
class Segment:
    """`pools` are the tables that are evaluated together as boxes."""

    id: str
    tables: tuple[Table, ...]
    pools: tuple[Pool, ...] = ()

    @cached_property
    def pooled(self) -> tuple[Pooled, ...]:
        return tuple(pool.of(self.tables) for pool in self.pools)

    @property
    def size(self) -> int:
        return sum(table.size for table in self.tables)


def build_tables(queries: Iterable[QueryRow], statistics: Statistics) -> tuple[Table, ...]:
    """One table per template; the anchor is chosen now, by the statistics of the moment."""
    grouped: dict[Template, tuple[list[int], list[Sequence[Constant]]]] = defaultdict(lambda: ([], []))
    for number, template, constants in queries:
        numbers, rows = grouped[template]
        numbers.append(number)
        rows.append(constants)
    return tuple(_table(template, *columns, statistics) for template, columns in grouped.items())


def _table(
    template: Template, numbers: list[int], rows: list[Sequence[Constant]], statistics: Statistics
) -> Table:
    rows = _rarest_first(template, rows)
    columns = [
        to_column(values, kind) for kind, values in zip(template.types, zip(*rows, strict=True), strict=True)
    ]
    anchor = choose_anchor(template, columns, statistics)
    return build_table(template, anchor, np.array(numbers, dtype=np.int64), columns)


def _rarest_first(template: Template, rows: list[Sequence[Constant]]) -> list[Sequence[Constant]]:
    """`contains` conditions on one path may change places: each query's longest word, as the rarest, goes
    first, so that the anchor, which is one condition for all, is a good one for each."""
    alike: dict[tuple[Step, ...], list[int]] = defaultdict(list)
    joined = {node for join in template.joins for node in (join.left, join.right)}
    for condition in template.constants:
        if condition.op == "contains" and condition.node not in joined:
            alike[template.path(condition.node)].append(condition.slot)
    for slots in alike.values():
        if len(slots) > 1:
            rows = [_sorted_at(row, slots) for row in rows]
    return rows


def _sorted_at(row: Sequence[Constant], slots: list[int]) -> Sequence[Constant]:
    changed = list(row)
    ordered = sorted((str(row[slot]) for slot in slots), key=lambda text: (-max(map(len, text.split())), text))
    for slot, constant in zip(slots, ordered, strict=True):
        changed[slot] = constant
    return changed


def merge_segments(segments: Iterable[Segment], dead: Ints) -> tuple[Table, ...]:
    """The tables of several segments as one, each query in the group it was put into at first."""
    grouped: dict[tuple[Template, Anchor], list[Table]] = defaultdict(list)
    for segment in segments:
        for table in segment.tables:
            grouped[table.template, table.anchor].append(table)
    merged = (merge_tables(tables, dead) for tables in grouped.values())
    return tuple(table for table in merged if table is not None)


def write_segment(folder: Path, segment: Segment) -> None:
    tables = [[to_json(t.template), t.anchor.node, t.anchor.conditions] for t in segment.tables]
    header = {"tables": tables, "pools": [asdict(pool) for pool in segment.pools]}
    arrays = {f"{i}:{k}": v for i, t in enumerate(segment.tables) for k, v in table_arrays(t).items()}
    write_arrays(segment_path(folder, segment.id), header, arrays)


def read_segment(folder: Path, id: str) -> Segment:
    header: Any
    header, arrays = read_arrays(segment_path(folder, id))
    per_table: dict[int, dict[str, Any]] = defaultdict(dict)
    for name, array in arrays.items():
        index, _, key = name.partition(":")
        per_table[int(index)][key] = array
    tables = (
        table_from_arrays(from_json(template), Anchor(node, tuple(conditions)), per_table[i])
        for i, (template, node, conditions) in enumerate(header["tables"])
    )
    return Segment(id, tuple(tables), tuple(Pool(tuple(p["tables"]), p["strategy"]) for p in header["pools"]))


def segment_path(folder: Path, id: str) -> Path:
    return folder / f"segment-{id}.bin"
