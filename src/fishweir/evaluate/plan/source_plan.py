"""The shared plan: the segments' tables by source, with one automaton of paths for each source.

In: segments. Out: for a batch of documents of some sources, the matches of all tables. A source is a
stream by name or, for `in "*"`, a DTD: a stream that conforms to one feeds both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path as FilePath

import numpy as np

from fishweir.algebra.nodes import Source, StreamDefinition
from fishweir.algebra.normal import dotted
from fishweir.evaluate.join.annotations.stage import AnnotationStage
from fishweir.evaluate.join.annotations.tables import AnnotationTable
from fishweir.evaluate.join.many.tables import ManyTable
from fishweir.evaluate.join.stage import Joins, JoinStage
from fishweir.evaluate.join.tables import JoinTable
from fishweir.evaluate.plan.segments import Segment, read_segment
from fishweir.evaluate.select.constant_tables import Table
from fishweir.evaluate.select.filters import FilterTable, match_filters
from fishweir.evaluate.select.match import Matches, match_table
from fishweir.evaluate.select.region_match import match_pool
from fishweir.evaluate.select.regions import Pooled
from fishweir.evaluate.select.twigs import FEWEST, Twigs, build_twigs, is_twig
from fishweir.evaluate.statistics import PathStatistics, count_values, path_key
from fishweir.evaluate.witnesses.counters import StreamCounters, path_keys, to_counts
from fishweir.evaluate.witnesses.path_tables import FirstValues, Path, PathTable
from fishweir.evaluate.witnesses.shared_paths import DocumentWalk, FoundTables, SharedPaths


def sources_of(stream: StreamDefinition) -> tuple[Source, ...]:
    own = (Source(stream.name),)
    return (*own, Source(stream.dtd, dtd=True)) if stream.dtd else own


COUNTED = 256
"""Paths of which statistics are taken in one chunk: the counting must stay a small part of the matching."""

Placed = tuple[str, int, Table | FilterTable]
"""Segment, place in it, table."""


@dataclass
class SourcePlan:
    """The tables over one set of sources, each with its place, and the paths they need.

    The automaton is shared by all plans of the sources, so that a new segment adds its own paths only.
    """

    shared: SharedPaths = field(default_factory=SharedPaths)
    tables: list[Placed] = field(default_factory=list)
    pools: list[tuple[str, Pooled]] = field(default_factory=list)
    paths: dict[Path, bool] = field(default_factory=dict)
    joined: dict[Path, bool] = field(default_factory=dict)
    worded: set[Path] = field(default_factory=set)
    by_segment: dict[str, dict[Path, bool]] = field(default_factory=dict)
    _twigs: dict[str, tuple[int, Twigs]] = field(default_factory=dict)

    def add(self, segment: str, index: int, table: Table | FilterTable) -> None:
        self.tables.append((segment, index, table))
        self.worded |= table.worded if isinstance(table, FilterTable) else set()
        self._read(segment, table.paths)

    def add_joins(self, segment: str, paths: Mapping[Path, bool]) -> None:
        self.joined |= {path: valued or self.joined.get(path, False) for path, valued in paths.items()}
        self._read(segment, paths)

    def _read(self, segment: str, paths: Mapping[Path, bool]) -> None:
        own = self.by_segment.setdefault(segment, {})
        for path, valued in paths.items():
            for known in (self.paths, own):
                known[path] = known.get(path, False) or valued

    def start(self) -> DocumentWalk:
        """A walk over a batch of documents; its tables are what `match` takes."""
        self.shared.hold(self.by_segment)
        return self.shared.start()

    def match(self, witnesses: Mapping[Path, PathTable]) -> Iterator[tuple[str, int, Matches]]:
        """The matches of a pool, and of twigs, which are lists of queries, are put down to its first table."""
        columns = FirstValues(witnesses)
        walked = isinstance(witnesses, FoundTables) and witnesses.shared is self.shared
        if walked:
            for segment, twigs in self._current_twigs():
                matches = twigs.match(witnesses)  # type: ignore[arg-type]
                if matches is not None:
                    yield segment, twigs.indexes[0], matches
        for segment, index, table in self._alone[walked]:
            if isinstance(table, FilterTable):
                matches = match_filters(table, witnesses)
            else:
                matches = match_table(table, columns if table.template.columns else witnesses)
            if matches is not None:
                yield segment, index, matches
        for segment, pool in self.pools:
            for matches in match_pool(pool, columns if pool.tables[0].template.columns else witnesses):
                yield segment, pool.indexes[0], matches

    @cached_property
    def _alone(self) -> dict[bool, list[Placed]]:
        """The tables that are looked up by themselves, by whether the batch was walked: twigs need that."""
        others = [placed for placed in self.tables if placed[:2] not in self._pooled]
        return {False: others, True: [placed for placed in others if placed[:2] not in self._in_twigs]}

    @cached_property
    def _pooled(self) -> set[tuple[str, int]]:
        return {(segment, index) for segment, pool in self.pools for index in pool.indexes}

    @cached_property
    def _in_twigs(self) -> set[tuple[str, int]]:
        return {(segment, index) for segment, own in self._twig_tables.items() for index, _ in own}

    @cached_property
    def _twig_tables(self) -> dict[str, list[tuple[int, Table]]]:
        """The tables of each segment that are twigs, where there are enough of them."""
        found: dict[str, list[tuple[int, Table]]] = {}
        for segment, index, table in self.tables:
            if isinstance(table, Table) and (segment, index) not in self._pooled and is_twig(table):
                found.setdefault(segment, []).append((index, table))
        return {segment: own for segment, own in found.items() if len(own) >= FEWEST}

    def _current_twigs(self) -> list[tuple[str, Twigs]]:
        """The twigs of each segment, made anew when the automaton has taken its paths anew."""
        for segment, own in self._twig_tables.items():
            held = self.shared.held_since[segment]
            if segment not in self._twigs or self._twigs[segment][0] != held:
                self._twigs[segment] = held, build_twigs(own, self.shared)
        return [(segment, twigs) for segment, (_, twigs) in self._twigs.items()]

    @cached_property
    def _planned_by(self) -> list[Path]:
        """The paths whose values plans are made by: twigs find out by themselves what is rare in a batch."""
        read = [placed[2].paths for placed in self.tables if placed[:2] not in self._in_twigs]
        return list(dict.fromkeys(p for paths in (*read, self.joined) for p, valued in paths.items() if valued))

    def count(
        self, sources: Sequence[Source], witnesses: Mapping[Path, PathTable], turn: int = 0
    ) -> dict[str, PathStatistics]:
        """Statistics of the paths that conditions read; where there are many, of as many as a `turn` allows."""
        turns = -(-len(self._planned_by) // COUNTED) or 1
        paths = self._planned_by[turn % turns :: turns]
        counted = {p: count_values(t, p in self.worded) for p in paths if (t := witnesses.get(p)) is not None}
        return {path_key(source, dotted(p)): s for source in sources for p, s in counted.items()}

    def counters(self, documents: int, witnesses: Mapping[Path, PathTable]) -> StreamCounters:
        """How many nodes and documents each path has; tuples have columns, and no elements to walk."""
        if isinstance(witnesses, FoundTables):
            return witnesses.counters()
        tables = witnesses.values()
        inside = [len(t) if t.single else len(np.unique(t.documents)) for t in tables]
        counts = to_counts(path_keys(witnesses), [len(t) for t in tables], inside)
        return StreamCounters(documents, 0, 0, len(self.paths), counts)


@lru_cache(maxsize=256)
def cached_segment(folder: FilePath, id: str) -> Segment:
    return read_segment(folder, id)


@lru_cache(maxsize=256)
def cached_paths(folder: FilePath, sources: tuple[Source, ...]) -> SharedPaths:
    """The automaton of some sources, kept per process whatever segments come and go."""
    return SharedPaths()


@lru_cache(maxsize=1024)
def cached_plan(folder: FilePath, ids: tuple[str, ...], sources: tuple[Source, ...]) -> SourcePlan:
    """The plan of some sources, kept per process: segments never change."""
    return plan_of([cached_segment(folder, id) for id in ids], sources, cached_paths(folder, sources))


@lru_cache(maxsize=256)
def cached_joins(folder: FilePath, id: str) -> Joins:
    return Joins([table for table in cached_segment(folder, id).tables if isinstance(table, JoinTable | ManyTable)])


@lru_cache(maxsize=64)
def cached_stage(folder: FilePath, ids: tuple[str, ...]) -> JoinStage:
    return JoinStage([cached_joins(folder, id) for id in ids])


@lru_cache(maxsize=16)
def cached_annotations(folder: FilePath, ids: tuple[str, ...]) -> AnnotationStage:
    """The annotation joins of a plan."""
    segments = [cached_segment(folder, id) for id in ids]
    return AnnotationStage([table for s in segments for table in s.tables if isinstance(table, AnnotationTable)])


def plan_of(segments: Sequence[Segment], sources: Sequence[Source], shared: SharedPaths | None = None) -> SourcePlan:
    plan = SourcePlan(shared or SharedPaths())
    for segment in segments:
        if joined := segment.join_paths(tuple(sources)):
            plan.add_joins(segment.id, joined)
        for index, table in enumerate(segment.tables):
            if isinstance(table, AnnotationTable):
                plan.add_joins(segment.id, table.paths(sources))
            elif not isinstance(table, JoinTable | ManyTable) and table.source in sources:
                plan.add(segment.id, index, table)
        plan.pools += [(segment.id, pool) for pool in segment.pooled if pool.source in sources]
    return plan
