"""Recomputes the nodes that the documents of one join result bind.

A result row does not record which alternative of a query it belongs to. In: a join template with its constants, and the
documents of the result, one for each side. Out: the output nodes for each embedding of the patterns in the documents
for which all edges hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from fishweir.algebra.joins import Edge, JoinTemplate
from fishweir.algebra.nodes import Constant
from fishweir.algebra.normal import Template
from fishweir.algebra.values import COMPARE
from fishweir.evaluate.group import Walk
from fishweir.evaluate.join.join_tables import is_hashed, side_tables, to_columns
from fishweir.evaluate.join.rows.side_rows import values_at
from fishweir.evaluate.join.variables import kept_nodes, side_paths
from fishweir.evaluate.select.match import match_table

Row = tuple[tuple[int, ...], Mapping[int, tuple[Any, float]]]
"""The output nodes of a side, and the hash and the number of the value of each compared node."""


def bound_nodes(
    template: JoinTemplate, constants: Sequence[Constant], documents: Sequence[Walk]
) -> Iterator[tuple[int, ...]]:
    """Yields the output nodes of all sides, concatenated."""
    tables = side_tables(template, np.zeros(1, np.int64), to_columns(template, [constants]))
    ends = [end for e in template.edges for end in ((e.left_side, e.left), (e.right_side, e.right))]
    compared = [tuple(dict.fromkeys(n for end, n in ends if end == side)) for side in range(len(template.sides))]
    rows = [
        list(_rows(side, table, own, document))
        for side, table, own, document in zip(template.sides, tables, compared, documents, strict=True)
    ]
    for some in product(*rows):
        if all(_holds(edge, some) for edge in template.edges):
            yield tuple(node for nodes, _ in some for node in nodes)


def _holds(edge: Edge, some: Sequence[Row]) -> bool:
    left, right = some[edge.left_side][1][edge.left], some[edge.right_side][1][edge.right]
    kind = 0 if is_hashed(edge) else 1
    return bool(COMPARE[edge.comparison](left[kind], right[kind]))


def _rows(template: Template, table: Any, compared: tuple[int, ...], document: Walk) -> Iterator[Row]:
    witnesses = document(side_paths(template, kept_nodes(template), compared))
    found = match_table(table, witnesses)
    for row in range(0 if found is None else len(found)):
        assert found is not None
        nodes = found.nodes[row]
        values = {}
        for node in compared:
            at = witnesses[template.path(node)], np.zeros(1, np.int64), nodes[[template.outputs.index(node)]]
            values[node] = values_at(*at, True)[0], float(values_at(*at, False).view(np.float64)[0])
        yield tuple(nodes.tolist()), values
