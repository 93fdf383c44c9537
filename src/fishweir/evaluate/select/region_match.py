"""Matches a region set: joins a batch of documents with the regions of all its queries.

In: a region set and the path tables of a batch. Out: Matches with lists of queries, in several blocks if there are many
pairs. First the pattern is bound, once for all tables of the set. Then the values of the bindings are joined with the
regions (boxes/). Finally, the conditions of a query that are not part of its region are checked on the remaining pairs.
This is the refinement of Spatial Join CQ 5.1, done per table on whole arrays.

A tuple may satisfy a tenth of 100,000 queries, so the pairs of a batch are never all in memory. A block has about
`PAIRS` pairs, and the row of a binding is never split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.normal import NodeCondition, Template
from fishweir.evaluate.arrays import Ints, expand, take
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.select.bindings import bind, compare
from fishweir.evaluate.select.boxes import Matches as Pairs
from fishweir.evaluate.select.conditions import holds, holds_anywhere
from fishweir.evaluate.select.match import distinct, outputs, with_members
from fishweir.evaluate.select.regions import RegionSet, required, sides
from fishweir.evaluate.witnesses.path_tables import Path, PathTable
from fishweir.jit import kernel

PAIRS = 1 << 20
FIRST = 1024
"""Number of bindings in the first block. Its result determines the size of the next ones."""


@dataclass(frozen=True)
class RegionBindings:
    """The bindings of a set of regions: documents, output nodes, the path table and its row by place (see
    RegionSet.values), and the groups of bindings with the same output; None if there are no such groups."""

    documents: Ints
    nodes: Ints
    tables: list[PathTable | None]
    at: list[Ints | None]
    group: Ints | None

    def rows(self, place: int, bindings: Ints) -> Ints:
        at = self.at[place]
        return bindings if at is None else at[bindings]


def match_regions(region_set: RegionSet, witnesses: Mapping[Path, PathTable]) -> Iterator[Matches]:
    """The matches of all queries of a region set, in blocks."""
    bound = _bind_flat(region_set, witnesses) if region_set.flat else _bind_pattern(region_set, witnesses)
    if bound is None:
        return
    values = region_set.values(bound.tables, bound.at, len(bound.documents))
    group = np.arange(len(values)) if bound.group is None else bound.group
    left = np.arange(len(values)) if bound.group is None else np.argsort(group, kind="stable")
    undone, size, room = np.ones(len(values), np.bool_), FIRST, PAIRS
    while len(left):
        part = left[: np.searchsorted(group[left], group[left[min(size, len(left)) - 1]], "right")]
        pairs = region_set.index.match(values[part], room)
        whole = _whole_groups(group[part], pairs.tuples)
        if not len(whole):
            room *= 2
            continue
        size = max(1, int(room * len(pairs) / max(1, len(pairs.numbers))))
        undone[part[pairs.tuples[whole]]] = False
        left = left[undone[left]]
        matches = _matches(region_set, bound, witnesses, part[pairs.tuples], whole, pairs)
        if matches is not None:
            yield matches


def _whole_groups(group: Ints, done: Ints) -> Ints:
    """The finished rows whose whole group is finished. An output is emitted together with all its queries."""
    if len(done) == len(group):
        return np.arange(len(done))
    missing = np.ones(len(group), np.bool_)
    missing[done] = False
    return np.flatnonzero(~np.isin(group[done], group[missing]))


def _matches(
    region_set: RegionSet,
    bound: RegionBindings,
    witnesses: Mapping[Path, PathTable],
    bindings: Ints,
    whole: Ints,
    pairs: Pairs,
) -> Matches | None:
    """The matches of a block. Row i of the pairs is for `bindings[i]`. Rows not in `whole` are left to the next
    block."""
    if len(whole) < len(pairs):
        keep = np.zeros(len(pairs), np.bool_)
        keep[whole] = True
        pairs = pairs.kept(np.repeat(keep, np.diff(pairs.offsets)))
    pairs = _refined(region_set, bound, witnesses, bindings, pairs)
    if not len(pairs.numbers):
        return None
    name_queries(pairs.numbers, region_set.numbers)
    members = pairs.numbers
    if bound.group is not None or region_set.repeats:
        rows = np.repeat(bindings, np.diff(pairs.offsets))
        group = np.arange(len(bound.documents)) if bound.group is None else bound.group
        return with_members(bound.documents, bound.nodes, group, rows, members.astype(np.int64))
    some = np.flatnonzero(np.diff(pairs.offsets))
    offsets = np.append(pairs.offsets[some], pairs.offsets[-1])
    none = np.zeros(len(some) + 1, np.int64)
    at = bindings[some]
    return Matches(bound.documents[at], bound.nodes[at], none, np.empty(0, np.int64), offsets, members)


@kernel
def name_queries(positions: NDArray[np.int32], queries: NDArray[np.int32]) -> None:
    """Replaces positions by their queries, in place. NumPy would first widen the 32-bit index."""
    for i in range(len(positions)):
        positions[i] = queries[positions[i]]


def _refined(
    region_set: RegionSet, bound: RegionBindings, witnesses: Mapping[Path, PathTable], bindings: Ints, pairs: Pairs
) -> Pairs:
    """Checks the conditions of queries that are not part of their regions, for the tables that have any."""
    if not region_set.refined or not len(pairs.numbers):
        return pairs
    rows, keep = np.repeat(bindings, np.diff(pairs.offsets)), np.ones(len(pairs.numbers), np.bool_)
    order, bounds = _by_table(region_set, pairs)
    for i in region_set.refined:
        chosen = order[bounds[i] : bounds[i + 1]]
        positions = pairs.numbers[chosen] - region_set.starts[i]
        keep[chosen] = _satisfied(region_set, i, bound, witnesses, rows[chosen], positions)
    return pairs.kept(keep)


def _by_table(region_set: RegionSet, pairs: Pairs) -> tuple[Ints, Ints]:
    """The pairs ordered by table, and the offset of each table."""
    if len(region_set.tables) == 1:
        return np.arange(len(pairs.numbers)), np.array([0, len(pairs.numbers)])
    kind = np.uint16 if len(region_set.tables) < 1 << 16 else np.uint32
    table = np.repeat(np.arange(len(region_set.tables), dtype=kind), np.diff(region_set.starts))[pairs.numbers]
    ends = np.cumsum(np.bincount(table, minlength=len(region_set.tables)))
    return np.argsort(table, kind="stable"), np.append(0, ends)


def _satisfied(
    region_set: RegionSet,
    i: int,
    bound: RegionBindings,
    witnesses: Mapping[Path, PathTable],
    rows: Ints,
    positions: Ints,
) -> NDArray[np.bool_]:
    """For pairs (binding, query of table i), whether all remaining conditions hold."""
    table, template = region_set.tables[i], region_set.tables[i].template
    pair = np.arange(len(rows))
    if region_set.flat:
        for node in required(template):
            pair = pair[bound.rows(region_set.place(template, node), rows[pair]) >= 0]
        for join in template.joins:
            pair = pair[_compared(region_set, template, join, bound, rows[pair])]
    for number, condition in enumerate(template.constants):
        if number not in sides(template):
            place = region_set.place(template, condition.node)
            values, at = bound.tables[place], bound.rows(place, rows[pair])
            if values is None:
                pair = pair[:0]
            else:
                constants = take(table.columns[condition.slot], positions[pair])
                pair = pair[holds(condition, values, at, constants)]
    for negated in template.negated:
        constants = take(table.columns[negated.slot], positions[pair])
        pair = pair[~holds_anywhere(negated, witnesses, bound.documents[rows[pair]], constants)]
    keep = np.zeros(len(rows), np.bool_)
    keep[pair] = True
    return keep


def _compared(
    region_set: RegionSet, template: Template, join: NodeCondition, bound: RegionBindings, rows: Ints
) -> NDArray[np.bool_]:
    """Evaluates a comparison such as `x > y` within bindings."""
    columns = []
    for node in (join.left, join.right):
        place = region_set.place(template, node)
        table = bound.tables[place]
        if table is None:
            return np.zeros(len(rows), np.bool_)
        columns.append(take(table.texts if join.compares_texts else table.numbers, bound.rows(place, rows)))
    return compare(columns[0], join.op, columns[1])


def _bind_pattern(region_set: RegionSet, witnesses: Mapping[Path, PathTable]) -> RegionBindings | None:
    """All bindings of the single template of a region set."""
    template = region_set.tables[0].template
    start = template.constants[sides(template)[0]].node
    values = witnesses.get(template.path(start))
    if values is None:
        return None
    bindings = bind(template, start, witnesses, np.arange(len(values)))
    if bindings is None or not len(bindings.documents):
        return None
    nodes = outputs(template, bindings)
    _, group = distinct(bindings.documents, nodes)
    places = range(len(template.nodes))
    return RegionBindings(
        bindings.documents,
        nodes,
        [witnesses.get(template.path(node)) for node in places],
        [bindings.at.get(node) for node in places],
        group if group.max() + 1 < len(group) else None,
    )


def _bind_flat(region_set: RegionSet, witnesses: Mapping[Path, PathTable]) -> RegionBindings | None:
    """Each document with all paths of the region set, -1 for a missing path. If a document has a path several times, it
    has one binding per combination."""
    tables = [witnesses.get(path) for path in region_set.paths]
    there = [table for table in tables if table is not None and len(table)]
    if not there:
        return None
    exists = np.zeros(max(int(table.documents.max()) for table in there) + 1, np.bool_)
    for some in there:
        exists[some.documents] = True
    documents = np.flatnonzero(exists)
    at: list[Ints | None] = []
    binding, alone = documents, True
    for table in tables:
        if table is None or not len(table):
            at.append(np.full(len(binding), -1))
        elif table.single:
            at.append(_rows_of(table, binding, alone))
        else:
            order = np.argsort(table.documents, kind="stable")
            lo, hi = (np.searchsorted(table.documents[order], binding, side) for side in ("left", "right"))
            row, position = expand(lo, np.maximum(hi, lo + 1))
            absent = (hi == lo)[row]
            at = [row if rows is None else rows[row] for rows in at]
            at.append(np.where(absent, -1, order[np.where(absent, 0, position)]))
            binding, alone = binding[row], False
    nodes = np.zeros((len(binding), 1), np.int64)
    group = None if alone else np.searchsorted(documents, binding)
    return RegionBindings(binding, nodes, tables, at, group)


def _rows_of(table: PathTable, documents: Ints, alone: bool) -> Ints | None:
    """The row of each document in a table that has each document at most once."""
    if alone and len(table) == len(documents):
        return None
    row = np.searchsorted(table.documents, documents)
    row[row == len(table)] = 0
    return np.where(table.documents[row] == documents, row, -1)
