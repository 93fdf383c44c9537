"""Partners: the rows of several runs that new rows may join, as one run.

In: probes of the same new rows in several runs. Out: the candidates of each probe. A run mostly has few rows with an
equal anchor. These rows of all runs are taken out and become a run of their own, so that one kernel looks up the keys
in all runs, and everything after that is done once, however many runs are retained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.hashes import Hashes
from fishweir.evaluate.join.rows.partner_kernels import columns_of_rows, equal_rows
from fishweir.evaluate.join.rows.row_views import RowView
from fishweir.evaluate.join.rows.stretches import FEW, Probe, Stretches, fewest
from fishweir.evaluate.join.state import Run, SideRows, no_versions

OF_ROWS = ("keys", "classes", "documents")
OF_LISTS = ("node_starts", "nodes", "value_starts", "values", "member_starts", "members")
OF_DOCUMENTS = ("streams", "numbers", "times", "since", "arrivals", "origins")
ADDRESSES = -2
"""The key of a run's addresses among its views, which is the key of no class."""


def candidates(probes: Sequence[Probe]) -> Iterator[tuple[Probe, Stretches]]:
    """The candidates of each probe that has any, those of some probes together."""
    alone, several = list[Probe](), list[Probe]()
    for probe in probes:
        (several if probe.join.takes_runs_together else alone).append(probe)
    if len(several) > 1:
        found, several = _together(several)
        if found is not None:
            yield found
    alone += several
    for probe, stretches in map(fewest, alone):
        if len(probe.chosen):
            yield probe, stretches


def _together(probes: Sequence[Probe]) -> tuple[tuple[Probe, Stretches] | None, list[Probe]]:
    """The candidates in several runs, and the probes that have too many."""
    first, runs = probes[0], [probe.run for probe in probes]
    key, addresses = first.join.keys[1 - first.new], np.stack([_addresses(run) for run in runs])
    sizes = np.array([len(run.rows) for run in runs])
    most = np.array([len(run.rows.of_class(key)) // FEW for run in runs])
    itself = next((place for place, run in enumerate(runs) if run is first.own.run), -1)
    documents = first.own.documents[first.chosen]
    found, count, rows, size, exceeds = equal_rows(
        addresses, sizes, np.uint64(key), first.anchored, most, itself, documents
    )
    exceeding = [probe for probe, exceeded in zip(probes, exceeds.tolist(), strict=True) if exceeded]
    if not count:
        return None, exceeding
    run, (at, starts, ends) = _rows_as_run(addresses, rows, size, key), found[:, :count]
    probe = replace(first, chosen=first.chosen[at], anchored=first.anchored[at], run=run)
    view = RowView(run, np.arange(len(run.rows)), len(first.join.ops))
    return (probe, Stretches(view, view.by_place, starts, ends, first.join.anchor)), exceeding


def _addresses(run: Run) -> Hashes:
    """The addresses of a run's columns, in the order that the kernels know."""
    if ADDRESSES not in run.views:
        columns = [getattr(run.rows, name) for name in (*OF_ROWS, *OF_LISTS)]
        columns += [getattr(run, name) for name in OF_DOCUMENTS]
        assert all(column.itemsize == 8 and column.flags.c_contiguous for column in columns), "kernels read words"
        run.views[ADDRESSES] = np.array([column.__array_interface__["data"][0] for column in columns], np.uint64)
    found: Hashes = run.views[ADDRESSES]
    return found


def _rows_as_run(addresses: Hashes, rows: Ints, size: int, key: int) -> Run:
    """Some rows of a class with their documents. Their order is not that of keys, so nothing can be looked up in it."""
    documents, columns, starts, nodes, values, members = columns_of_rows(addresses, rows, size)
    _, first, place = np.unique(documents, return_index=True, return_inverse=True)
    streams, numbers, times, since, arrivals, origins = columns[:, first]
    none, empty, zero = np.empty(0, np.uint64), np.empty(0, np.int64), np.zeros(1, np.int64)
    lists: tuple[Any, ...] = starts[0], nodes.view(np.int64), starts[1], values, starts[2], members.view(np.int64)
    return Run(
        streams.view(np.int64),
        numbers.view(np.int64),
        times.view(np.float64),
        since.view(np.int64),
        arrivals.view(np.float64),
        origins.view(np.int64),
        *(none, zero, none, zero, empty, none, empty),
        SideRows(np.zeros(len(place), np.uint64), place, np.full(len(place), key, np.uint64), *lists),
        no_versions(),
    )
