"""Rewrites segments: merges neighbours, omits dropped queries, and replaces plans that no longer fit the statistics.

A task is a value, `Work`. It is performed in the calling thread (`InlineRebuilder`) or in a separate process
(engine/planner_process.py), and the job adopts the result between two micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import CompactQueries, Drift, Group, Strategy
from fishweir.evaluate.plan.manifest import SegmentEntry
from fishweir.evaluate.plan.registry import KINDS
from fishweir.evaluate.plan.rules import choose_strategies
from fishweir.evaluate.plan.segments import Segment, merge_segments, planned_segment, read_segment, write_segment
from fishweir.evaluate.statistics import Statistics


@dataclass(frozen=True, eq=False)
class Work:
    """Neighbours that become `into`: several that are merged without the dropped queries; or one whose groups at the
    given positions are replanned, if that pays; or one that is only inspected, into itself."""

    pieces: tuple[SegmentEntry, ...]
    into: SegmentEntry
    dropped: Ints
    statistics: Statistics
    replanned: tuple[int, ...] = ()

    @property
    def inspects(self) -> bool:
        return self.pieces == (self.into,)

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)


Drifts = dict[int, Drift]
"""The statistics that the plans of a segment's groups depend on, by position. Groups that do not drift are omitted."""


@dataclass(frozen=True, eq=False)
class RebuildResult:
    """The resulting segment, which may be unchanged, and the statistics that its plans depend on."""

    piece: SegmentEntry
    drifts: Drifts


@dataclass(frozen=True, eq=False)
class FinishedWork:
    """Work with its result. `failed` is the error message if it failed."""

    work: Work
    made: RebuildResult | None
    failed: str = ""


class Rebuilder(Protocol):
    """Performs one task after the other."""

    rehearse: Callable[[str], None]
    """Called with a new segment before the planner gets it, so that no micro-batch waits for it to be opened."""

    @property
    def busy(self) -> bool: ...

    def begin(self, work: Work) -> None: ...

    def take(self) -> FinishedWork | None:
        """The work done since the last call."""

    def close(self) -> None: ...


class InlineRebuilder:
    """Performs the work in the calling thread."""

    busy = False

    def __init__(self, folder: Path, requested: Sequence[Strategy] = ()) -> None:
        self.folder, self.requested = folder, tuple(requested)
        self.rehearse: Callable[[str], None] = lambda segment: None
        self._done: FinishedWork | None = None

    def begin(self, work: Work) -> None:
        made = perform(self.folder, work, self.requested)
        rehearse_new(self.rehearse, work, made)
        self._done = FinishedWork(work, made)

    def take(self) -> FinishedWork | None:
        done, self._done = self._done, None
        return done

    def close(self) -> None:
        """Does nothing: no work is left running."""


def rehearse_new(rehearse: Callable[[str], None], work: Work, made: RebuildResult) -> None:
    """Rehearses the segment of some work if there is a new one."""
    if made.piece.size and made.piece not in work.pieces:
        rehearse(made.piece.id)


def perform(folder: Path, work: Work, requested: Sequence[Strategy]) -> RebuildResult:
    """Writes the segment, unless the plans in force are good enough."""
    old = [read_segment(folder, piece.id) for piece in work.pieces]
    if work.inspects:
        return RebuildResult(work.into, drifts_of(old[0].groups))
    if not work.replanned:
        groups = merge_segments(old, work.dropped, work.statistics)
        return RebuildResult(write_piece(folder, work.into, groups, work.statistics, requested), drifts_of(groups))
    (segment,) = old
    better = {place: _better(segment, place, work.statistics) for place in work.replanned}
    groups = tuple(better.get(i) or group for i, group in enumerate(segment.groups))
    if any(better.values()) or _other_strategies(segment, work, requested):
        return RebuildResult(write_piece(folder, work.into, groups, work.statistics, requested), drifts_of(groups))
    return RebuildResult(work.pieces[0], drifts_of(segment.groups))


def drifts_of(groups: Sequence[Group]) -> Drifts:
    drifts = ((place, KINDS[group.kind].drift(group)) for place, group in enumerate(groups))
    return {place: drift for place, drift in drifts if drift is not None}


def _other_strategies(segment: Segment, work: Work, requested: Sequence[Strategy]) -> bool:
    """Whether the rules would now choose other strategies for the kinds of groups that are inspected."""
    kinds = {segment.groups[place].kind for place in work.replanned}
    chosen = choose_strategies(segment.groups, work.statistics, requested, outline=True)
    ours, theirs = (
        {(b.strategy, b.groups) for b in some if segment.groups[b.groups[0]].kind in kinds}
        for some in (segment.bundles, chosen)
    )
    return ours != theirs


def _better(segment: Segment, place: int, statistics: Statistics) -> Group | None:
    group = segment.groups[place]
    return KINDS[group.kind].replanned(group, statistics)


def write_piece(
    folder: Path,
    piece: SegmentEntry,
    groups: Sequence[Group],
    statistics: Statistics,
    requested: Sequence[Strategy],
    compacted: Sequence[CompactQueries] = (),
) -> SegmentEntry:
    """Writes groups, and queries in columns, as a segment, unless it is empty."""
    built = replace(
        piece,
        size=sum(group.size for group in groups) + sum(some.size for some in compacted),
        asked=names_of(requested),
    )
    if built.size:
        write_segment(folder, planned_segment(built.id, groups, statistics, requested), compacted)
    return built


def names_of(requested: Sequence[Strategy]) -> str:
    return ",".join(f"{strategy.kind}={strategy.name}" for strategy in requested)


NONE: Ints = np.empty(0, np.int64)
