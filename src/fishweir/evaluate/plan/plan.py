"""The plan in force: a stage for each kind of group, over all segments, and the paths that each source is walked for.

In: segments. Out: for a batch of documents, the matches of all queries and the state that joins keep. A source is a
stream by name or, for `in "*"`, a DTD. A stream that conforms to a DTD feeds both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pyarrow as pa

from fishweir.algebra.nodes import Source
from fishweir.algebra.normal import dotted
from fishweir.evaluate.group import Batch, Paths, RelaxedQueries, Stage
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.plan.registry import KINDS
from fishweir.evaluate.plan.segments import Segment, read_segment, segment_name, segment_path
from fishweir.evaluate.results import ResultRows, result_batch, rows_to_lists, to_lists
from fishweir.evaluate.statistics import PathStatistics, count_values, path_key
from fishweir.evaluate.witnesses.counters import StreamCounters, column_keys, to_counts
from fishweir.evaluate.witnesses.path_tables import Path, PathTable
from fishweir.evaluate.witnesses.shared_paths import DocumentWalk, FoundTables, SharedPaths
from fishweir.evaluate.witnesses.turns import EVERYTHING, ElementTurns, Turns
from fishweir.sealed import Stamp, stamp

COUNTED = 256
"""Number of paths whose values are counted in one chunk, so that counting stays a small part of matching."""


class Plan:
    """The stages of some segments, by kind."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = tuple(segments)
        self.stages: dict[str, Stage] = {}
        for name, kind in KINDS.items():
            operators = [operator for segment in segments for operator in segment.operators.get(name, ())]
            if operators:
                self.stages[name] = kind.stage(operators)

    def keeps(self, sources: Sequence[Source]) -> bool:
        """Whether some query keeps state of these sources' documents."""
        return any(stage.reads(sources) for stage in self.stages.values())


