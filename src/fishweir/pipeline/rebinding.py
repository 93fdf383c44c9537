"""Rebinds the documents of a join result if its row does not name the nodes.

In: the documents of one result. Out: the nodes of its variables. If each document binds each node exactly once, these
are the nodes at the paths. If a query has alternatives, a row does not record which one matched: the documents are
matched with all of them, by the matcher of the shared plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from threading import get_ident

import numpy as np

from fishweir.algebra.alternatives import ABSENT, parts
from fishweir.algebra.clauses import constants_of
from fishweir.algebra.joins import to_join
from fishweir.algebra.nodes import Constant, Shape
from fishweir.algebra.normal import Template
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import Paths
from fishweir.evaluate.plan.registry import KINDS
from fishweir.evaluate.witnesses.path_tables import Path, PathTable
from fishweir.evaluate.witnesses.shared_paths import SharedPaths
from fishweir.pipeline.document_columns import DocumentColumns
from fishweir.pipeline.source_documents import SourceDocument


def nodes_of(sides: Sequence[Template], documents: Sequence[SourceDocument]) -> list[int]:
    """The output nodes of documents that bind each of them exactly once."""
    return [node for side, document in zip(sides, documents, strict=True) for node in _nodes(side, document)]


@lru_cache(maxsize=4096)
def _nodes(template: Template, document: SourceDocument) -> tuple[int, ...]:
    """The nodes of one document, cached because a document is in many results."""
    paths = {template.path(node): False for node in template.outputs}
    tables = _witnesses(tuple(paths.items()), document)
    return tuple(max(int(tables[template.path(node)].nodes[0, -1]), 0) for node in template.outputs)


def nodes_of_all(template: Template, documents: DocumentColumns, chosen: Ints) -> Ints:
    """As `nodes_of`, for many ascending documents of one side that are walked together; one row per document."""
    shared = _shared(tuple({template.path(node): False for node in template.outputs}.items()), get_ident())
    tables, found = documents.walked(shared, chosen), np.zeros((len(chosen), len(template.outputs)), np.int64)
    for column, node in enumerate(template.outputs):
        table = tables[template.path(node)]
        found[table.documents[::-1], column] = np.maximum(table.nodes[::-1, -1], 0)
    return found


def join_bindings(
    shape: Shape, constants: Sequence[Constant], documents: Sequence[SourceDocument]
) -> list[Mapping[str, int]]:
    """The distinct bindings of the output variables by any alternative, ordered by their nodes."""
    found: dict[tuple[int, ...], Mapping[str, int]] = {}
    for part in parts(shape):
        normal = to_join(part)
        places = {name: (side, node) for name, side, node in normal.variables}
        over = [(side, node) for side, template in enumerate(normal.template.sides) for node in template.outputs]
        kind, own = KINDS[normal.template.kind], constants_of(normal, tuple(constants))
        for nodes in kind.bound_nodes(normal.template, own, [partial(_walked, document) for document in documents]):
            of = dict(zip(over, nodes, strict=True))
            bound = {name: of.get(places[name], ABSENT) for name in shape.output_variables if name in places}
            key = tuple(bound.get(name, ABSENT) for name in shape.output_variables)
            found.setdefault(key, {name: position for name, position in bound.items() if position != ABSENT})
    return [found[key] for key in sorted(found)]


def _walked(document: SourceDocument, paths: Paths) -> Mapping[Path, PathTable]:
    return _witnesses(tuple(paths.items()), document)


def _witnesses(paths: tuple[tuple[Path, bool], ...], document: SourceDocument) -> Mapping[Path, PathTable]:
    walk = _shared(paths, get_ident()).start()
    walk.add(0, document.nodes[0], document.context)
    return walk.tables()


@lru_cache(maxsize=1024)
def _shared(paths: tuple[tuple[Path, bool], ...], thread: int) -> SharedPaths:
    """The paths as an automaton, one per thread: an automaton learns while it walks."""
    shared = SharedPaths()
    shared.hold({"outputs": dict(paths)})
    return shared
