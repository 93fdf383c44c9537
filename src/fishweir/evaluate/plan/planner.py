"""The planner: keeps the list of segments in step with the catalog.

Queries that were registered in bulk have their own segments. The others become a small segment at once, grouped by the
current statistics. Everything else is left to a rebuilder, which may be a separate process. It merges neighbours of
similar size, so that there are few segments and a query is rewritten a logarithmic number of times (a merge keeps every
query in its group). It rewrites a segment most of whose queries have been dropped, and replaces plans when the
statistics have drifted. The planner adopts a rebuilder's result if its input segments are still in force. Otherwise,
dropped queries stay where they are: expanding a set omits the queries that were not alive at the version the
micro-batch ran with.

The rules choose the strategies (rules.py) for each segment that is written, so queries registered one by one are looked
up together once there are many. Segments are rewritten when other strategies are requested.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Protocol

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import Strategy
from fishweir.evaluate.plan.manifest import Manifest, SegmentEntry, load_manifest, save_manifest
from fishweir.evaluate.plan.rebuild import (
    NONE,
    Drifts,
    InlineRebuilder,
    Rebuilder,
    RebuildResult,
    Work,
    drifts_of,
    names_of,
    write_piece,
)
from fishweir.evaluate.plan.segments import (
    Segment,
    build_groups,
    merge_segments,
    planned_segment,
    read_segment,
    segment_path,
)
from fishweir.evaluate.query_rows import QueryRow
from fishweir.evaluate.statistics import Statistics

logger = logging.getLogger("fishweir.plan")

MERGE_FACTOR = 2
SMALL = 256
ATTEMPTS = 3
"""Number of attempts at the same work until the catalog changes."""


class PlannerCatalog(Protocol):
    """The planner's view of the catalog."""

    def planned(self, after: int, upto: int) -> Iterable[QueryRow]:
        """The living queries with change numbers in (after, upto]."""

    def dropped(self) -> Ints:
        """The numbers of all dropped queries."""

    def gone(self, piece: SegmentEntry, version: int) -> int:
        """The number of queries of a segment that were dropped after it was built, up to a version or a later one."""

    def written(self, after: int) -> Sequence[SegmentEntry]:
        """Segments of registrations with later changes, in order."""


