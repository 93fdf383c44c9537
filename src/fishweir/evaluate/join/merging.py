"""Merging of runs: several runs become one, without documents, variables and rows that no query needs any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import expand
from fishweir.evaluate.join.hashes import Hashes, combine
from fishweir.evaluate.join.rows.row_kernels import are_all_among
from fishweir.evaluate.join.state import Run, Versions, concatenated_rows, one_after_another


class Needed(Protocol):
    """The parts of a run that later documents may still join: documents, and entries of changing files."""

    def listed(self, runs: Sequence[Run]) -> Sequence[NDArray[np.bool_] | None]:
        """For runs that are merged, masks of the needed entries of their rows' lists of queries; None stands for
        all."""

    def __call__(self, run: Run, listed: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]: ...

    def versions(self, run: Run) -> NDArray[np.bool_]: ...


def merge_runs(runs: Sequence[Run], variables: Mapping[int, bool], classes: Hashes, needed: Needed) -> Run:
    """Merges several runs, whose rows need not be sorted, without documents, variables and rows that are no longer
    needed."""
    wanted, compared = np.array(list(variables), np.uint64), np.array(list(variables.values()), np.bool_)
    lists = needed.listed(runs)
    parts = [_kept(run, wanted, classes, needed, own) for run, own in zip(runs, lists, strict=True)]
    entries = [needed.versions(run) for run in runs]
    if len(runs) == 1 and parts[0] is runs[0] and entries[0].all():
        rows = runs[0].rows.sorted()
        return runs[0] if rows is runs[0].rows else replace(runs[0], rows=rows)
    shifts = np.append(0, np.cumsum([len(part) for part in parts]))[:-1].tolist()
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("streams", "numbers", "times", "since", "arrivals", "origins", "values", "nodes")
    }
    versions = Versions(
        *(
            np.concatenate([getattr(run.versions, f.name)[own] for run, own in zip(runs, entries, strict=True)])
            for f in fields(Versions)
        )
    )
    merged = Run(
        **columns,
        variables=wanted,
        cells=one_after_another([part.cells for part in parts]),
        node_starts=one_after_another([part.node_starts for part in parts]),
        keys=np.empty(0, np.uint64),
        documents=np.empty(0, np.int64),
        rows=concatenated_rows([part.rows for part in parts], shifts).sorted(),
        versions=versions,
    )
    if not len(wanted):
        return merged
    cells = np.diff(merged.cells)
    owner = np.repeat(np.arange(len(cells)), cells)
    valued = compared[owner % len(wanted)]
    keys = combine(wanted[owner % len(wanted)], merged.values)[valued]
    order = np.argsort(keys, kind="stable")
    holders = (owner // len(wanted))[valued]
    return replace(merged, keys=keys[order], documents=holders[order])


def _kept(run: Run, wanted: Hashes, classes: Hashes, needed: Needed, listed: NDArray[np.bool_] | None) -> Run:
    documents = np.flatnonzero(needed(run, listed))
    whole = len(documents) == len(run) and listed is None and np.array_equal(run.variables, wanted)
    if whole and are_all_among(run.rows.classes, classes):
        return run
    renumbered = np.full(len(run), -1, np.int64)
    renumbered[documents] = np.arange(len(documents))
    columns = run.columns(wanted)
    cell = documents[:, None] * len(run.variables) + columns[None, :]
    cell, there = cell.ravel(), np.tile(columns >= 0, len(documents))
    lo = np.where(there, run.cells[np.where(there, cell, 0)], 0)
    hi = np.where(there, run.cells[np.where(there, cell + 1, 0)], 0)
    _, at = expand(lo, hi)
    _, nodes = expand(run.node_starts[at], run.node_starts[at + 1])
    rows = run.rows if listed is None else run.rows.with_members(listed)
    rows = rows.take(np.flatnonzero((renumbered[rows.documents] >= 0) & np.isin(rows.classes, classes)))
    return Run(
        run.streams[documents],
        run.numbers[documents],
        run.times[documents],
        run.since[documents],
        run.arrivals[documents],
        run.origins[documents],
        wanted,
        np.append(0, np.cumsum(hi - lo)).astype(np.int64),
        run.values[at],
        np.append(0, np.cumsum(run.node_starts[at + 1] - run.node_starts[at])).astype(np.int64),
        run.nodes[nodes],
        np.empty(0, np.uint64),
        np.empty(0, np.int64),
        replace(rows, documents=renumbered[rows.documents]),
        run.versions,
    )
