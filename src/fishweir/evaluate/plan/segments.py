"""Segments: immutable pieces of the shared plan, one file each, mapped by every worker that needs it.

A segment holds the groups of the queries whose change numbers lie in (after, upto], whatever their kinds, and records
which strategy evaluates which of them. One more query among a million is a new segment of one row: the others are not
sent again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from fishweir.algebra.nodes import Source
from fishweir.evaluate.arrays import Ints, read_arrays, write_arrays
from fishweir.evaluate.group import Bundle, CompactQueries, Group, Kind, Paths, PlacedBundle, Strategy
from fishweir.evaluate.matches import to_members
from fishweir.evaluate.plan.registry import KINDS
from fishweir.evaluate.plan.rules import choose_strategies, strategy_of
from fishweir.evaluate.query_rows import PathRow, QueryRow
from fishweir.evaluate.statistics import Statistics

BUNDLE = "b"
"""Precedes the number of a bundle in the names of its arrays."""


@dataclass(frozen=True)
class Segment:
    """Groups in the order of the kinds. `bundles` say how they are evaluated."""

    id: str
    groups: tuple[Group, ...]
    bundles: tuple[Bundle, ...] = ()

    @property
    def size(self) -> int:
        return sum(group.size for group in self.groups)

    @cached_property
    def placed(self) -> tuple[PlacedBundle, ...]:
        return tuple(PlacedBundle(self.id, b, tuple(self.groups[place] for place in b.groups)) for b in self.bundles)

    @cached_property
    def operators(self) -> dict[str, list[Any]]:
        """The operators of the bundles by kind, created once per process."""
        found: dict[str, list[Any]] = defaultdict(list)
        for placed in self.placed:
            found[placed.groups[0].kind].append(strategy_of(placed.bundle).operator(placed))
        return dict(found)

    def paths(self, sources: tuple[Source, ...]) -> Paths:
        """The paths that its groups read of some sources, computed once per segment."""
        if sources not in self._paths:
            found: Paths = {}
            for group in self.groups:
                for path, valued in group.paths(sources).items():
                    found[path] = found.get(path, False) or valued
            self._paths[sources] = found
        return self._paths[sources]

    @cached_property
    def _paths(self) -> dict[tuple[Source, ...], Paths]:
        return {}


def planned_segment(
    id: str, groups: Sequence[Group], statistics: Statistics, requested: Sequence[Strategy] = ()
) -> Segment:
    """A segment of some groups, each evaluated by the strategy that the rules choose."""
    return Segment(id, tuple(groups), choose_strategies(groups, statistics, requested))


def build_groups(queries: Iterable[QueryRow], statistics: Statistics) -> tuple[Group, ...]:
    """The groups of some queries and their sides, each built by the kind that its template names."""
    rows: dict[str, list[QueryRow]] = defaultdict(list)
    for row in queries:
        rows[row[1].kind].append(row)
    for name in reversed(KINDS):
        for row in KINDS[name].side_rows(rows[name]):
            rows[row[1].kind].append(row)
    return tuple(group for name, kind in KINDS.items() if rows[name] for group in kind.build(rows[name], statistics))


def merge_segments(segments: Iterable[Segment], dropped: Ints, statistics: Statistics) -> tuple[Group, ...]:
    """Merges the groups of several segments, without the dropped queries and the sides that only they read."""
    groups: dict[str, list[Group]] = defaultdict(list)
    for segment in segments:
        for group in segment.groups:
            groups[group.kind].append(group)
    merged: dict[str, list[Group]] = {}
    for name in reversed(KINDS):
        kind, own = KINDS[name], groups[name]
        merged[name] = kind.merge(own, dropped, statistics) if own else []
        gone = np.setdiff1d(_sides(kind, own), _sides(kind, merged[name]))
        dropped = np.append(dropped, to_members(gone)) if len(gone) else dropped
    return tuple(group for name in KINDS for group in merged[name])


def _sides(kind: Kind, groups: Sequence[Group]) -> Ints:
    return np.concatenate([np.empty(0, np.int64), *(kind.sides(group) for group in groups)])


def compact(
    rows: Iterable[PathRow], requested: Sequence[Strategy]
) -> tuple[Sequence[CompactQueries], Sequence[QueryRow]]:
    """Divides queries that are single paths into those that are written in columns and those that stay rows."""
    for kind in KINDS.values():
        found = kind.compact(rows, requested)
        if found is not None:
            return found
    raise TypeError("no kind of group evaluates paths")


def write_segment(folder: FilePath, segment: Segment, compacted: Sequence[CompactQueries] = ()) -> None:
    """Writes a segment: its groups, then the queries that are written in columns."""
    entries: list[Group | CompactQueries] = [*segment.groups, *compacted]
    headers = [[entry.kind, entry.header()] for entry in entries]
    modules = sorted({KINDS[group.kind].module for group in segment.groups} - {""})
    bundles = [*segment.bundles, *_bundles_of(compacted, len(segment.groups))]
    header = {"modules": modules, "groups": headers, "bundles": [bundle.header() for bundle in bundles]}
    arrays = {f"{i}:{k}": v for i, entry in enumerate(entries) for k, v in entry.arrays().items()}
    arrays |= {f"{BUNDLE}{i}:{k}": v for i, bundle in enumerate(bundles) for k, v in bundle.arrays.items()}
    write_arrays(segment_path(folder, segment.id), header, arrays)


def _bundles_of(compacted: Sequence[CompactQueries], place: int) -> Iterator[Bundle]:
    """The bundles of the groups that readers build, numbered from `place`."""
    for one in compacted:
        yield one.bundle(place)
        place += one.groups


def read_segment(folder: FilePath, id: str) -> Segment:
    header: Any
    header, arrays = read_arrays(segment_path(folder, id))
    for module in header["modules"]:
        import_module(module)
    own: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, array in arrays.items():
        index, _, key = name.partition(":")
        own[index][key] = array
    entries = enumerate(header["groups"])
    groups = tuple(group for i, (kind, head) in entries for group in KINDS[kind].read_all(head, own[str(i)]))
    bundles = (Bundle.read(head, own[f"{BUNDLE}{i}"]) for i, head in enumerate(header["bundles"]))
    return Segment(id, groups, tuple(bundles))


def segment_path(folder: FilePath, id: str) -> FilePath:
    return folder / segment_name(id)


def segment_name(id: str) -> str:
    return f"segment-{id}.bin"