class SourcePlan:
    """The evaluation of the documents of some sources by a plan.

    All plans of the sources share the automaton, so that a new segment adds only its own paths.
    """

    def __init__(self, plan: Plan, sources: tuple[Source, ...], shared: Callable[[], SharedPaths]) -> None:
        self.plan, self.sources, self._shared = plan, sources, shared
        self.by_segment = {segment.id: paths for segment in plan.segments if (paths := segment.paths(sources))}

    @cached_property
    def shared(self) -> SharedPaths:
        """The automaton, built when the first document is walked. Tuples are not walked."""
        return self._shared()

    @cached_property
    def paths(self) -> Paths:
        found: Paths = {}
        for own in self.by_segment.values():
            for path, valued in own.items():
                found[path] = found.get(path, False) or valued
        return found

    @cached_property
    def _by_name(self) -> dict[str, frozenset[Path]]:
        found: dict[str, frozenset[Path]] = {}
        for path in self.paths:
            found[dotted(path)] = found.get(dotted(path), frozenset()) | {path}
        return found

    def paths_at(self, names: Sequence[str]) -> frozenset[Path]:
        """The paths with some names, as `dotted` gives them. Names that no query reads have no paths."""
        return frozenset(path for name in names for path in self._by_name.get(name, ()))

    def start(
        self, turns: Turns | ElementTurns = EVERYTHING, relaxed: Collection[frozenset[Path]] = ()
    ) -> DocumentWalk:
        """Starts a walk over a batch of documents. `match` takes its tables. `turns` suspend paths. The conditions at
        `relaxed` paths are given up in some documents: the walk then finds other paths."""
        more = {f"relaxed {sorted(map(dotted, paths))}": self.relaxed_paths(paths) for paths in relaxed}
        self.shared.hold({**self.by_segment, **more})
        return self.shared.start(turns)

    def relaxed(self, paths: frozenset[Path]) -> list[tuple[str, RelaxedQueries]]:
        """The selections that have conditions at some paths, without these conditions, each with its segment."""
        return [one for stage in self.plan.stages.values() for one in stage.relaxed(self.sources, paths)]

    def relaxed_paths(self, paths: frozenset[Path]) -> Paths:
        found: Paths = {}
        for _, one in self.relaxed(paths):
            found |= {path: valued or found.get(path, False) for path, valued in one.paths.items()}
        return found

    def match(self, witnesses: Mapping[Path, PathTable]) -> Iterator[tuple[str, int, Matches]]:
        """Yields the matches of the queries, with the segment and group that slices refer to, and the sides of the
        documents."""
        for stage in self.plan.stages.values():
            yield from stage.matches(self.sources, witnesses)

    def count(self, witnesses: Mapping[Path, PathTable], turn: int = 0) -> dict[str, PathStatistics]:
        """Statistics of the paths that planning depends on. If there are many paths, each `turn` counts a part of
        them."""
        every, worded = self._counted
        turns = -(-len(every) // COUNTED) or 1
        paths = every[turn % turns :: turns]
        counted = {p: count_values(t, p in worded) for p in paths if (t := witnesses.get(p)) is not None}
        return {path_key(source, dotted(p)): s for source in self.sources for p, s in counted.items()}

    @cached_property
    def _counted(self) -> tuple[list[Path], set[Path]]:
        parts = [stage.counted(self.sources) for stage in self.plan.stages.values()]
        return list(dict.fromkeys(p for paths, _ in parts for p in paths)), {p for _, worded in parts for p in worded}

    def counters(self, documents: int, witnesses: Mapping[Path, PathTable]) -> StreamCounters:
        """The number of nodes and documents of each path. Tuples have columns and no elements to walk."""
        if isinstance(witnesses, FoundTables):
            return witnesses.counters()
        tables = witnesses.values()
        inside = [len(t) if t.single else len(np.unique(t.documents)) for t in tables]
        counts = to_counts(column_keys(tuple(witnesses)), list(map(len, tables)), inside)
        return StreamCounters(documents, 0, 0, len(self.paths), counts)


def selection_rows(batch: Batch, segment: str, group: int, matches: Matches) -> ResultRows:
    used = {} if matches.set_of is None else {i: matches.sets[i] for i in np.unique(matches.set_of).tolist()}
    rows = result_batch(
        len(matches),
        stream=batch.stream,
        document=batch.numbers[matches.documents],
        side=0,
        each=False,
        timestamp=batch.times[matches.documents],
        since=None if isinstance(batch.since, int) else np.asarray(batch.since)[matches.documents],
        nodes=rows_to_lists(matches.nodes),
        segment=segment,
        group=group,
        slices=to_lists(matches.slice_offsets, matches.slices),
        set=_of_sets(matches, [some.name for some in matches.sets], pa.string()),
        count=_of_sets(matches, [len(some.members) for some in matches.sets], pa.int64()),
        members=to_lists(matches.member_offsets, matches.members),
    )
    return ResultRows(rows, len(matches), {some.name: some.members for some in used.values()})


def _of_sets(matches: Matches, values: list[Any], kind: pa.DataType) -> pa.Array | None:
    """The value of each row's set; None if there are no sets."""
    return None if matches.set_of is None else pa.array(values, kind).take(pa.array(matches.set_of))


def plan_of(segments: Sequence[Segment], sources: Sequence[Source], shared: SharedPaths | None = None) -> SourcePlan:
    return SourcePlan(Plan(segments), tuple(sources), lambda: shared or SharedPaths())


# Caches per process: segments never change. A replaced or deleted file is noticed on the next request.


def cached_segment(folder: FilePath, id: str) -> Segment:
    return _segment(folder, id, stamp(segment_path(folder, id)))


@lru_cache(maxsize=256)
def _segment(folder: FilePath, id: str, _stamp: Stamp) -> Segment:
    return read_segment(folder, id)


def cached_plan(folder: FilePath, ids: tuple[str, ...]) -> Plan:
    return _plan(folder, ids, _stamps(folder, ids))


@lru_cache(maxsize=64)
def _plan(folder: FilePath, ids: tuple[str, ...], stamps: tuple[Stamp, ...]) -> Plan:
    return Plan([_segment(folder, id, one) for id, one in zip(ids, stamps, strict=True)])


@lru_cache(maxsize=256)
def cached_paths(folder: FilePath, sources: tuple[Source, ...]) -> SharedPaths:
    """The automaton of some sources, shared by all segments."""
    return SharedPaths()


@lru_cache(maxsize=1024)
def cached_source_plan(folder: FilePath, plan: Plan, sources: tuple[Source, ...]) -> SourcePlan:
    return SourcePlan(plan, sources, partial(cached_paths, folder, sources))


def _stamps(folder: FilePath, ids: tuple[str, ...]) -> tuple[Stamp, ...]:
    return tuple([stamp(f"{folder}/{segment_name(id)}") for id in ids])


def forget_plans() -> None:
    """Clears the caches and releases the mapped files."""
    for kept in (cached_source_plan, _plan, _segment):
        kept.cache_clear()
