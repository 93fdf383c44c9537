"""Stretches: for each new row, the range of the other side's rows, in some order, that it may join.

In: new rows of one side of a join and the run that they look up. Out: the order that leaves the fewest candidates: rows
with an equal anchor, rows that an order edge leaves (a prefix or suffix by value), or rows that the longest window
reaches (by time). An order is computed once per run and class. If few rows have an equal anchor, only these are read,
and nothing is computed for the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.nodes import MIRRORED, Operator
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.edges import EARLIER, LATER
from fishweir.evaluate.join.hashes import Hashes
from fishweir.evaluate.join.ranks import Ranks
from fishweir.evaluate.join.rows.row_joins import RowJoin
from fishweir.evaluate.join.rows.row_kernels import equal_keys
from fishweir.evaluate.join.rows.row_views import RowView, view_of
from fishweir.evaluate.join.state import Run

Floats = NDArray[np.float64]

FEW = 8
"""If less than one row in this many has an equal anchor, nothing is computed for the others."""

MOST_ROWS = 2.0**40
"""A window of more rows holds all rows."""


@dataclass(frozen=True)
class Probe:
    """New rows of one side of a join, and the run that they look up."""

    join: RowJoin
    new: int
    own: RowView
    chosen: Ints
    anchored: Hashes
    """The key that each of the chosen rows looks up, ascending; without an anchor there is none."""
    run: Run
    ranks: Ranks

    @property
    def left(self) -> Run:
        return self.run if self.new else self.own.run

    @property
    def right(self) -> Run:
        return self.own.run if self.new else self.run

    @property
    def main(self) -> int:
        """The order in time of a pair if documents arrive in order."""
        return LATER if self.new else EARLIER


@dataclass(frozen=True)
class Stretches:
    """The candidates order[starts:ends] of each new row in a view of the other side. `decided` is the edge that holds
    on all of them, -1 if there is none."""

    view: RowView
    order: Ints
    starts: Ints
    ends: Ints
    decided: int = -1

    @property
    def total(self) -> int:
        return int(np.maximum(self.ends - self.starts, 0).sum())


def fewest(probe: Probe) -> tuple[Probe, Stretches]:
    """The order of the other side's rows that leaves the fewest candidates, for the new rows whose anchor value occurs
    there. Those are mostly few, and so are their partners: then nothing else is read."""
    join, key = probe.join, probe.join.keys[1 - probe.new]
    if join.anchor >= 0:
        rows, most = probe.run.rows, len(probe.run.rows.of_class(key)) // FEW
        with_partners, lo, hi, touched = equal_keys(rows.keys, rows.classes, np.uint64(key), probe.anchored, most)
        probe = replace(probe, chosen=probe.chosen[with_partners], anchored=probe.anchored[with_partners])
        if len(touched) or not len(with_partners):
            view = RowView(probe.run, touched, len(join.ops))
            return probe, Stretches(view, view.by_place, lo, hi, join.anchor)
    view = view_of(probe.run, key, len(join.ops))
    found = [_by_time(probe, view)]
    if join.anchor >= 0:
        lo, hi = (np.searchsorted(view.keys, probe.anchored, side) for side in ("left", "right"))
        found.append(Stretches(view, view.by_place, lo, hi, join.anchor))
    found += [_by_value(probe, view, i) for i, op in enumerate(join.ops) if op not in ("=", "!=")]
    return probe, min(found, key=lambda stretches: stretches.total)


def _by_value(probe: Probe, view: RowView, edge: int) -> Stretches:
    """The rows that an order edge leaves: a prefix or a suffix of the rows in the order of their values."""
    values, order = view.by_edge(edge)
    op: Operator = probe.join.ops[edge] if probe.new else MIRRORED[probe.join.ops[edge]]
    own = probe.own.numbers[probe.chosen, edge]
    at = np.searchsorted(values, own, "left" if op in ("<", ">=") else "right")
    none = np.zeros(len(own), np.int64)
    starts, ends = (none, at) if op in ("<", "<=") else (at, np.full(len(own), len(order)))
    return Stretches(view, order, starts, np.where(np.isnan(own), starts, ends), edge)


def _by_time(probe: Probe, view: RowView) -> Stretches:
    """The rows that the longest windows reach, with a margin."""
    times, order = view.by_time
    when = probe.own.times[probe.chosen]
    least, most = _reached(probe, view, when)
    starts = np.searchsorted(times, np.minimum(least, when), "left")
    ends = np.maximum(np.searchsorted(times, when, "right"), np.searchsorted(times, most, "right"))
    return Stretches(view, order, starts, ends)


def _reached(probe: Probe, view: RowView, when: Floats) -> tuple[Floats, Floats]:
    """The earliest and latest time of documents that new ones may join."""
    join, ranks, own = probe.join, probe.ranks, probe.own.documents[probe.chosen]
    back, on = join.longest[probe.main], join.longest[EARLIER if probe.new else LATER]
    rounding = 1e-15 * (np.abs(when) + 1)
    least, most = when - back * (1 + 1e-15) - rounding, when + on * (1 + 1e-15) + rounding
    by_rows = join.counts_rows
    if by_rows[1 - probe.new]:
        least = np.full(len(when), -np.inf)
        stream = _only(probe.run.streams[view.documents])
        if stream is not None and 0 <= back < np.inf:
            behind = ranks.behind(stream, when)
            same = probe.own.run.streams[own] == stream
            behind[same] = ranks.places(probe.own.run)[own[same]] + 1
            least = ranks.times_at(stream, behind - int(min(back, MOST_ROWS)), np.inf)
    if by_rows[probe.new]:
        most = np.full(len(when), np.inf)
        stream = _only(probe.own.run.streams[own])
        if stream is not None and 0 <= on < np.inf:
            most = ranks.times_at(stream, ranks.places(probe.own.run)[own] + int(min(on, MOST_ROWS)), np.inf)
    return least, most


def _only(streams: Ints) -> int | None:
    return int(streams[0]) if len(streams) and (streams == streams[0]).all() else None
