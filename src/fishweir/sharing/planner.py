"""The planner: keeps the list of segments in step with the catalog.

New queries become a new segment; neighbours of like size are merged, so there are few segments and a
query is rewritten a logarithmic number of times; a segment most of whose queries are gone is written
anew. Dropped queries otherwise stay where they are: whoever expands a set leaves out the queries
that were not alive at the version the micro-batch ran with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fishweir.sharing.segments import QueryRow, Segment, build_tables, write_segment
from fishweir.sharing.statistics import Statistics

Alive = Callable[[int, int], Iterable[QueryRow]]
"""The living queries with change numbers in (after, upto]."""

MERGE_FACTOR = 2
SMALL = 256


@dataclass(frozen=True)
class Piece:
    """A segment in the list: its range of changes and how many queries it was built with."""

    after: int
    upto: int
    built: int
    size: int

    @property
    def id(self) -> str:
        return f"{self.after}-{self.upto}-{self.built}"

    def renewed(self, version: int) -> Piece:
        return replace(self, built=version)


class Planner:
    def __init__(self, folder: Path, alive: Alive) -> None:
        self.folder, self.alive = folder, alive
        folder.mkdir(parents=True, exist_ok=True)
        self.list = folder / "current.json"
        self.pieces = (
            tuple(Piece(**p) for p in json.loads(self.list.read_text())) if self.list.exists() else ()
        )

    @property
    def version(self) -> int:
        return max((piece.built for piece in self.pieces), default=0)

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(piece.id for piece in self.pieces if piece.size)

    def refresh(self, version: int, living: Callable[[int, int], int], statistics: Statistics) -> None:
        """Brings the plan to the catalog's version; `living` counts living queries in (after, upto]."""
        if version == self.version:
            return
        upto = self.pieces[-1].upto if self.pieces else 0
        wanted = [p if 2 * living(p.after, p.upto) >= p.size else p.renewed(version) for p in self.pieces]
        wanted.append(Piece(upto, version, version, living(upto, version)))
        while len(wanted) > 1 and wanted[-2].size <= max(SMALL, MERGE_FACTOR * wanted[-1].size):
            last, before = wanted.pop(), wanted.pop()
            wanted.append(Piece(before.after, last.upto, version, before.size + last.size))
        kept = set(self.pieces)
        self.pieces = tuple(p if p in kept else self._build(p, statistics) for p in wanted)
        self._save()

    def tail(self, version: int, statistics: Statistics) -> Segment:
        """What is registered but not yet in a segment, for those who only look."""
        upto = self.pieces[-1].upto if self.pieces else 0
        return Segment("tail", build_tables(self.alive(upto, version), statistics))

    def _build(self, piece: Piece, statistics: Statistics) -> Piece:
        tables = build_tables(self.alive(piece.after, piece.upto), statistics)
        built = replace(piece, size=sum(table.size for table in tables))
        if built.size:
            write_segment(self.folder, Segment(built.id, tables))
        return built

    def _save(self) -> None:
        temporary = self.list.with_suffix(".tmp")
        temporary.write_text(json.dumps([asdict(piece) for piece in self.pieces]))
        temporary.replace(self.list)
