"""Side rows: the matches of one side of a join in a batch of documents, in their stored form.

In: a join table, or the edges of a join over columns, and the path tables of the batch. Out: for each match a row with
its document, nodes, the value at its end of each edge, and the queries whose constants it satisfies (or, if these are
checked above the join, the values that they are compared with).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fishweir.algebra.nodes import Operator
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.join.hashes import Hashes, combine
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.state import SideRows
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.select.constant_tables import Table
from fishweir.evaluate.select.match import match_table
from fishweir.evaluate.witnesses.path_tables import FirstValues, Path, PathTable, node_keys


def side_rows(table: JoinTable, side: int, witnesses: Mapping[Path, PathTable]) -> SideRows | None:
    """The rows of one side of one table in a batch of documents."""
    template = table.template.sides[side]
    own = table.bare[side] if table.above else table.sides[side]
    found = match_table(own, FirstValues(witnesses) if template.columns else witnesses)
    if found is None:
        return None
    values = edge_values(table, side, witnesses, found.documents, found.nodes)
    starts, members = _members(table, side, found)
    nodes = found.nodes[:, : len(template.outputs)]
    anchored = values[:, table.anchor] if table.anchor >= 0 else None
    if table.above:
        values = np.concatenate([values, _compared(table, side, witnesses, found.documents, found.nodes)], axis=1)
    return as_rows(table.keys[side], found.documents, nodes, values, anchored, starts, members)


def as_rows(
    key: int, documents: Ints, nodes: Ints, values: Hashes, anchored: Hashes | None, starts: Ints, members: Ints
) -> SideRows:
    size, width, many = len(documents), nodes.shape[1], values.shape[1]
    looked_up = np.zeros(size, np.uint64) if anchored is None else anchored
    return SideRows(
        combine(key, looked_up),
        documents,
        np.full(size, key, np.uint64),
        np.arange(size + 1) * width,
        nodes.ravel(),
        np.arange(size + 1) * many,
        values.ravel(),
        starts,
        members,
    )


def _members(table: JoinTable, side: int, found: Matches) -> tuple[Ints, Ints]:
    """The sorted queries of each row; empty if the side has no constants, or if they are checked above."""
    if table.above or not table.template.sides[side].conditions:
        return np.zeros(len(found) + 1, np.int64), np.empty(0, np.int64)
    return members_of(table.sides[side], found)


def members_of(own: Table, found: Matches) -> tuple[Ints, Ints]:
    """The sorted queries of each row of a constant table's matches."""
    rows, numbers = listed(own.members, found)
    keys = np.sort(rows << 32 | numbers)  # one sort of integers; query numbers stay below 2**31
    return np.searchsorted(keys, np.arange(len(found) + 1) << 32), keys & 0xFFFFFFFF


def listed(members: Ints, found: Matches) -> tuple[Ints, Ints]:
    """(row, query) for all queries of matches. `members` are the queries at the positions of the slices."""
    slices = found.slices.reshape(-1, 2)
    source, positions = expand(slices[:, 0], slices[:, 1])
    of_slice = np.repeat(np.arange(len(found)), np.diff(found.slice_offsets) // 2)
    of_member = np.repeat(np.arange(len(found)), np.diff(found.member_offsets))
    rows = np.concatenate([of_slice[source], of_member])
    return rows, np.concatenate([members[positions], found.members.astype(np.int64)])


def edge_values(
    table: JoinTable, side: int, witnesses: Mapping[Path, PathTable], documents: Ints, nodes: Ints
) -> Hashes:
    """The value at the side's end of each edge, by row: a hash, or the bits of a number."""
    template = table.template.sides[side]
    ends = [(edge.right if side else edge.left, edge.op in ("=", "!=")) for edge in table.template.edges]
    columns = [
        values_at(witnesses[template.path(node)], documents, nodes[:, template.outputs.index(node)], hashed)
        for node, hashed in ends
    ]
    return np.stack(columns, axis=1) if columns else np.empty((len(documents), 0), np.uint64)


def column_values(
    ends: Sequence[tuple[Path, Operator]], witnesses: Mapping[Path, PathTable], documents: Ints
) -> tuple[Ints, Hashes]:
    """The documents that have all the columns at the ends of edges, and their values there."""
    there = np.ones(len(documents), np.bool_)
    columns = []
    for path, op in ends:
        table = witnesses.get(path)
        if table is None or not len(table):
            there[:] = False
            break
        at = np.minimum(np.searchsorted(table.documents, documents), len(table) - 1)
        there &= table.documents[at] == documents
        columns.append((table.hashes if op in ("=", "!=") else table.numbers.view(np.uint64))[at])
    kept = np.flatnonzero(there)
    if not len(kept) or not columns:
        return kept, np.empty((len(kept), len(ends)), np.uint64)
    return kept, np.stack([column[kept] for column in columns], axis=1)


def _compared(table: JoinTable, side: int, witnesses: Mapping[Path, PathTable], documents: Ints, nodes: Ints) -> Hashes:
    """The value that each constant of the side is compared with, by row."""
    template = table.template.sides[side]
    outputs = (*template.outputs, *table.compared(side))
    columns = [
        values_at(witnesses[template.path(c.node)], documents, nodes[:, outputs.index(c.node)], c.type == "string")
        for c in template.constants
    ]
    return np.stack(columns, axis=1) if columns else np.empty((len(documents), 0), np.uint64)


def values_at(values: PathTable, documents: Ints, nodes: Ints, hashed: bool) -> Hashes:
    """The values of some nodes: hashes, or the bits of numbers."""
    if values.single:  # the node of each document is the only one
        if np.array_equal(values.documents, documents):
            return values.hashes if hashed else values.numbers.view(np.uint64)
        at = np.searchsorted(values.documents, documents)
        return values.hashes[at] if hashed else values.numbers[at].view(np.uint64)
    keys = node_keys(values.documents, np.maximum(values.nodes[:, -1], 0))
    order = np.argsort(keys, kind="stable")
    at = order[np.searchsorted(keys[order], node_keys(documents, nodes))]
    return values.hashes[at] if hashed else values.numbers[at].view(np.uint64)
