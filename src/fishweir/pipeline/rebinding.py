"""Documents of a join's result bound again, where its row does not name the nodes.

In: the documents of one result. Out: the nodes of its variables. Where each document binds each node just once, that is
whatever lies at its path. Where a query has alternatives, a row does not say which of them it is of: the documents are
matched with all of them, by the matcher of the shared plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from threading import get_ident
from typing import Any

import numpy as np

from fishweir.algebra.alternatives import ABSENT, parts
from fishweir.algebra.clauses import constants_of
from fishweir.algebra.joins import Edge, JoinTemplate, to_join
from fishweir.algebra.nodes import Constant, Shape
from fishweir.algebra.normal import Template
from fishweir.algebra.values import COMPARE
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.join_tables import is_hashed, side_tables, to_columns
from fishweir.evaluate.join.rows.side_rows import values_at
from fishweir.evaluate.join.variables import kept_nodes, side_paths
from fishweir.evaluate.select.match import match_table
from fishweir.evaluate.witnesses.path_tables import Path, PathTable
from fishweir.evaluate.witnesses.shared_paths import SharedPaths
from fishweir.pipeline.document_columns import DocumentColumns
from fishweir.pipeline.taken import TakenDocument

Row = tuple[tuple[int, ...], Mapping[int, tuple[Any, float]]]
"""The output nodes of a side, and of each compared node the hash and the number of its value."""


def nodes_of(sides: Sequence[Template], documents: Sequence[TakenDocument]) -> list[int]:
    """The output nodes of documents that bind each of them just once."""
    return [node for side, document in zip(sides, documents, strict=True) for node in _nodes(side, document)]


@lru_cache(maxsize=4096)
def _nodes(template: Template, document: TakenDocument) -> tuple[int, ...]:
    """A document is in many results."""
    paths = {template.path(node): False for node in template.outputs}
    tables = _witnesses(tuple(paths.items()), document)
    return tuple(max(int(tables[template.path(node)].nodes[0, -1]), 0) for node in template.outputs)


def nodes_of_all(template: Template, documents: DocumentColumns, chosen: Ints) -> Ints:
    """As `nodes_of`, for many documents of one side that are walked together: a row for each, which ascend."""
    shared = _shared(tuple({template.path(node): False for node in template.outputs}.items()), get_ident())
    tables, found = documents.walked(shared, chosen), np.zeros((len(chosen), len(template.outputs)), np.int64)
    for column, node in enumerate(template.outputs):
        table = tables[template.path(node)]
        found[table.documents[::-1], column] = np.maximum(table.nodes[::-1, -1], 0)
    return found


def join_bindings(
    shape: Shape, constants: Sequence[Constant], documents: Sequence[TakenDocument]
) -> list[Mapping[str, int]]:
    """The distinct bindings of the output variables by any alternative, in order of their nodes."""
    found: dict[tuple[int, ...], Mapping[str, int]] = {}
    for part in parts(shape):
        normal = to_join(part)
        places = {name: (side, node) for name, side, node in normal.variables}
        over = [(side, node) for side, template in enumerate(normal.template.sides) for node in template.outputs]
        for nodes in _results(normal.template, constants_of(normal, tuple(constants)), documents):
            of = dict(zip(over, nodes, strict=True))
            bound = {name: of.get(places[name], ABSENT) for name in shape.output_variables if name in places}
            key = tuple(bound.get(name, ABSENT) for name in shape.output_variables)
            found.setdefault(key, {name: position for name, position in bound.items() if position != ABSENT})
    return [found[key] for key in sorted(found)]


def _results(
    template: JoinTemplate, constants: Sequence[Constant], documents: Sequence[TakenDocument]
) -> Iterator[tuple[int, ...]]:
    """The output nodes of all sides, for each way the patterns lie over the documents and all edges hold."""
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
    return bool(COMPARE[edge.op](left[kind], right[kind]))


def _rows(template: Template, table: Any, compared: tuple[int, ...], document: TakenDocument) -> Iterator[Row]:
    paths = side_paths(template, kept_nodes(template), compared)
    witnesses = _witnesses(tuple(paths.items()), document)
    found = match_table(table, witnesses)
    for row in range(0 if found is None else len(found)):
        assert found is not None
        nodes = found.nodes[row]
        values = {}
        for node in compared:
            at = witnesses[template.path(node)], np.zeros(1, np.int64), nodes[[template.outputs.index(node)]]
            values[node] = values_at(*at, True)[0], float(values_at(*at, False).view(np.float64)[0])
        yield tuple(nodes.tolist()), values


def _witnesses(paths: tuple[tuple[Path, bool], ...], document: TakenDocument) -> Mapping[Path, PathTable]:
    walk = _shared(paths, get_ident()).start()
    walk.add(0, document.nodes[0], document.context)
    return walk.tables()


@lru_cache(maxsize=1024)
def _shared(paths: tuple[tuple[Path, bool], ...], thread: int) -> SharedPaths:
    """Each thread has its own: an automaton learns while it walks."""
    shared = SharedPaths()
    shared.hold({"outputs": dict(paths)})
    return shared