class Planner:
    def __init__(
        self,
        folder: Path,
        registered: PlannerCatalog,
        requested: Sequence[Strategy] = (),
        rebuilder: Rebuilder | None = None,
    ) -> None:
        """`requested` strategies take every group that they can evaluate."""
        self.folder, self.registered, self.requested = folder, registered, tuple(requested)
        self.rebuilder = rebuilder or InlineRebuilder(folder, requested)
        folder.mkdir(parents=True, exist_ok=True)
        self._list = folder / "current.json"
        self.current = load_manifest(self._list)
        self._in_progress: Work | None = None
        self._drifts: dict[str, Drifts] = {}
        """By segment. A rebuilder inspects the segments that are missing here."""
        self._inspected: dict[tuple[str, int], int] = {}
        self._failed: dict[tuple[str, ...], int] = {}

    @property
    def version(self) -> int:
        """The version of the catalog that the plan reflects."""
        return self.current.upto

    @property
    def pieces(self) -> tuple[SegmentEntry, ...]:
        return self.current.pieces

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(piece.id for piece in self.pieces)

    def refresh(self, version: int, statistics: Statistics) -> None:
        """Brings the plan up to the catalog's version."""
        before = self.current
        self._adopt()
        if version != self.version:
            self._failed.clear()
            for piece in self._written(version):
                self._add(piece.after, statistics)
                self.current = Manifest(piece.upto, (*self.pieces, piece), self.current.name)
            self._add(version, statistics)
        self._apply_requested(statistics)
        while not self.rebuilder.busy and (work := self._work(statistics)) is not None:
            self._in_progress = work
            self.rebuilder.begin(work)
            self._adopt()
        if self.current != before:
            save_manifest(self._list, self.current)

    def tail(self, version: int, statistics: Statistics) -> list[Segment]:
        """Segments of the registered queries that are not yet in the list, for read-only use."""
        found, start = list[Segment](), self.version
        for piece in self._written(version):
            found += [self._built(start, piece.after, statistics), read_segment(self.folder, piece.id)]
            start = piece.upto
        return [*found, self._built(start, version, statistics)]

    def _built(self, after: int, upto: int, statistics: Statistics) -> Segment:
        groups = build_groups(self.registered.planned(after, upto), statistics)
        return planned_segment("tail", groups, statistics, self.requested)

    def _written(self, version: int) -> Iterator[SegmentEntry]:
        """The segments of registrations up to a version. They may have been written for another home."""
        for piece in self.registered.written(self.version):
            if piece.upto <= version and segment_path(self.folder, piece.id).exists():
                yield piece

    def _add(self, upto: int, statistics: Statistics) -> None:
        """Adds a segment of the queries up to a change that are in no segment, merged with the small segments before
        it."""
        start, pieces = self.version, self.pieces
        groups = build_groups(self.registered.planned(start, upto), statistics) if upto > start else ()
        size = sum(group.size for group in groups)
        small: list[SegmentEntry] = []
        busy = set(self._in_progress.pieces) if self._in_progress else set()
        while size and pieces and pieces[-1] not in busy and size + pieces[-1].size <= SMALL:
            small.append(pieces[-1])
            size, pieces = size + pieces[-1].size, pieces[:-1]
        if size:
            after = small[-1].after if small else start
            if small:
                old = [read_segment(self.folder, piece.id) for piece in reversed(small)]
                groups = merge_segments([*old, Segment("", groups)], self.registered.dropped(), statistics)
            into = SegmentEntry(after, upto, upto, 0, plan=self.current.name)
            written = write_piece(self.folder, into, groups, statistics, self.requested)
            pieces = (*pieces, written)
        self.current = Manifest(max(upto, start), tuple(p for p in pieces if p.size), self.current.name)
        if size:
            self._keep_drifts(RebuildResult(written, drifts_of(groups)))

    def _apply_requested(self, statistics: Statistics) -> None:
        """Rewrites the segments that were planned for other requested strategies. Their groups stay."""
        requested = names_of(self.requested)
        for piece in self.pieces:
            if piece.asked != requested:
                groups = read_segment(self.folder, piece.id).groups
                into = replace(piece, revision=piece.revision + 1)
                self._replace((piece,), write_piece(self.folder, into, groups, statistics, self.requested))

    # Work for the rebuilder.

    def _adopt(self) -> None:
        done = self.rebuilder.take()
        if done is None:
            return
        self._in_progress = None
        if done.made is None:
            ids = tuple(piece.id for piece in done.work.pieces)
            self._failed[ids] = self._failed.get(ids, 0) + 1
            self._inspected |= {(ids[0], place): 0 for place in done.work.replanned}
            logger.error("segments %s could not be rewritten: %s", ", ".join(ids), done.failed)
            return
        if done.made.piece != done.work.pieces[0]:
            self._replace(done.work.pieces, done.made.piece)
        self._keep_drifts(done.made)

    def _keep_drifts(self, made: RebuildResult) -> None:
        in_force, new = set(self.segments), made.piece.id not in self._drifts
        self._drifts = {id: drifts for id, drifts in self._drifts.items() if id in in_force}
        self._inspected = {key: counted for key, counted in self._inspected.items() if key[0] in in_force}
        if new and made.piece.id in in_force:
            self._drifts[made.piece.id] = made.drifts
            self._inspected |= {(made.piece.id, place): drift.then for place, drift in made.drifts.items()}

    def _replace(self, old: Sequence[SegmentEntry], new: SegmentEntry) -> None:
        self.current = self.current.with_pieces(old, new) or self.current

    def _work(self, statistics: Statistics) -> Work | None:
        for work in chain(self._merges(statistics), self._renewals(statistics), self._replans(statistics)):
            if self._failed.get(tuple(piece.id for piece in work.pieces), 0) < ATTEMPTS:
                return work
        return None

    def _merges(self, statistics: Statistics) -> Iterator[Work]:
        """Merges a segment with those before it as long as the preceding one is not much larger than all of them,
        beginning with the newest segment. A small new segment does not keep large ones before it from being merged."""
        for end in range(len(self.pieces) - 1, 0, -1):
            start, size = end, self.pieces[end].size
            while start > 0 and self.pieces[start - 1].size <= max(SMALL, MERGE_FACTOR * size):
                start -= 1
                size += self.pieces[start].size
            if start < end:
                yield self._merged(self.pieces[start : end + 1], statistics)

    def _renewals(self, statistics: Statistics) -> Iterator[Work]:
        for piece in self.pieces:
            if 2 * self.registered.gone(piece, self.version) > piece.size:
                yield self._merged((piece,), statistics)

    def _merged(self, pieces: tuple[SegmentEntry, ...], statistics: Statistics) -> Work:
        into = SegmentEntry(pieces[0].after, pieces[-1].upto, self.version, 0, plan=self.current.name)
        return Work(pieces, into, self.registered.dropped(), dict(statistics))

    def _replans(self, statistics: Statistics) -> Iterator[Work]:
        """Inspects a group whenever the counts of its source have doubled since the last time."""
        for piece in self.pieces:
            drifts = self._drifts.get(piece.id)
            if drifts is None:
                yield Work((piece,), piece, NONE, {})
                continue
            places = []
            for place, drift in drifts.items():
                counted = drift.counted(statistics)
                if counted >= max(2 * self._inspected[piece.id, place], 1):
                    self._inspected[piece.id, place] = counted
                    places.append(place)
            if places:
                into = replace(piece, revision=piece.revision + 1)
                yield Work((piece,), into, NONE, dict(statistics), tuple(places))
