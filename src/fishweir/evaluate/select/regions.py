"""Combines tables into one set of query regions (Spatial Join CQ 4.1) that are looked up together.

In: tables of one source, whose templates may constrain different attributes. Out: a `RegionSet` with the attributes,
the regions of all queries over them, and the kernel that joins a batch of bindings with the regions (boxes/). A query
does not constrain attributes that its own template does not mention. A position identifies a query of a table, with the
tables concatenated.

A side of a region is `< <= = >= >` with a constant, on a number, on a part of a date, or on a string by its
order-preserving code. Several sides on one attribute intersect. All other conditions are checked on the pairs that the
regions let through (region_match.py). A value that is missing or not a number is NaN and satisfies no side. Shared:
the index is mapped from the segment if the rules chose its kernel. Everything else is built from the columns of the
tables on first use, once per process, and is kept while the segment is cached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from fishweir.algebra.nodes import Source
from fishweir.algebra.normal import ANY_ROOT, ConstantCondition, Template, dotted
from fishweir.evaluate.arrays import Column, Ints
from fishweir.evaluate.group import PlacedBundle
from fishweir.evaluate.select.bindings import bound_nodes
from fishweir.evaluate.select.boxes import KERNELS, STORED, Boxes, Index, StringCodes
from fishweir.evaluate.select.boxes.regions import HIGHEST, LOWEST, Floats, Keys, float_keys
from fishweir.evaluate.select.constant_tables import Table
from fishweir.evaluate.witnesses.path_tables import Path, PathTable

SIDES = ("<", "<=", "=", ">=", ">")
LEAST, MOST = (int(key) for key in float_keys([-np.inf, np.inf]))


@dataclass(frozen=True, slots=True)
class Attribute:
    """An axis of the regions: the value of the node at a place. Places are nodes of the pattern, or paths."""

    place: int
    type: str
    part: str


def is_side(condition: ConstantCondition) -> bool:
    return condition.op in SIDES and condition.type in ("number", "string")


def is_flat(template: Template) -> bool:
    """Whether all conditions are on the document element and its children, with each path once: all tuples, most items.

    Such templates are bound together: each path is joined if it is present, and the document is the only output.
    """
    paths = [template.path(node) for node in range(1, len(template.nodes))]
    below = all(node.parent == 0 for node in template.nodes[1:])
    return template.nodes[0].step == ANY_ROOT and below and len(set(paths)) == len(paths) and template.outputs == (0,)


def sides(template: Template) -> tuple[int, ...]:
    """The conditions that are sides of a region."""
    return tuple(i for i, condition in enumerate(template.constants) if is_side(condition))


def attribute_count(template: Template) -> int:
    """The number of axes of a template's regions; 0 if it has absences, because checking them requires its bindings."""
    if template.absent:
        return 0
    picked = (template.constants[i] for i in sides(template))
    return len({(c.node, c.type, c.part) for c in picked})


def required(template: Template) -> set[int]:
    """Nodes that must be present although no side of a region refers to them."""
    return set(bound_nodes(template)) - {template.constants[i].node for i in sides(template)} - {0}


