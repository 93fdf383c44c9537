"""Witnesses as relations: Rbin, Rdoc and RdocTS of a batch of documents (MMQJP 3.1).

In: the variables of all templates, and documents with their source. Out, as Arrow tables:

    Rbin    (docid, var1, var2, node1, node2)     the bindings of two variables, one above the other
    Rdoc    (docid, node, strVal, numVal)         the string value of a bound node, and the number that it spells
    RdocTS  (docid, timestamp)

The paper's W relations, of the documents that are being processed, have the same form, including a docid, so that a
batch may be loaded at once (section 6.3). A variable is a number, and its name is its definition. Nodes are preorder
positions. An attribute has its element's position in the low half and the number of its name in the high half. Values
are stored if a value join reads them. Shared: one walk of a document finds the nodes of all paths, and a pair of
variables is stored once however many queries use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fishweir.algebra.documents import Document
from fishweir.algebra.nodes import Source, Step
from fishweir.algebra.values import COMPARE
from fishweir.evaluate.arrays import Ints, number_rows
from fishweir.evaluate.select.bindings import ARROW_COMPARE
from fishweir.evaluate.witnesses.path_tables import Path, PathTable, node_keys, texts_to_numbers
from fishweir.evaluate.witnesses.shared_paths import SharedPaths
from fishweir.papers.mmqjp.join_graph import Part, Variable
from fishweir.papers.mmqjp.templates import QueryTemplates

ATTRIBUTE = 32
"""Bit position of the number of an attribute's name in a node."""

BIN = pa.schema([("docid", pa.int64()), ("var1", pa.int32()), ("var2", pa.int32()),
                 ("node1", pa.int64()), ("node2", pa.int64())])  # fmt: skip
DOC = pa.schema([("docid", pa.int64()), ("node", pa.int64()), ("strVal", pa.string()), ("numVal", pa.float64())])
DOC_TS = pa.schema([("docid", pa.int64()), ("timestamp", pa.float64())])

Arrival = tuple[Source, Document]


@dataclass(frozen=True)
class Relations:
    """The witnesses of some documents."""

    bin: pa.Table
    doc: pa.Table
    doc_ts: pa.Table

    def named(self, suffix: str = "") -> dict[str, pa.Table]:
        return {f"Rbin{suffix}": self.bin, f"Rdoc{suffix}": self.doc, f"RdocTS{suffix}": self.doc_ts}


class WitnessFinder:
    """The XPath evaluator: one automaton per source, extended when the variables of the templates grow."""

    def __init__(self, templates: QueryTemplates) -> None:
        self.templates = templates
        self.paths: dict[Source, SharedPaths] = {}
        self.attributes: dict[tuple[str, str | None], int] = {}
        self._known = 0

    def find(self, arrivals: Sequence[Arrival], first: int) -> Relations:
        """The relations of a batch whose documents are numbered from `first`."""
        self._grow()
        parts: list[tuple[pa.Table, pa.Table]] = []
        for source in dict.fromkeys(source for source, _ in arrivals):
            if source not in self.paths:
                continue
            walk = self.paths[source].start()
            for number, (own, document) in enumerate(arrivals, first):
                if own == source:
                    walk.add(number, document.root, document.context)
            parts.append(self.relations(source, walk.tables()))
        times = pa.table(
            {
                "docid": np.arange(first, first + len(arrivals)),
                "timestamp": pa.array([document.timestamp for _, document in arrivals], pa.float64()),
            },
            schema=DOC_TS,
        )
        return Relations(_all(BIN, (b for b, _ in parts)), _all(DOC, (d for _, d in parts)), times)

    def _grow(self) -> None:
        if len(self.templates.variables) == self._known:
            return
        self._known = len(self.templates.variables)
        wanted: dict[Source, dict[Path, bool]] = {}
        for variable in self.templates.variables:
            paths = wanted.setdefault(variable.source, {})
            paths[variable.path] = True
            for depth, part in enumerate(variable.parts):
                if part.tests:
                    paths[variable.path[: depth + 1]] = True
                _branch_paths(variable.path[: depth + 1], part, paths)
        for source, paths in wanted.items():
            self.paths[source] = SharedPaths()
            self.paths[source].hold({"all": paths})

    def relations(self, source: Source, tables: Mapping[Path, PathTable]) -> tuple[pa.Table, pa.Table]:
        """Rbin and Rdoc of documents of one source, from the witnesses of its paths."""
        numbered = list(self.templates.variables)
        rows: dict[int, tuple[PathTable, Ints]] = {}
        for number, variable in enumerate(numbered):
            table = tables.get(variable.path) if variable.source == source else None
            if table is not None:
                rows[number] = table, _rows(variable, table, tables)
        bins, docs = [], []
        for above, below in self.templates.pairs:
            if below not in rows:
                continue
            table, at = rows[below]
            depth, lower = len(numbered[above].parts) - 1, self._nodes(numbered[below], table, at)
            upper = lower if above == below else table.nodes[at, depth]
            once = _distinct(table.documents[at], upper, lower)
            documents, upper, lower = table.documents[at][once], upper[once], lower[once]
            bins.append(
                pa.table(
                    {
                        "docid": documents,
                        "var1": np.full(len(once), above, np.int32),
                        "var2": np.full(len(once), below, np.int32),
                        "node1": upper,
                        "node2": lower,
                    },
                    schema=BIN,
                )
            )
            docs += [_doc(documents, upper, None), _doc(documents, lower, None)]
        for number in self.templates.compared.keys() & rows.keys():
            table, at = rows[number]
            nodes = self._nodes(numbered[number], table, at)
            docs.append(_doc(table.documents[at], nodes, table.texts.take(pa.array(at))))
        return _all(BIN, bins), _distinct_values(_all(DOC, docs))

    def _nodes(self, variable: Variable, table: PathTable, at: Ints) -> Ints:
        nodes, step = table.nodes[at, -1], variable.path[-1]
        if not step.is_attribute:
            return nodes
        number = self.attributes.setdefault((step.name, step.namespace), len(self.attributes) + 1)
        return nodes + (number << ATTRIBUTE)


