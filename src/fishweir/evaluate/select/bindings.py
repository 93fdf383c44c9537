"""Bindings: match a pattern against the documents of a batch.

In: a template and the path tables of a batch. Out: one row for each way to map the pattern's nodes to a document. It is
computed as a join of the path tables on their deepest common node. Shared: nothing loops over documents. If a path
occurs at most once in each document, as all columns of tuples do, the join is one lookup of document numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from fishweir.algebra.nodes import Operator
from fishweir.algebra.normal import Template
from fishweir.algebra.values import COMPARE
from fishweir.evaluate.arrays import Column, Ints, expand, number_rows, take
from fishweir.evaluate.witnesses.path_tables import Path, PathTable, node_keys

ARROW_COMPARE = {
    "=": pc.equal, "!=": pc.not_equal, "<": pc.less,
    "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


class Bindings:
    """A relation under construction: the node ids of each pattern node, and the row with the value of each
    condition."""

    def __init__(self, documents: Ints, anchor_rows: Ints) -> None:
        self.documents, self.anchor_rows = documents, anchor_rows
        self.nodes: dict[int, Ints] = {}
        self.at: dict[int, Ints] = {}

    def take(self, rows: Ints | NDArray[np.bool_]) -> Bindings:
        taken = Bindings(self.documents[rows], self.anchor_rows[rows])
        taken.nodes = {node: ids[rows] for node, ids in self.nodes.items()}
        taken.at = {node: at[rows] for node, at in self.at.items()}
        return taken

    def add(self, node: int, chain: tuple[int, ...], table: PathTable, at: Ints) -> None:
        self.at[node] = at
        nodes = table.nodes if at is table.documents else table.nodes[at]
        for depth, ancestor in enumerate(chain):
            self.nodes.setdefault(ancestor, nodes[:, depth])


def bind(template: Template, anchor: int, witnesses: Mapping[Path, PathTable], anchor_rows: Ints) -> Bindings | None:
    """The pattern's bindings that start at the given rows of the anchor's path."""
    values = witnesses[template.path(anchor)]
    anchor_rows = _apart(template, anchor, values, anchor_rows)
    is_whole = anchor_rows is values.documents  # each row is a document, and all of them are asked for
    bindings = Bindings(anchor_rows if is_whole else values.documents[anchor_rows], anchor_rows)
    bindings.add(anchor, template.chain(anchor), values, anchor_rows)
    for node in bound_nodes(template):
        if node == anchor:
            continue
        other = witnesses.get(template.path(node))
        if other is None or not len(other):
            return None
        bindings = _join(template, bindings, node, other)
    for join in template.joins:
        left, right = (witnesses[template.path(n)] for n in (join.left, join.right))
        columns = [
            take(side.texts if join.compares_texts else side.numbers, bindings.at[n])
            for side, n in ((left, join.left), (right, join.right))
        ]
        bindings = bindings.take(compare(columns[0], join.op, columns[1]))
    return bindings


def bound_nodes(template: Template) -> tuple[int, ...]:
    """The nodes to bind: the leaves, whose chains cover the pattern, and the nodes that conditions compare."""
    compared = {c.node for c in template.constants} | {n for j in template.joins for n in (j.left, j.right)}
    return tuple(dict.fromkeys((*template.leaves, *sorted(compared))))


def _apart(template: Template, node: int, table: PathTable, rows: Ints, depth: int = 0) -> Ints:
    """The first of all rows that differ only in unreferenced nodes and in nodes above `depth`.

    Below a descendant step, a node has a row for each way in which it was reached.
    """
    chain = template.chain(node)
    if not any(template.nodes[i].step.is_deep for i in chain[1:]):
        return rows
    kept = [d for d, n in enumerate(chain) if d >= depth and (n in template.referred or n == node)]
    columns = [table.documents[rows], *(table.nodes[rows][:, kept] + (1 << 20)).T]
    if template.nodes[node].step.is_attribute:  # an element may have several
        columns.append(table.texts.dictionary_encode().indices.to_numpy()[rows])
    return rows[np.unique(number_rows(*columns), return_index=True)[1]]


def _join(template: Template, bindings: Bindings, node: int, other: PathTable) -> Bindings:
    """Joins the bindings with a path on their deepest common pattern node."""
    chain = template.chain(node)
    known = (d for d, ancestor in enumerate(chain) if ancestor in bindings.nodes)
    depth = 0 if template.columns else max(known)
    shared = bindings.nodes[chain[depth]]
    if other.documents is bindings.documents and (other.nodes[:, depth] == shared).all():  # their rows correspond
        joined, at = bindings, other.documents
    elif other.single:
        at = np.searchsorted(other.documents, bindings.documents)
        at[at == len(other)] = 0
        found = (other.documents[at] == bindings.documents) & (other.nodes[at, depth] == shared)
        joined, at = (bindings, at) if found.all() else (bindings.take(found), at[found])
    else:
        rows = _apart(template, node, other, np.arange(len(other)), depth)
        keys = other.key(depth)[rows]
        order = np.argsort(keys, kind="stable")
        keys, wanted = keys[order], node_keys(bindings.documents, shared)
        left, at = expand(np.searchsorted(keys, wanted, "left"), np.searchsorted(keys, wanted, "right"))
        joined, at = bindings.take(left), rows[order[at]]
    joined.add(node, chain, other, at)
    return joined


def compare(left: Column, op: Operator, right: Column) -> NDArray[np.bool_]:
    """`left op right` for each row. NaN satisfies no comparison, not even `!=`."""
    if isinstance(left, np.ndarray):
        return COMPARE[op](left, right) & ~np.isnan(left) & ~np.isnan(right)
    return ARROW_COMPARE[op](left, right).to_numpy(zero_copy_only=False)
