"""Builds MMQJP's relations from the documents that the engine retains.

In: runs of the join state, and the variables of the templates. Out: Rbin, Rdoc and RdocTS. A run has a cell for each
document and variable, with the hash of each value and the nodes from the root of the pattern down. Stage 1 finds the
same in documents, so the relations follow from the cells: a hash stands for the text, and the nodes of a pattern
between a branching node and a leaf are read from the leaf's chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from fishweir.algebra.nodes import Source
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.join.variables import Variable
from fishweir.evaluate.witnesses.path_tables import Path, PathTable
from fishweir.papers.mmqjp.relations import BIN, DOC, DOC_TS, Relations, WitnessFinder


class StoredTables(Mapping[Path, PathTable]):
    """The witnesses of one source in a run, by path. A path without cells has the witnesses of all paths below it."""

    def __init__(self, run: Run, variables: Iterable[Variable]) -> None:
        self.run, self.variables = run, {variable.path: variable for variable in variables}
        self._read: dict[Path, PathTable] = {}

    def __getitem__(self, path: Path) -> PathTable:
        if path not in self._read:
            below = [path] if path in self.variables else [p for p in self.variables if p[: len(path)] == path]
            if not below:
                raise KeyError(path)
            self._read[path] = _cut([_stored(self.run, self.variables[own]) for own in below], len(path))
        return self._read[path]

    def __iter__(self) -> Iterator[Path]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)


def _stored(run: Run, variable: Variable) -> PathTable:
    column, depth = int(run.columns(np.array([variable.key], np.uint64))[0]), len(variable.path)
    cells = np.arange(len(run) if column >= 0 else 0) * len(run.variables) + column
    documents, at = expand(run.cells[cells], run.cells[cells + 1])
    nodes = run.nodes[run.node_starts[at][:, None] + np.arange(depth)]
    return PathTable(documents, nodes, pa.array(run.values[at]).cast(pa.large_string()))


def _cut(tables: Sequence[PathTable], depth: int) -> PathTable:
    """Concatenates tables, with each chain cut at a depth."""
    if len(tables) == 1 and tables[0].nodes.shape[1] == depth:
        return tables[0]
    documents = np.concatenate([table.documents for table in tables])
    nodes = np.concatenate([table.nodes[:, :depth] for table in tables])
    order = np.argsort(documents, kind="stable")
    return PathTable(documents[order], nodes[order], pa.concat_arrays([table.texts for table in tables]).take(order))


def run_relations(finder: WitnessFinder, run: Run, by_source: Mapping[Source, Sequence[Variable]]) -> Relations:
    """The relations of a run, its documents numbered from 0."""
    parts = [finder.relations(source, StoredTables(run, variables)) for source, variables in by_source.items()]
    times = pa.table({"docid": np.arange(len(run)), "timestamp": run.times}, schema=DOC_TS)
    bins = pa.concat_tables([BIN.empty_table(), *(own for own, _ in parts)])
    docs = pa.concat_tables([DOC.empty_table(), *(own for _, own in parts)])
    return Relations(bins, docs, times)


def together(parts: Sequence[Relations], numbers: Sequence[Ints]) -> Relations:
    """Concatenates relations, with the documents of each renumbered by `numbers`."""
    return Relations(
        *(
            pa.concat_tables(
                [schema.empty_table(), *(_numbered(getattr(p, name), n) for p, n in zip(parts, numbers, strict=True))]
            )
            for name, schema in (("bin", BIN), ("doc", DOC), ("doc_ts", DOC_TS))
        )
    )


def _numbered(table: pa.Table, numbers: Ints) -> pa.Table:
    return table.set_column(0, "docid", pa.array(numbers[table["docid"].to_numpy()]))
