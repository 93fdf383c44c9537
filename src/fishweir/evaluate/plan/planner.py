"""The planner: keeps the list of segments in step with the catalog.

New queries become a new segment, grouped by the statistics of the moment. Neighbours of like size are
merged, so there are few segments and a query is rewritten a logarithmic number of times; a merge
keeps every query in its group. Which strategy evaluates which groups (rules.py) is decided for each segment that is
written, so that queries which came one by one are looked up together once they are many; segments are written anew
when other strategies are asked for by name. A segment most of whose
queries are gone is written anew. Dropped queries otherwise stay where they are:
whoever expands a set leaves out the queries that were not alive at the version the micro-batch ran with.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import Group, QueryRow, Strategy
from fishweir.evaluate.plan.registry import KINDS
from fishweir.evaluate.plan.segments import (
    Segment,
    build_groups,
    merge_segments,
    planned_segment,
    read_segment,
    write_segment,
)
from fishweir.evaluate.statistics import Statistics
from fishweir.sealed import read_json, write_json

Alive = Callable[[int, int], Iterable[QueryRow]]
"""The living queries with change numbers in (after, upto]."""

Dropped = Callable[[], Iterable[int]]
"""The numbers of all dropped queries."""

MERGE_FACTOR = 2
SMALL = 256


@dataclass(frozen=True)
class Piece:
    """A segment in the list: its range of changes, when it was built and how many queries it has."""

    after: int
    upto: int
    built: int
    size: int
    revision: int = 0
    """Counts the plans made anew because the statistics had drifted."""
    plan: str = ""
    """The plan's own name: processes remember segments by their ids, and a home may be made anew in the same place."""
    asked: str = ""
    """The strategies asked for by name when it was written."""

    @property
    def id(self) -> str:
        revised = f"-{self.revision}" if self.revision else ""
        return f"{self.plan}-{self.after}-{self.upto}-{self.built}{revised}"


class Planner:
    def __init__(self, folder: Path, alive: Alive, dropped: Dropped, asked: Sequence[Strategy] = ()) -> None:
        """`asked` are strategies that somebody wants by name: they take what they can evaluate."""
        self.folder, self.alive, self.dropped, self.asked = folder, alive, dropped, tuple(asked)
        self._asked = ",".join(f"{strategy.kind}={strategy.name}" for strategy in asked)
        folder.mkdir(parents=True, exist_ok=True)
        self.list = folder / "current.json"
        saved = read_json(self.list, [])
        self.pieces = tuple(Piece(**piece) for piece in saved)
        self.name = self.pieces[0].plan if self.pieces else secrets.token_hex(4)
        self._drifting: dict[str, dict[int, Group]] = {}
        self._looked_at: dict[tuple[str, int], int] = {}

    @property
    def version(self) -> int:
        """The version of the catalog that the plan reflects."""
        return max((piece.built for piece in self.pieces), default=0)

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(piece.id for piece in self.pieces if piece.size)

    def refresh(self, version: int, living: Callable[[int, int], int], statistics: Statistics) -> None:
        """Brings the plan to the catalog's version; `living` counts living queries in (after, upto]."""
        self._ask(statistics)
        self._reconsider(statistics)
        if version == self.version:
            return
        new = Segment("", build_groups(self.alive(self._upto, version), statistics))
        groups = [[piece] for piece in self.pieces]
        size, after = new.size, self._upto
        while groups and groups[-1][0].size <= max(SMALL, MERGE_FACTOR * size):
            (piece,) = groups.pop()
            size, after = size + piece.size, piece.after
        kept = [piece for (piece,) in groups]
        pieces = [self._renewed(p, version, statistics) if 2 * living(p.after, p.upto) < p.size else p for p in kept]
        merged = self._merged(self.pieces[len(kept) :], statistics, new)
        self.pieces = (*pieces, self._write(Piece(after, version, version, 0, plan=self.name), merged, statistics))
        self._save()

    def tail(self, version: int, statistics: Statistics) -> Segment:
        """What is registered but not yet in a segment, for those who only look."""
        return self._segment("tail", build_groups(self.alive(self._upto, version), statistics), statistics)

    def _segment(self, id: str, groups: tuple[Group, ...], statistics: Statistics) -> Segment:
        return planned_segment(id, groups, statistics, self.asked)

    @property
    def _upto(self) -> int:
        return self.pieces[-1].upto if self.pieces else 0

    def _ask(self, statistics: Statistics) -> None:
        """Writes the segments anew that were planned with other strategies asked for; their groups stay."""
        pieces = tuple(
            piece if piece.asked == self._asked else self._asking(piece, statistics) for piece in self.pieces
        )
        if pieces != self.pieces:
            self.pieces = pieces
            self._save()

    def _asking(self, piece: Piece, statistics: Statistics) -> Piece:
        if not piece.size:
            return replace(piece, asked=self._asked)
        groups = read_segment(self.folder, piece.id).groups
        return self._write(replace(piece, revision=piece.revision + 1), groups, statistics)

    def _reconsider(self, statistics: Statistics) -> None:
        """Makes plans of groups anew that the statistics have drifted away from; a group is looked at whenever its
        source has been counted twice as far as the last time."""
        pieces = tuple(self._replanned(piece, statistics) if piece.size else piece for piece in self.pieces)
        if pieces != self.pieces:
            self.pieces = pieces
            self._save()

    def _replanned(self, piece: Piece, statistics: Statistics) -> Piece:
        better: dict[int, Group] = {}
        for index, group in self._groups(piece.id, statistics).items():
            kind = KINDS[group.kind]
            counted = kind.counted(group, statistics) or 0
            if counted < max(2 * self._looked_at.get((piece.id, index), 0), 1):
                continue
            self._looked_at[piece.id, index] = counted
            new = kind.replanned(group, statistics)
            if new is not None:
                better[index] = new
        if not better:
            return piece
        groups = read_segment(self.folder, piece.id).groups
        revised = replace(piece, revision=piece.revision + 1)
        return self._write(revised, tuple(better.get(i, group) for i, group in enumerate(groups)), statistics)

    def _groups(self, id: str, statistics: Statistics) -> dict[int, Group]:
        """The groups of a segment whose plans may drift, by their places, read once."""
        if id not in self._drifting:
            groups = enumerate(read_segment(self.folder, id).groups)
            self._drifting = {p.id: self._drifting[p.id] for p in self.pieces if p.id in self._drifting}
            drifting = {i: group for i, group in groups if KINDS[group.kind].counted(group, statistics) is not None}
            self._drifting[id] = drifting
            self._looked_at |= {(id, i): KINDS[group.kind].counted_then(group) for i, group in drifting.items()}
        return self._drifting[id]

    def _renewed(self, piece: Piece, version: int, statistics: Statistics) -> Piece:
        return self._write(
            replace(piece, built=version, size=0, revision=0), self._merged((piece,), statistics), statistics
        )

    def _merged(self, pieces: Iterable[Piece], statistics: Statistics, *more: Segment) -> tuple[Group, ...]:
        dead: Ints = np.fromiter(self.dropped(), dtype=np.int64)
        old = [read_segment(self.folder, piece.id) for piece in pieces if piece.size]
        return merge_segments([*old, *more], dead, statistics)

    def _write(self, piece: Piece, groups: tuple[Group, ...], statistics: Statistics) -> Piece:
        built = replace(piece, size=sum(group.size for group in groups), asked=self._asked)
        if built.size:
            write_segment(self.folder, self._segment(built.id, groups, statistics))
        return built

    def _save(self) -> None:
        write_json(self.list, [asdict(piece) for piece in self.pieces])
