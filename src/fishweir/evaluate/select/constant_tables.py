"""Constant tables: the queries of one template with one anchor, sorted for lookup.

In: the query numbers and constant columns of one template. Out: an index over the anchor's constants (constants.py),
`members` (the query number at each position of the index), and the other constants by position, for the conditions that
are checked after the lookup. Immutable; written to a segment file and mapped from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.normal import ConstantCondition, Template
from fishweir.evaluate.arrays import Column, Ints, take
from fishweir.evaluate.index.constants import Equal, Everything, Interval
from fishweir.evaluate.index.indexes import Index, index_for, is_exact, order_for, sieve_for
from fishweir.evaluate.index.registry import Sift
from fishweir.evaluate.index.words import Words
from fishweir.evaluate.select.anchors import Anchor
from fishweir.evaluate.witnesses.path_tables import Path


@dataclass(frozen=True)
class Table:
    """`numbers` and `columns` have one row per query. `rows` maps positions to rows."""

    kind: ClassVar[str] = "selections"

    template: Template
    anchor: Anchor
    numbers: Ints
    columns: tuple[Column, ...]
    rows: Ints | None
    built: Index | None = None
    """The index, if it was built in advance. Small tables are mostly twigs and need none, so theirs is built on the
    first lookup."""

    @cached_property
    def index(self) -> Index:
        if self.built is not None:
            return self.built
        return _index(self.template, self.anchor, self.columns, len(self.numbers))[1]

    @property
    def residual(self) -> tuple[int, ...]:
        """The constant conditions that remain to be checked after the lookup. A condition of several words is looked up
        by one of them, so it remains too."""
        looked_up = self.anchor.conditions if is_exact(self.index) else ()
        return tuple(i for i in range(len(self.template.constants)) if i not in looked_up)

    @cached_property
    def sieve(self) -> tuple[ConstantCondition, Sift, NDArray[np.uint64]] | None:
        """A remaining condition that most candidates fail, its test, and the key of its constant at each position; None
        if no condition has such a test."""
        for i in self.residual:
            condition = self.template.constants[i]
            found = sieve_for(condition.op) if i not in self.anchor.conditions else None
            if found is not None:
                keys = found.keys(self.columns[condition.slot])
                return condition, found.sift, keys if self.rows is None else keys[self.rows]
        return None

    @property
    def source(self) -> Source:
        return self.template.source

    @property
    def own_paths(self) -> dict[Path, bool]:
        return template_paths(self.template)

    def paths(self, sources: Sequence[Source]) -> dict[Path, bool]:
        return self.own_paths if self.source in sources else {}

    def header(self) -> Any:
        return [self.template, self.anchor.node, self.anchor.conditions]

    def arrays(self) -> dict[str, Any]:
        return table_arrays(self)

    @property
    def size(self) -> int:
        return len(self.numbers)

    @cached_property
    def members(self) -> Ints:
        """The query number at each position."""
        return self.numbers if self.rows is None else self.numbers[self.rows]

    @property
    def anchor_constants(self) -> set[tuple[Constant, ...]]:
        """The distinct constants of the anchor: one output of the group's split each. Without a condition, one empty
        tuple."""
        if isinstance(self.index, Equal):
            return {(constant,) for constant in self.index.constants.to_pylist()}
        picked = [self.columns[self.template.constants[i].slot] for i in self.anchor.conditions]
        return set(zip(*(column.tolist() for column in picked), strict=True)) if picked else {()}

    def constants_at(self, slot: int, positions: Ints) -> Column:
        rows = positions if self.rows is None else self.rows[positions]
        return take(self.columns[slot], rows)

    def positions_of(self, number: int) -> Ints:
        return np.flatnonzero(self.members == number)


def template_paths(template: Template) -> dict[Path, bool]:
    """The paths that a template is matched by, and whether their values are read."""
    compared = {c.node for c in template.constants} | {n for j in template.joins for n in (j.left, j.right)}
    paths = {template.path(i): i in compared for i in dict.fromkeys((*template.leaves, *compared))}
    paths |= {condition.path: True for condition in template.negated}
    for absence in template.absent:
        below = template_paths(absence.template)
        paths |= {path: valued or paths.get(path, False) for path, valued in below.items()}
    return paths


def build_table(template: Template, anchor: Anchor, numbers: Ints, columns: Sequence[Column]) -> Table:
    """Sorts the queries by the anchor's constants and indexes them; the inputs are in registration order."""
    if len(numbers) == 1 and len(anchor.conditions) < 2:
        return Table(template, anchor, numbers, tuple(columns), None)
    ordered = _order(template, anchor, columns, len(numbers))
    numbers, columns = numbers[ordered], tuple(take(column, ordered) for column in columns)
    rows, index = _index(template, anchor, columns, len(numbers))
    return Table(template, anchor, numbers, columns, rows, index)