def _branch_paths(above: Path, part: Part, paths: dict[Path, bool]) -> None:
    for branch in part.branches:
        path = (*above, branch.step)
        paths[path] = True
        _branch_paths(path, branch, paths)


def _rows(variable: Variable, table: PathTable, tables: Mapping[Path, PathTable]) -> Ints:
    """The rows of a variable's path at which all predicates of its definition hold."""
    holds = np.ones(len(table), np.bool_)
    for depth, part in enumerate(variable.parts):
        path = variable.path[: depth + 1]
        if part.tests:
            own = tables.get(path)
            holds &= np.isin(table.key(depth), own.key(depth)[_pass(part, own)]) if own is not None else False
        for branch in part.branches:
            holds &= np.isin(table.key(depth), _keys_with(branch, path, tables))
    return np.flatnonzero(holds)


def _keys_with(branch: Part, above: Path, tables: Mapping[Path, PathTable]) -> Ints:
    """The nodes at the end of a path that have a branch below them, as keys."""
    path: tuple[Step, ...] = (*above, branch.step)
    table, depth = tables.get(path), len(above) - 1
    if table is None:
        return np.empty(0, np.int64)
    holds = _pass(branch, table)
    for below in branch.branches:
        holds &= np.isin(table.key(depth + 1), _keys_with(below, path, tables))
    return node_keys(table.documents[holds], table.nodes[holds, depth])


def _pass(part: Part, table: PathTable) -> NDArray[np.bool_]:
    """Mask of the rows whose value satisfies the part's comparisons with constants."""
    holds = np.ones(len(table), np.bool_)
    for op, constant in part.tests:
        if isinstance(constant, str):
            holds &= ARROW_COMPARE[op](table.texts, constant).to_numpy(zero_copy_only=False)
        else:
            holds &= ~np.isnan(table.numbers) & COMPARE[op](table.numbers, constant)
    return holds


def _doc(documents: Ints, nodes: Ints, texts: pa.Array | None) -> pa.Table:
    size = len(documents)
    numbers = pa.nulls(size, pa.float64())
    if texts is not None:
        numbers = pa.array(texts_to_numbers(texts), from_pandas=True)
    given = pa.nulls(size, pa.string()) if texts is None else texts.cast(pa.string())
    return pa.table({"docid": documents, "node": nodes, "strVal": given, "numVal": numbers}, schema=DOC)


def _all(schema: pa.Schema, parts: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *parts]).combine_chunks()


def _distinct(*columns: Ints) -> Ints:
    """The positions of the first of all equal rows."""
    if not len(columns[0]):
        return np.empty(0, np.int64)
    numbers = number_rows(*(column - column.min() for column in columns))
    return np.sort(np.unique(numbers, return_index=True)[1])


def _distinct_values(doc: pa.Table) -> pa.Table:
    """The distinct nodes, each with its value if any row has it."""
    valued, bare = (doc.filter(mask) for mask in (pc.is_valid(doc["strVal"]), pc.is_null(doc["strVal"])))
    both = pa.concat_tables([valued, bare]).combine_chunks()
    once = _distinct(both["docid"].to_numpy(), both["node"].to_numpy())
    kept = both.take(pa.array(once))
    return kept.sort_by([("docid", "ascending"), ("node", "ascending")])
