"""One side of joins over columns: finds the queries of all its tables that each document of a batch satisfies.

In: the side's templates and constants, table by table. Out: the sorted list of queries for each document. Shared: all
tables, whatever their conditions, are compared with a document together, as regions over its columns
(select/regions.py). A large table whose anchor lets few queries through, or a table that is not a region, is looked up
separately.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.normal import Template
from fishweir.evaluate.arrays import Column, Ints, expand
from fishweir.evaluate.index.constants import Everything
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.rows.side_rows import listed
from fishweir.evaluate.select.anchors import Anchor, choose_anchor
from fishweir.evaluate.select.boxes.choose import choose
from fishweir.evaluate.select.constant_tables import Table, build_table
from fishweir.evaluate.select.match import match_table
from fishweir.evaluate.select.region_match import match_regions
from fishweir.evaluate.select.region_rule import FEW, SMALL, candidates, choose_regions
from fishweir.evaluate.select.regions import RegionSet, is_flat, sides
from fishweir.evaluate.witnesses.path_tables import Path, PathTable
from fishweir.jit import kernel


@dataclass(frozen=True)
class ColumnSide:
    """The tables that are looked up separately, and those that are pooled."""

    alone: tuple[Table, ...]
    pools: tuple[RegionSet, ...]

    def satisfied(self, witnesses: Mapping[Path, PathTable]) -> tuple[Ints, Ints, Ints]:
        """Documents in order, the starts of their lists, and the sorted queries."""
        documents, lengths, members = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for own, counts, numbers in self._found(witnesses):
            documents.append(own)
            lengths.append(counts)
            members.append(numbers)
        return _by_document(*(np.concatenate(parts) for parts in (documents, lengths, members)))

    def _found(self, witnesses: Mapping[Path, PathTable]) -> Iterator[tuple[Ints, Ints, Ints]]:
        for table in self.alone:
            found = match_table(table, witnesses)
            if found is not None:
                rows, numbers = listed(table.members, found)
                order = np.argsort(rows, kind="stable")
                yield found.documents, np.bincount(rows, minlength=len(found)), numbers[order]
        for pool in self.pools:
            for found in match_regions(pool, witnesses):
                yield found.documents, np.diff(found.member_offsets), found.members.astype(np.int64)


def _by_document(documents: Ints, lengths: Ints, members: Ints) -> tuple[Ints, Ints, Ints]:
    """Merges the lists of the same document."""
    ends = np.cumsum(lengths)
    order = np.argsort(documents, kind="stable")
    _, at = expand((ends - lengths)[order], ends[order])
    found, first = np.unique(documents[order], return_index=True)
    starts = np.append(np.append(0, np.cumsum(lengths[order]))[first], ends[-1] if len(ends) else 0)
    members = members[at]
    sort_lists(starts, members)
    return found, starts.astype(np.int64), members


@kernel
def sort_lists(starts: Ints, numbers: NDArray[np.integer[Any]]) -> None:
    for row in range(len(starts) - 1):
        start, end = starts[row], starts[row + 1]
        for at in range(start + 1, end):
            if numbers[at] < numbers[at - 1]:
                numbers[start:end] = np.sort(numbers[start:end])
                break


def column_side(tables: Sequence[JoinTable], side: int) -> ColumnSide:
    """Builds the lookup of one side of the tables that have conditions on it."""
    if len(tables) == 1:
        only = _indexed(tables[0], side)
        pools = choose_regions({0: only}, {})
        return ColumnSide(() if pools else (only,), tuple(RegionSet((only,), *pool) for pool in pools))
    alone, pooled = list[Table](), list[Table]()
    for table in tables:
        template = _conditions_only(table.template.sides[side])
        if not is_flat(template) or not sides(template):
            alone.append(_indexed(table, side))
            continue
        indexed = _indexed(table, side) if table.size >= SMALL else None
        if indexed is not None and candidates(indexed, {}) < FEW:
            alone.append(indexed)
        else:
            start = Anchor(template.leaves[0], ())
            columns = _columns(table, side)
            pooled.append(Table(template, start, table.numbers, columns, None, Everything(table.size)))
    if not pooled:
        return ColumnSide(tuple(alone), ())
    pool = RegionSet(tuple(pooled), tuple(range(len(pooled))), "grid")
    return ColumnSide(tuple(alone), (replace(pool, strategy=choose(pool.boxes).strategy),))


def any_document(template: Template) -> Table:
    """A table that finds the documents of a side without conditions."""
    bare = replace(template, outputs=(0,))
    return build_table(bare, Anchor(bare.leaves[0], ()), np.zeros(1, np.int64), ())


def _indexed(table: JoinTable, side: int) -> Table:
    template, columns = replace(table.template.sides[side], outputs=(0,)), _columns(table, side)
    return build_table(template, choose_anchor(template, list(columns), {}), table.numbers, columns)


def _columns(table: JoinTable, side: int) -> tuple[Column, ...]:
    first = len(table.template.left.types) if side else 0
    return table.columns[first : first + len(table.template.sides[side].types)]


def _conditions_only(template: Template) -> Template:
    """The template without the columns that only the join compares: reading their values shows whether they are
    present."""
    compared = {c.node for c in template.constants} | {n for j in template.joins for n in (j.left, j.right)}
    kept = [n for n in range(len(template.nodes)) if n == 0 or n in compared or n not in template.outputs]
    if any(template.nodes[n].parent > 0 for n in range(len(template.nodes))):
        return replace(template, outputs=(0,))
    place = {node: i for i, node in enumerate(kept)}
    return replace(
        template,
        nodes=tuple(template.nodes[n] for n in kept),
        constants=tuple(replace(c, node=place[c.node]) for c in template.constants),
        joins=tuple(replace(j, left=place[j.left], right=place[j.right]) for j in template.joins),
        outputs=(0,),
    )