def merge_tables(tables: Sequence[Table], dead: Ints) -> Table | None:
    """Several tables with the same template and anchor merged into one, without the dead queries."""
    first = tables[0]
    numbers = np.concatenate([table.numbers for table in tables])
    keep = np.flatnonzero(~np.isin(numbers, dead))
    keep = keep[np.argsort(numbers[keep], kind="stable")]
    if not len(keep):
        return None
    columns = [take(concatenated(parts), keep) for parts in zip(*(t.columns for t in tables), strict=True)]
    return build_table(first.template, first.anchor, numbers[keep], columns)


def concatenated(parts: Sequence[Column]) -> Column:
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pa.concat_arrays(parts)


def _order(template: Template, anchor: Anchor, columns: Sequence[Column], size: int) -> Ints:
    if len(anchor.conditions) != 1:
        return np.arange(size)
    condition = template.constants[anchor.conditions[0]]
    return order_for(condition.op, condition.type, columns[condition.slot])


def _index(template: Template, anchor: Anchor, columns: Sequence[Column], size: int) -> tuple[Ints | None, Index]:
    picked = [template.constants[i] for i in anchor.conditions]
    match picked:
        case []:
            return None, Everything(size)
        case [condition]:
            return None, index_for(condition.op, condition.type, condition.part, columns[condition.slot])
        case [lower, upper]:
            lo, hi = columns[lower.slot], columns[upper.slot]
            tree, rows = Interval.build(lo, hi, lower.op, upper.op, lower.part)
            return rows, tree
    raise AssertionError(picked)


# Serialization to segment files: arrays by name, everything else in the header.

INDEX_ARRAYS: dict[type, tuple[str, ...]] = {
    Equal: ("hashes", "constants", "starts"), Interval: ("endpoints", "levels", "starts", "by_a", "by_b"),
}  # fmt: skip
"""The stored arrays of an index. Other indexes are their constants, or are built from them on the first lookup."""


def table_arrays(table: Table) -> dict[str, Any]:
    arrays = {f"column{i}": column for i, column in enumerate(table.columns)}
    if table.built is None:
        return {"numbers": table.numbers, **arrays}
    source = table.index.words if isinstance(table.index, Words) else table.index
    index = {f"index.{name}": getattr(source, name) for name in INDEX_ARRAYS.get(type(source), ())}
    if isinstance(table.index, Words):
        index["index.exact"] = table.index.exact
    rows = {} if table.rows is None else {"rows": table.rows}
    return {"numbers": table.numbers, **rows, **arrays, **index}


def table_from_arrays(template: Template, anchor: Anchor, arrays: Mapping[str, Any]) -> Table:
    columns = tuple(arrays[f"column{i}"] for i in range(len(template.types)))
    picked = [template.constants[i] for i in anchor.conditions]
    index: Index | None = None
    if len(picked) == 2:
        index = Interval(**{name: arrays[f"index.{name}"] for name in INDEX_ARRAYS[Interval]}, part=picked[0].part)
    elif "index.hashes" in arrays:
        equal = Equal(**{name: arrays[f"index.{name}"] for name in INDEX_ARRAYS[Equal]})
        index = Words(equal, arrays["index.exact"]) if "index.exact" in arrays else equal
    return Table(template, anchor, arrays["numbers"], columns, arrays.get("rows"), index)