@dataclass(frozen=True)
class RegionSet:
    """Tables that are looked up together. `indexes` are their places in the segment. `strategy` is a key of KERNELS."""

    tables: tuple[Table, ...]
    indexes: tuple[int, ...]
    strategy: str
    stored: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The arrays of the index, if the segment has them."""

    @classmethod
    def of(cls, placed: PlacedBundle) -> RegionSet:
        """The tables that a bundle evaluates together."""
        bundle = placed.bundle
        return cls(placed.groups, bundle.groups, bundle.parameter, bundle.arrays)  # type: ignore[arg-type]

    @property
    def source(self) -> Source:
        return self.tables[0].template.source

    @cached_property
    def flat(self) -> bool:
        return is_flat(self.tables[0].template)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The path of each place."""
        first = self.tables[0].template
        if not self.flat:
            return tuple(first.path(node) for node in range(len(first.nodes)))
        found = (t.template.path(n) for t in self.tables for n in bound_nodes(t.template))
        return tuple(dict.fromkeys(found))

    def place(self, template: Template, node: int) -> int:
        return self.paths.index(template.path(node)) if self.flat else node

    @cached_property
    def attributes(self) -> dict[Attribute, int]:
        found = (self._attribute(t.template, t.template.constants[i]) for t in self.tables for i in sides(t.template))
        return {attribute: number for number, attribute in enumerate(dict.fromkeys(found))}

    def _attribute(self, template: Template, condition: ConstantCondition) -> Attribute:
        return Attribute(self.place(template, condition.node), condition.type, condition.part)

    @cached_property
    def starts(self) -> Ints:
        """The first position of each table, followed by the number of queries."""
        return np.cumsum([0, *(table.size for table in self.tables)])

    @cached_property
    def refined(self) -> tuple[int, ...]:
        """The tables whose queries have conditions besides their regions."""
        return tuple(i for i, table in enumerate(self.tables) if self._left_over(table.template))

    def _left_over(self, template: Template) -> bool:
        regional = len(sides(template)) == len(template.constants)
        return not regional or bool(template.negated) or (self.flat and bool(template.joins or required(template)))

    @property
    def size(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def numbers(self) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        """The query at each position; 32 bits suffice and halve the memory traffic."""
        return np.concatenate([table.numbers for table in self.tables]).astype(np.int32)

    @cached_property
    def repeats(self) -> bool:
        """Whether some query occurs several times, by several of its conjunctions."""
        ordered = np.sort(self.numbers)
        return bool((ordered[1:] == ordered[:-1]).any())

    @cached_property
    def codes(self) -> dict[Attribute, StringCodes]:
        constants: dict[Attribute, list[pa.Array]] = {a: [] for a in self.attributes if a.type == "string"}
        ordered: set[Attribute] = set()
        for table in self.tables:
            for i in sides(table.template):
                condition = table.template.constants[i]
                attribute = self._attribute(table.template, condition)
                if attribute in constants:
                    constants[attribute].append(table.columns[condition.slot])
                    ordered |= {attribute} if condition.op != "=" else set()
        return {
            a: StringCodes(pa.chunked_array(some).unique().to_pylist(), a in ordered) for a, some in constants.items()
        }

    @cached_property
    def boxes(self) -> Boxes:
        low = np.full((self.size, len(self.attributes)), LOWEST, dtype=np.int64)
        high = np.full_like(low, HIGHEST)
        for table, start, end in zip(self.tables, self.starts[:-1], self.starts[1:], strict=True):
            for i in sides(table.template):
                condition = table.template.constants[i]
                attribute = self._attribute(table.template, condition)
                axis = self.attributes[attribute]
                keys = float_keys(self._coded(attribute, table.columns[condition.slot]))
                cut(low[start:end, axis], high[start:end, axis], condition.op, keys)
        return Boxes.of_keys(low, high)

    def _coded(self, attribute: Attribute, column: Column) -> Floats:
        return column if isinstance(column, np.ndarray) else self.codes[attribute].encode(column)

    @cached_property
    def index(self) -> Index:
        return STORED[self.strategy](self.stored) if self.stored else KERNELS[self.strategy](self.boxes)

    def values(self, tables: Sequence[PathTable | None], at: Sequence[Ints | None], size: int) -> Floats:
        """The value of each binding on each attribute. `at` has, by place, the row of each binding in the path table,
        -1 if it is missing, or None if row i belongs to binding i."""
        found = np.full((size, len(self.attributes)), np.nan)
        for attribute, axis in self.attributes.items():
            table, rows = tables[attribute.place], at[attribute.place]
            if table is None or not len(table):
                continue
            if attribute.type == "string":
                column = self.codes[attribute].encode(table.texts)
            else:
                column = table.part(attribute.part)
            found[:, axis] = column if rows is None else np.where(rows < 0, np.nan, column[rows])
        return found

    @property
    def signature(self) -> str:
        """The signature, like that of a group: `box over x, y in R`."""
        paths = [(dotted(self.paths[a.place]), a.part) for a in self.attributes]
        shown = sorted({path if part == "value" else f"{part}({path})" for path, part in paths})
        return f"box over {', '.join(shown)} in {self.source}"


def cut(low: Keys, high: Keys, op: str, keys: Keys) -> None:
    """Intersects ranges with `op constant`, in place. A missing value lies above all bounds."""
    np.maximum(low, LEAST, out=low)
    np.minimum(high, MOST, out=high)
    if op in (">", ">=", "="):
        np.maximum(low, keys + (op == ">"), out=low)
    if op in ("<", "<=", "="):
        np.minimum(high, keys - (op == "<"), out=high)
