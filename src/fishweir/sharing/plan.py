"""The shared plan: the segments' tables by source, with one automaton of paths for each source.

In: segments. Out: for a batch of documents of some sources, the matches of all tables. A source is a
stream by name or, for `in "*"`, a DTD: a stream that conforms to one feeds both.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path as FilePath

import numpy as np

from fishweir.algebra.nodes import Source, StreamDefinition
from fishweir.algebra.normal import dotted
from fishweir.sharing.counters import StreamCounters, path_keys, to_counts
from fishweir.sharing.filters import FilterTable, match_filters
from fishweir.sharing.joins.annotation_stage import AnnotationStage
from fishweir.sharing.joins.annotation_tables import AnnotationTable
from fishweir.sharing.joins.many_tables import ManyTable
from fishweir.sharing.joins.stage import Joins, JoinStage
from fishweir.sharing.joins.tables import JoinTable
from fishweir.sharing.match import Matches, match_table
from fishweir.sharing.paths import DocumentWalk, FoundTables, SharedPaths
from fishweir.sharing.pool_match import match_pool
from fishweir.sharing.pooled import Pooled
from fishweir.sharing.segments import Segment, read_segment
from fishweir.sharing.statistics import PathStatistics, count_values, path_key
from fishweir.sharing.tables import Table
from fishweir.sharing.twigs import FEWEST, Twigs, build_twigs, is_twig
from fishweir.sharing.witnesses import FirstValues, Path, PathTable


def sources_of(stream: StreamDefinition) -> tuple[Source, ...]:
    own = (Source(stream.name),)
    return (*own, Source(stream.dtd, dtd=True)) if stream.dtd else own


@dataclass
class SourcePlan:
    """The tables over one set of sources, each with its place, and the paths they need.

    The automaton is shared by all plans of the sources, so that a new segment adds its own paths only.
    """

    shared: SharedPaths = field(default_factory=SharedPaths)
    tables: list[tuple[str, int, Table | FilterTable]] = field(default_factory=list)
    pools: list[tuple[str, Pooled]] = field(default_factory=list)
    paths: dict[Path, bool] = field(default_factory=dict)
    worded: set[Path] = field(default_factory=set)
    by_segment: dict[str, dict[Path, bool]] = field(default_factory=dict)
    _twigs: dict[str, tuple[int, Twigs | None]] = field(default_factory=dict)

    def add(self, segment: str, index: int, table: Table | FilterTable) -> None:
        self.tables.append((segment, index, table))
        self.worded |= table.worded if isinstance(table, FilterTable) else set()
        self._read(segment, table.paths)

    def add_joins(self, segment: str, paths: Mapping[Path, bool]) -> None:
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
        together = {(segment, index) for segment, pool in self.pools for index in pool.indexes}
        if isinstance(witnesses, FoundTables) and witnesses.shared is self.shared:
            for segment, twigs in self._current_twigs(together):
                together.update((segment, index) for index in twigs.indexes)
                matches = twigs.match(witnesses)
                if matches is not None:
                    yield segment, twigs.indexes[0], matches
        for segment, index, table in self.tables:
            if (segment, index) in together:
                continue
            if isinstance(table, FilterTable):
                matches = match_filters(table, witnesses)
            else:
                matches = match_table(table, columns if table.template.columns else witnesses)
            if matches is not None:
                yield segment, index, matches
        for segment, pool in self.pools:
            for matches in match_pool(pool, columns if pool.tables[0].template.columns else witnesses):
                yield segment, pool.indexes[0], matches

    def _current_twigs(self, pooled: Container[tuple[str, int]]) -> list[tuple[str, Twigs]]:
        """The twigs of each segment, made anew when the automaton has taken its paths anew."""
        for segment in self.by_segment:
            held = self.shared.held_since[segment]
            if segment not in self._twigs or self._twigs[segment][0] != held:
                own = [
                    (i, t) for s, i, t in self.tables
                    if s == segment and (s, i) not in pooled and isinstance(t, Table) and is_twig(t)
                ]  # fmt: skip
                self._twigs[segment] = held, build_twigs(own, self.shared) if len(own) >= FEWEST else None
        return [(segment, twigs) for segment, (_, twigs) in self._twigs.items() if twigs is not None]

    def count(
        self, sources: Sequence[Source], witnesses: Mapping[Path, PathTable]
    ) -> dict[str, PathStatistics]:
        """Statistics of the paths that conditions read."""
        counted = {p: count_values(t, p in self.worded) for p, t in witnesses.items() if self.paths.get(p)}
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
