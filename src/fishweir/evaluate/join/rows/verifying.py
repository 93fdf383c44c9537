"""Verifies pairs of documents one by one: matches patterns against the stored state of both.

In: pairs of documents of two runs, of a plain join whose documents bind a variable several times. Out: the results.
Bindings must agree on their common ancestors, which the template of a side ensures.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.values import COMPARE
from fishweir.evaluate.arrays import Ints, expand, number_rows
from fishweir.evaluate.join.hashes import Hashes
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.pairs import SetPairs, UnverifiedPairs, apart
from fishweir.evaluate.join.rows.probing import all_queries
from fishweir.evaluate.join.rows.row_joins import RowJoin
from fishweir.evaluate.join.rows.side_rows import edge_values
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.select.bindings import bind
from fishweir.evaluate.select.match import outputs
from fishweir.evaluate.witnesses.path_tables import PathTable


def edges_hold(table: JoinTable, lefts: Hashes, rights: Hashes) -> NDArray[np.bool_]:
    """Whether every edge holds between two rows of values. A value that is not a number satisfies no order."""
    keep = np.ones(len(lefts), np.bool_)
    for i, edge in enumerate(table.template.edges):
        one, two = lefts[:, i], rights[:, i]
        if edge.op not in ("=", "!="):
            one, two = np.ascontiguousarray(one).view(np.float64), np.ascontiguousarray(two).view(np.float64)
        keep &= COMPARE[edge.comparison](one, two)  # NaN satisfies no order
    return keep


def verify(join: RowJoin, doubt: UnverifiedPairs) -> Iterator[SetPairs]:
    """Matches a plain table's patterns against documents that bind a variable several times."""
    (table,), sides = join.tables, []
    for side, (run, chosen) in enumerate(((doubt.left, doubt.lefts), (doubt.right, doubt.rights))):
        sides.append(_embedded(table, side, run, np.unique(chosen)))
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
    yield from all_queries(join, *pair_of, nodes, np.abs(times), order)


def _embedded(table: JoinTable, side: int, run: Run, documents: Ints) -> tuple[Ints, Ints, Hashes]:
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
    """The original witnesses of one variable, with hashes in place of texts."""
    column = int(run.columns(np.array([variable], dtype=np.uint64))[0])
    cells = documents * len(run.variables) + column
    lo, hi = (run.cells[cells], run.cells[cells + 1]) if column >= 0 else (cells * 0, cells * 0)
    source, at = expand(lo, hi)
    nodes = run.nodes[run.node_starts[at][:, None] + np.arange(depth)]
    texts = pa.array([str(value) for value in run.values[at].tolist()], pa.large_string())
    return PathTable(documents[source], nodes, texts, hashes=run.values[at])
