"""The list of segments in force: which queries are in which segment, up to which change of the catalog."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fishweir.sealed import read_json, write_json


@dataclass(frozen=True)
class SegmentEntry:
    """A segment in the list: its range of changes, when it was built and the number of its queries."""

    after: int
    upto: int
    built: int
    """The last change it reflects: queries dropped up to this change are not in it."""
    size: int
    revision: int = 0
    """The number of times its plan was replaced because the statistics had drifted."""
    plan: str = ""
    """The plan's own name: processes cache segments by their ids, and a home may be recreated in the same place."""
    asked: str = ""
    """The strategies requested by name when it was written."""

    @property
    def id(self) -> str:
        revised = f"-{self.revision}" if self.revision else ""
        return f"{self.plan}-{self.after}-{self.upto}-{self.built}{revised}"


@dataclass(frozen=True)
class Manifest:
    """Segments in the order of their changes. They contain all queries up to the change `upto`."""

    upto: int = 0
    pieces: tuple[SegmentEntry, ...] = ()
    name: str = ""

    def with_pieces(self, old: Sequence[SegmentEntry], new: SegmentEntry | None) -> Manifest | None:
        """The list with some adjacent segments replaced by one or none; None if these are no longer in force."""
        at = next((i for i, piece in enumerate(self.pieces) if piece == old[0]), -1)
        if at < 0 or self.pieces[at : at + len(old)] != tuple(old):
            return None
        between = () if new is None or not new.size else (new,)
        return Manifest(self.upto, (*self.pieces[:at], *between, *self.pieces[at + len(old) :]), self.name)


def load_manifest(path: Path) -> Manifest:
    saved = read_json(path, None, rebuilt="the planner, from the catalog")
    if saved is None:
        return Manifest(name=secrets.token_hex(4))
    return Manifest(saved["upto"], tuple(SegmentEntry(**piece) for piece in saved["pieces"]), saved["name"])


def save_manifest(path: Path, current: Manifest) -> None:
    write_json(path, asdict(current))
