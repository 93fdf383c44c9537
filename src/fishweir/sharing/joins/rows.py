"""Rows: the ways a side's pattern lies over documents, joined edge by edge.

In: a join table and the path tables of documents, or two runs that hold rows of its sides. Out: pairs of rows for
which all edges hold, with the nodes that a result is over and the queries that want it. This decides what equal values
alone do not: constants on either side, comparisons other than equality, and variables that a document binds several
times, whose bindings must agree on their common ancestors (that is what the side's template is for).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.values import COMPARE
from fishweir.sharing.arrays import Ints, expand, number_rows
from fishweir.sharing.bindings import bind
from fishweir.sharing.joins.edges import EARLIER, LATER, TOGETHER, by_reach, reach
from fishweir.sharing.joins.pairs import Doubt, Met, apart, portions
from fishweir.sharing.joins.placement import wanting
from fishweir.sharing.joins.ranks import Ranks
from fishweir.sharing.joins.state import Hashes, Run, SideRows, combine
from fishweir.sharing.joins.tables import JoinTable
from fishweir.sharing.match import Matches, match_table, outputs
from fishweir.sharing.tables import Table
from fishweir.sharing.witnesses import FirstValues, Path, PathTable, node_keys


@dataclass(frozen=True)
class Joined:
    """Results of one table: pairs of documents of two runs, the nodes they are over, the queries that want each."""

    left: Run
    right: Run
    lefts: Ints
    rights: Ints
    nodes: Ints
    member_starts: Ints
    members: Ints


def side_rows(table: JoinTable, side: int, witnesses: Mapping[Path, PathTable]) -> SideRows | None:
    """The rows of one side in a batch of documents."""
    template = table.template.sides[side]
    own = table.bare[side] if table.above else table.sides[side]
    found = match_table(own, FirstValues(witnesses) if template.columns else witnesses)
    if found is None:
        return None
    values = edge_values(table, side, witnesses, found.documents, found.nodes)
    starts, members = _members(table, side, found)
    key = table.keys[side]
    anchored = values[:, table.anchor] if table.anchor >= 0 else np.zeros(len(values), np.uint64)
    nodes = found.nodes[:, : len(template.outputs)]
    if table.above:
        values = np.concatenate([values, _compared(table, side, witnesses, found.documents, found.nodes)], axis=1)
    size, width, many = len(found), nodes.shape[1], values.shape[1]
    return SideRows(
        combine(key, anchored), found.documents, np.full(size, key, np.uint64),
        np.arange(size + 1) * width, nodes.ravel(), np.arange(size + 1) * many, values.ravel(), starts, members,
    )  # fmt: skip


def _members(table: JoinTable, side: int, found: Matches) -> tuple[Ints, Ints]:
    """The sorted queries of each row; none where the side has no constants, or they are checked above."""
    if table.above or not table.template.sides[side].conditions:
        return np.zeros(len(found) + 1, np.int64), np.empty(0, np.int64)
    return members_of(table.sides[side], found)


def members_of(own: Table, found: Matches) -> tuple[Ints, Ints]:
    """The sorted queries of each row of a constant table's matches."""
    slices = found.slices.reshape(-1, 2)
    source, positions = expand(slices[:, 0], slices[:, 1])
    of_slice = np.repeat(np.arange(len(found)), np.diff(found.slice_offsets) // 2)
    of_member = np.repeat(np.arange(len(found)), np.diff(found.member_offsets))
    rows = np.concatenate([of_slice[source], of_member])
    numbers = np.concatenate([own.members[positions], found.members.astype(np.int64)])
    keys = np.sort(rows << 32 | numbers)  # one sort of numbers; query numbers stay below 2**31
    return np.searchsorted(keys, np.arange(len(found) + 1) << 32), keys & 0xFFFFFFFF


def edge_values(
    table: JoinTable, side: int, witnesses: Mapping[Path, PathTable], documents: Ints, nodes: Ints
) -> Hashes:
    """For each row the value at the side's end of each edge: a hash, or the bits of a number."""
    template = table.template.sides[side]
    ends = [(edge.right if side else edge.left, edge.op in ("=", "!=")) for edge in table.template.edges]
    columns = [
        values_at(witnesses[template.path(node)], documents, nodes[:, template.outputs.index(node)], hashed)
        for node, hashed in ends
    ]
    return np.stack(columns, axis=1) if columns else np.empty((len(documents), 0), np.uint64)


def _compared(
    table: JoinTable, side: int, witnesses: Mapping[Path, PathTable], documents: Ints, nodes: Ints
) -> Hashes:
    """For each row the value that each constant of the side is compared with."""
    template = table.template.sides[side]
    outputs_ = (*template.outputs, *table.compared(side))
    columns = [
        values_at(witnesses[template.path(c.node)], documents, nodes[:, outputs_.index(c.node)], c.type == "string")
        for c in template.constants
    ]
    return np.stack(columns, axis=1) if columns else np.empty((len(documents), 0), np.uint64)


def values_at(values: PathTable, documents: Ints, nodes: Ints, hashed: bool) -> Hashes:
    """The values of some nodes: hashes, or the bits of numbers."""
    keys = node_keys(values.documents, np.maximum(values.nodes[:, -1], 0))
    order = np.argsort(keys, kind="stable")
    at = order[np.searchsorted(keys[order], node_keys(documents, nodes))]
    return values.hashes[at] if hashed else values.numbers[at].view(np.uint64)


def join_rows(
    tables: Sequence[JoinTable], new: Run, old: Sequence[Run], part: int, parts: int, ranks: Ranks
) -> Iterator[Joined | Met]:
    """What the new documents meet by the rows of tables that are not plain."""
    present = set(np.unique(new.rows.classes).tolist())
    for table in tables:
        for run in (new, *old):
            if table.keys[1] in present:
                yield from _probe(table, run, new, 1, part, parts, ranks)
            if table.keys[0] in present and run is not new:
                yield from _probe(table, new, run, 0, part, parts, ranks)


def _probe(
    table: JoinTable, left: Run, right: Run, new: int, part: int, parts: int, ranks: Ranks
) -> Iterator[Joined | Met]:
    """The rows of the side that is new look up those of the other one."""
    if not _near(table, left, right):
        return
    own, other = (right.rows, left.rows) if new else (left.rows, right.rows)
    rows = np.flatnonzero(own.classes == np.uint64(table.keys[new]))
    width = len(table.template.edges)
    values = _values(own, rows, width)
    anchored = values[:, table.anchor] if table.anchor >= 0 else np.zeros(len(rows), np.uint64)
    keys = combine(table.keys[1 - new], anchored)
    if parts > 1:
        dealt = own.documents[rows].astype(np.uint64) if table.anchor < 0 else anchored
        mine = dealt % np.uint64(parts) == np.uint64(part)
        rows, keys = rows[mine], keys[mine]
    lo, hi = (np.searchsorted(other.keys, keys, side) for side in ("left", "right"))
    for some in _portions(own.documents[rows], hi - lo):
        source, found = expand(lo[some], hi[some])
        own_rows = rows[some][source]
        pair = (found, own_rows) if new else (own_rows, found)
        yield from _decide(table, left, right, *pair, ranks)


def _portions(documents: Ints, lengths: Ints) -> Iterator[Ints]:
    """Rows of about PAIRS_AT_ONCE hits, all of a document together: what is over the same nodes is one result."""
    order = np.argsort(documents, kind="stable")
    starts = np.flatnonzero(np.diff(documents[order], prepend=-1))
    ends = np.append(starts, len(order))
    for some in portions(np.add.reduceat(lengths[order], starts) if len(starts) else lengths):
        yield order[ends[some.start] : ends[some.stop]]


def _near(table: JoinTable, left: Run, right: Run) -> bool:
    """Whether the times of two runs are near enough for any window."""
    if not len(left) or not len(right):
        return False
    for side, (one, two) in enumerate(((left, right), (right, left))):
        is_rows = table.template.window.right_rows if side else table.template.window.left_rows
        reach_ = np.inf if is_rows else float(table.reaches[side].max(initial=-1.0))
        if one.oldest <= two.newest and two.oldest - one.newest <= reach_:
            return True
    return False


def _values(rows: SideRows, chosen: Ints, width: int) -> Hashes:
    return rows.values[rows.value_starts[chosen][:, None] + np.arange(width)]


def _decide(
    table: JoinTable, left: Run, right: Run, lefts: Ints, rights: Ints, ranks: Ranks
) -> Iterator[Joined | Met]:
    if left is right:
        two = left.rows.documents[lefts] != right.rows.documents[rights]
        lefts, rights = lefts[two], rights[two]
    width = len(table.template.edges)
    keep = edges_hold(table, _values(left.rows, lefts, width), _values(right.rows, rights, width))
    lefts, rights = lefts[keep], rights[keep]
    documents = left.rows.documents[lefts], right.rows.documents[rights]
    nodes = np.concatenate([_nodes(left.rows, lefts), _nodes(right.rows, rights)], axis=1)
    far, order = distances(table, left, right, *documents, ranks)
    if not any(side.conditions for side in table.template.sides):
        yield from _everyone(table, left, right, *documents, nodes, far, order)
        return
    if table.above:
        pair, members = _wanting_above(table, left.rows, right.rows, lefts, rights, nodes)
    else:
        pair, members = _wanting(table, left.rows, right.rows, lefts, rights)
    yield from _within(table, left, right, *documents, nodes, far, order, pair, members)


def distances(
    table: JoinTable, left: Run, right: Run, lefts: Ints, rights: Ints, ranks: Ranks
) -> tuple[NDArray[np.float64], Ints]:
    """How far a window must reach for each pair, in seconds or in rows, and the order of the two in time."""
    times, order = apart(left, right, lefts, rights)
    far, window = np.abs(times), table.template.window
    if window.left_rows:
        some = np.flatnonzero(order == LATER)
        far[some] = ranks.distance(left, lefts[some], right, rights[some])
    if window.right_rows:
        some = np.flatnonzero(order == EARLIER)
        far[some] = ranks.distance(right, rights[some], left, lefts[some])
    return far, order


def _nodes(rows: SideRows, chosen: Ints) -> Ints:
    width = int(rows.node_starts[chosen[0] + 1] - rows.node_starts[chosen[0]]) if len(chosen) else 0
    return rows.nodes[rows.node_starts[chosen][:, None] + np.arange(width)]


def edges_hold(table: JoinTable, lefts: Hashes, rights: Hashes) -> NDArray[np.bool_]:
    """Whether every edge holds between two rows of values; what is no number satisfies no order."""
    keep = np.ones(len(lefts), np.bool_)
    for i, edge in enumerate(table.template.edges):
        one, two = lefts[:, i], rights[:, i]
        if edge.op not in ("=", "!="):
            one, two = np.ascontiguousarray(one).view(np.float64), np.ascontiguousarray(two).view(np.float64)
        keep &= COMPARE[edge.op](one, two)  # NaN is in no order
    return keep


def _wanting(
    table: JoinTable, left: SideRows, right: SideRows, lefts: Ints, rights: Ints
) -> tuple[Ints, Ints]:
    """Pairs of (row pair, query of the table) whose constants are satisfied on both sides."""
    keys = []
    for side, rows, chosen in ((0, left, lefts), (1, right, rights)):
        if table.template.sides[side].conditions:
            pair, at = expand(rows.member_starts[chosen], rows.member_starts[chosen + 1])
            keys.append(pair << 32 | rows.members[at])
    both = keys[0] if len(keys) == 1 else np.intersect1d(keys[0], keys[1], assume_unique=True)
    pair, numbers = both >> 32, both & 0xFFFFFFFF
    own = np.isin(numbers, table.numbers)
    return pair[own], numbers[own]


def _wanting_above(
    table: JoinTable, left: SideRows, right: SideRows, lefts: Ints, rights: Ints, nodes: Ints
) -> tuple[Ints, Ints]:
    """The same by the values in the rows; a query wants a result once, whatever nodes satisfy its constants."""
    edges = len(table.template.edges)
    values = [
        rows.values[rows.value_starts[chosen][:, None] + edges + np.arange(len(side.constants))]
        for rows, chosen, side in zip((left, right), (lefts, rights), table.template.sides, strict=True)
    ]
    pair, queries = wanting(table.checks, values)
    result = number_rows(left.documents[lefts], right.documents[rights], *nodes.T)
    _, once = np.unique(result[pair] << 32 | queries, return_index=True)
    pair, members = pair[once], table.numbers[queries[once]]
    order = np.lexsort((members, pair))
    return pair[order], members[order]


def _everyone(
    table: JoinTable, left: Run, right: Run, lefts: Ints, rights: Ints, nodes: Ints,
    far: NDArray[np.float64], order: Ints,
) -> Iterator[Met]:  # fmt: skip
    """Where no constant decides, the queries whose windows reach far enough: a prefix of them all."""
    for kind in (LATER, EARLIER, TOGETHER):
        rows = np.flatnonzero(order == kind)
        wanted, _ = by_reach([table], kind)
        counts = wanted.count(far[rows])
        some = rows[counts > 0]
        if len(some):
            yield Met(left, right, lefts[some], rights[some], wanted, counts[counts > 0], nodes[some])


def _within(
    table: JoinTable, left: Run, right: Run, lefts: Ints, rights: Ints, nodes: Ints,
    far: NDArray[np.float64], order: Ints, pair: Ints, members: Ints,
) -> Iterator[Joined]:  # fmt: skip
    """Those that the windows admit."""
    by_number = np.argsort(table.numbers, kind="stable")
    at = by_number[np.searchsorted(table.numbers[by_number], members)]
    reaches = np.stack([reach(table, kind) for kind in (LATER, EARLIER, TOGETHER)])
    keep = reaches[order[pair], at] >= far[pair]
    pair, members = pair[keep], members[keep]
    kept, starts = np.unique(pair, return_index=True)
    if len(kept):
        ends = np.append(starts, len(pair)).astype(np.int64)
        yield Joined(left, right, lefts[kept], rights[kept], nodes[kept], ends, members)


def verify(table: JoinTable, doubt: Doubt) -> Iterator[Met]:
    """Lays a plain table's patterns over documents that bind a variable several times."""
    sides = []
    for side, (run, chosen) in enumerate(((doubt.left, doubt.lefts), (doubt.right, doubt.rights))):
        sides.append(_laid(table, side, run, np.unique(chosen)))
    (left_documents, left_nodes, left_values), (right_documents, right_nodes, right_values) = sides
    lo, hi = (np.searchsorted(left_documents, doubt.lefts, side) for side in ("left", "right"))
    pair, one = expand(lo, hi)
    rights = doubt.rights[pair]
    lo, hi = (np.searchsorted(right_documents, rights, side) for side in ("left", "right"))
    source, two = expand(lo, hi)
    one = one[source]
    keep = edges_hold(table, left_values[one], right_values[two])
    one, two = one[keep], two[keep]
    nodes = np.concatenate([left_nodes[one], right_nodes[two]], axis=1)
    pair_of = doubt.left, doubt.right, left_documents[one], right_documents[two]
    times, order = apart(*pair_of)
    yield from _everyone(table, *pair_of, nodes, np.abs(times), order)


def _laid(table: JoinTable, side: int, run: Run, documents: Ints) -> tuple[Ints, Ints, Hashes]:
    """The distinct rows of a side over some documents of a run: documents in order, nodes, values."""
    template = table.template.sides[side]
    witnesses = {
        template.path(node): _stored(run, documents, table.variable(side, node).key, len(template.chain(node)))
        for node in {*table.kept(side), *table.joined(side)}
    }
    leaf = template.leaves[0]
    bindings = bind(template, leaf, witnesses, np.arange(len(witnesses[template.path(leaf)])))
    if bindings is None:
        width = len(template.outputs), len(table.template.edges)
        return np.empty(0, np.int64), np.empty((0, width[0]), np.int64), np.empty((0, width[1]), np.uint64)
    nodes = outputs(template, bindings)
    _, first = np.unique(number_rows(bindings.documents, *nodes.T), return_index=True)
    first = first[np.argsort(bindings.documents[first], kind="stable")]
    rows, nodes = bindings.documents[first], nodes[first]
    return rows, nodes, edge_values(table, side, witnesses, rows, nodes)


def _stored(run: Run, documents: Ints, variable: int, depth: int) -> PathTable:
    """The witnesses of one variable as they were, with hashes in the place of texts."""
    column = int(run.columns(np.array([variable], dtype=np.uint64))[0])
    cells = documents * len(run.variables) + column
    lo, hi = (run.cells[cells], run.cells[cells + 1]) if column >= 0 else (cells * 0, cells * 0)
    source, at = expand(lo, hi)
    nodes = run.nodes[run.node_starts[at][:, None] + np.arange(depth)]
    texts = pa.array([str(value) for value in run.values[at].tolist()], pa.large_string())
    return PathTable(documents[source], nodes, texts, hashes=run.values[at])
