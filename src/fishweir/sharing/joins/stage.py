"""The join stage as the job sees it: what to keep of documents, and what a batch's documents meet.

In: the join tables of the plan in force. Out: the run of a batch, and blocks of results, each row a document and
those it met, with a set of queries. Plain joins are decided by edge sets (edges, pairs), the others by rows (row_joins,
probing); joins of three and more streams keep rows here too and are joined by `many`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.nodes import Source
from fishweir.sharing.arrays import Ints, expand
from fishweir.sharing.joins.edges import Contained, EdgeSets
from fishweir.sharing.joins.hits import row_starts
from fishweir.sharing.joins.many.tables import ManyTable
from fishweir.sharing.joins.many.views import many_rows
from fishweir.sharing.joins.pairs import Doubt, Met, join_runs
from fishweir.sharing.joins.ranks import Ranks, newest_times
from fishweir.sharing.joins.rows.probing import Joined, join_rows
from fishweir.sharing.joins.rows.row_joins import RowJoin, row_joins
from fishweir.sharing.joins.rows.verifying import verify
from fishweir.sharing.joins.state import (
    Hashes,
    Needed,
    Run,
    Versions,
    build_run,
    concatenated_rows,
    merge_runs,
    no_versions,
)
from fishweir.sharing.joins.superseded import Superseded
from fishweir.sharing.joins.tables import JoinTable, Variable
from fishweir.sharing.witnesses import Path, PathTable, hash_texts


class Joins:
    """The join tables of one segment, with what they remember of the edge sets met."""

    def __init__(self, tables: Sequence[JoinTable | ManyTable]) -> None:
        self.tables = tuple(tables)
        of_two = [table for table in tables if isinstance(table, JoinTable)]
        self.sets = EdgeSets([table for table in of_two if table.is_plain])
        self.others = [table for table in of_two if not table.is_plain]
        self.many = [table for table in tables if isinstance(table, ManyTable)]
        self.by_rows = row_joins(self.others)
        self._alone: dict[int, RowJoin] = {}

    def alone(self, plain: int) -> RowJoin:
        """A plain table as a join by rows, for pairs that equal values do not decide."""
        if plain not in self._alone:
            (self._alone[plain],) = row_joins([self.sets.tables[plain]])
        return self._alone[plain]

    @cached_property
    def _windows(self) -> dict[bool, tuple[Ints, NDArray[np.float64]]]:
        """By whether they count rows, each query's number and its window, longest first."""
        found = {}
        for rows in (False, True):
            parts = [
                (table.numbers, reach)
                for table in self.tables
                for is_rows, reach in zip(_counts_rows(table), table.reaches, strict=True)
                if is_rows == rows
            ]
            numbers = np.concatenate([np.empty(0, np.int64), *(numbers for numbers, _ in parts)])
            reaches = np.concatenate([np.empty(0), *(reach for _, reach in parts)])
            order = np.argsort(-reaches, kind="stable")
            found[rows] = numbers[order], reaches[order]
        return found

    def longest(self, rows: bool, dead: Collection[int] = ()) -> float:
        """The longest window of a living query in seconds, or in rows; -1 where there is none."""
        numbers, reaches = self._windows[rows]
        return next((float(reaches[i]) for i in range(len(numbers)) if int(numbers[i]) not in dead), -1.0)

    @cached_property
    def sources(self) -> frozenset[Source]:
        return frozenset(source for table in self.tables for source in table.sources)


class JoinStage:
    """The joins of a plan: those of its segments, so that one more query among a million is a segment of its own."""

    def __init__(self, parts: Sequence[Joins]) -> None:
        self.parts = tuple(parts)
        self.by_rows = [join for part in parts for join in part.by_rows]
        self.many = [table for part in parts for table in part.many]

    @property
    def is_empty(self) -> bool:
        return not any(part.tables for part in self.parts)

    def paths(self, sources: Sequence[Source]) -> dict[Path, bool]:
        """What the documents of some sources are walked for, and whether the values are read."""
        found: dict[Path, bool] = {}
        for table in (table for part in self.parts for table in part.tables):
            for path, valued in table.paths(sources).items():
                found[path] = found.get(path, False) or valued
        return found

    @cached_property
    def kept(self) -> dict[Variable, bool]:
        """All variables of plain joins, each with whether its values are compared."""
        found: dict[Variable, bool] = {}
        for part in self.parts:
            for variable, compared in part.sets.variables.items():
                found[variable] = found.get(variable, False) or compared
        return found

    def variables(self, sources: Sequence[Source]) -> dict[Variable, bool]:
        return {variable: compared for variable, compared in self.kept.items() if variable.source in sources}

    def reads(self, sources: Sequence[Source]) -> bool:
        return any(source in part.sources for source in sources for part in self.parts)

    @cached_property
    def row_sides(self) -> list[tuple[RowJoin, int]]:
        """The sides whose rows are kept. Joins of several segments may be of one class: its rows are the same for all
        of them and kept once, unless they list the queries whose constants they satisfy: then each keeps its own."""
        found: dict[tuple[int, int], tuple[RowJoin, int]] = {}
        for place, join in enumerate(self.by_rows):
            for side in (0, 1):
                found.setdefault((join.keys[side], place if join.listed[side] else -1), (join, side))
        return list(found.values())

    @cached_property
    def many_sides(self) -> list[tuple[ManyTable, int]]:
        """The same of joins of several streams, whose sides without constants are one class whatever they join."""
        found: dict[tuple[int, int], tuple[ManyTable, int]] = {}
        for place, table in enumerate(self.many):
            for side, template in enumerate(table.template.sides):
                found.setdefault((table.keys[side], place if template.conditions else -1), (table, side))
        return list(found.values())

    @cached_property
    def classes(self) -> Hashes:
        keys = [key for join in self.by_rows for key in join.keys] + [key for t in self.many for key in t.keys]
        return np.array(keys, dtype=np.uint64)

    def reach(self, dead: Collection[int] = ()) -> float:
        """The longest window in seconds: what is older than that, and no longer counted by rows, meets nothing."""
        return max((part.longest(False, dead) for part in self.parts), default=-1.0)

    @cached_property
    def rows(self) -> float:
        """The longest window in rows; 0 where none counts rows."""
        return max([0.0, *(part.longest(True) for part in self.parts)])

    def needed(self, now: float, reach: float, runs: Sequence[Run]) -> Needed:
        """Which documents may still meet others; of `runs`, all there are, the newest are kept for windows of rows."""
        counted = newest_times(runs, self.rows) if self.rows else {}

        def is_needed(run: Run) -> NDArray[np.bool_]:
            kept: NDArray[np.bool_] = now - run.times <= reach  # subtracted as in the join, to round alike
            for stream, least in counted.items():
                kept |= (run.streams == stream) & (run.times >= least)
            return kept

        return is_needed

    def merged(self, runs: Sequence[Run], needed: Needed | None = None) -> Run:
        """One run of several, without what no query needs any more."""
        compared = {variable.key: compared for variable, compared in self.kept.items()}
        return merge_runs(runs, compared, self.classes, needed or (lambda run: np.ones(len(run), np.bool_)))


def _counts_rows(table: JoinTable | ManyTable) -> tuple[bool, ...]:
    if isinstance(table, ManyTable):
        return tuple(window.rows for window in table.template.windows)
    return table.template.window.left_rows, table.template.window.right_rows


def batch_run(
    stage: JoinStage, sources: Sequence[Source], stream: int, numbers: Sequence[int], times: Sequence[float],
    since: int | Sequence[int], witnesses: Mapping[Path, PathTable],
    arrivals: Sequence[float] | None = None, changes: Sequence[tuple[int, float, str]] = (),
    origins: Sequence[int] = (),
) -> Run:  # fmt: skip
    """The run of a batch of one stream's documents; `since` is the version of the catalog when they arrived, `changes`
    of a changing file are number, arrival and key, `origins` which documents those are that were passed on, or -1."""
    rows = [
        found
        for join, side in stage.row_sides
        if join.sources[side] in sources and (found := join.rows(side, witnesses)) is not None
    ]
    rows += [
        found
        for several, side in stage.many_sides
        if several.sources[side] in sources and (found := many_rows(several, side, witnesses)) is not None
    ]
    return build_run(
        np.full(len(numbers), stream, np.int64), np.array(numbers, dtype=np.int64),
        np.array(times, dtype=np.float64), since, stage.variables(sources), witnesses,
        concatenated_rows(rows, [0] * len(rows)),
        np.array(times if arrivals is None else arrivals, dtype=np.float64), _versions(stream, changes), origins,
    )  # fmt: skip


def _versions(stream: int, changes: Sequence[tuple[int, float, str]]) -> Versions:
    if not changes:
        return no_versions()
    numbers, arrivals, keys = zip(*changes, strict=True)
    hashes = hash_texts(pa.array(keys, pa.large_string()))
    return Versions(np.full(len(keys), stream, np.int64), np.array(numbers), np.array(arrivals, np.float64), hashes)


@dataclass(frozen=True)
class Block:
    """Results: rows of a document with all it met alike, each with the first `counts` queries of `wanted`, or with a
    list of queries.

    The document of a row is the right one of its pairs if `by_right`, else the left one; `partners`, of one stream, are
    the others. `since` is the version of the catalog when the earlier arrived of the two came: a query registered after
    that does not see the pair. `nodes` are those of the left side, then of the right, of rows with one partner each;
    without them each document binds them just once.
    """

    by_right: bool
    streams: Ints
    numbers: Ints
    partner_streams: Ints
    partner_starts: Ints
    partners: Ints
    times: NDArray[np.float64]
    left_first: NDArray[np.bool_]
    """Whether the right one is not earlier than the left one."""
    since: Ints
    nodes: Ints | None
    wanted: Contained | None
    counts: Ints
    member_starts: Ints
    members: Ints

    def __len__(self) -> int:
        return len(self.times)

    def partners_of(self, row: int) -> Ints:
        return self.partners[self.partner_starts[row] : self.partner_starts[row + 1]]

    def members_of(self, row: int) -> Ints:
        if self.wanted is not None:
            return self.wanted.members[: self.counts[row]]
        return self.members[self.member_starts[row] : self.member_starts[row + 1]]


def find_pairs(
    stage: JoinStage, new: Run, old: Sequence[Run], part: int = 0, parts: int = 1, known: Known | None = None
) -> Iterator[Block]:
    """What the new documents meet, among themselves and among the old ones; `part` of `parts` of it. `known` is of
    all documents of the micro-batch and those retained."""
    known = known or Known(stage, [new, *old])
    for found in _found(stage, new, old, part, parts, known):
        if not known.superseded.is_empty:
            found = _only(found, known.superseded.in_force(found.left, found.right, found.lefts, found.rights))
        if known.passed_on:
            found = _only(found, found.left.origins[found.lefts] != found.right.origins[found.rights])
        if len(found.lefts):
            yield _block(found)


class Known:
    """What is worked out over all runs: places in windows of rows, which rows of changing files are in force, and
    whether a document may be there twice."""

    def __init__(self, stage: JoinStage, runs: Sequence[Run]) -> None:
        self.ranks, self.superseded = Ranks(runs if stage.rows else []), Superseded(runs)
        self.passed_on = any(run.passed_on for run in runs)


def _found(
    stage: JoinStage, new: Run, old: Sequence[Run], part: int, parts: int, known: Known
) -> Iterator[Met | Joined]:
    for joins in stage.parts:
        for found in join_runs(joins.sets, new, old, part, parts):
            if isinstance(found, Doubt):
                yield from verify(joins.alone(found.table), found)
            else:
                yield found
    yield from join_rows(stage.by_rows, new, old, part, parts, known.ranks)


def _only(found: Met | Joined, kept: NDArray[np.bool_]) -> Met | Joined:
    """Some of the pairs."""
    keep = np.flatnonzero(kept)
    lefts, rights = found.lefts[keep], found.rights[keep]
    nodes = None if found.nodes is None else found.nodes[keep]
    if isinstance(found, Met):
        return replace(found, lefts=lefts, rights=rights, nodes=nodes, counts=found.counts[keep])
    starts = found.member_starts
    _, at = expand(starts[keep], starts[keep + 1])
    ends = np.append(0, np.cumsum(starts[keep + 1] - starts[keep])).astype(np.int64)
    members = found.members[at]
    return replace(found, lefts=lefts, rights=rights, nodes=found.nodes[keep], member_starts=ends, members=members)


def _block(found: Met | Joined) -> Block:
    by_right = not isinstance(found, Met) or found.by_right
    left, right, lefts, rights = found.left, found.right, found.lefts, found.rights
    own, other, ours, theirs = (right, left, rights, lefts) if by_right else (left, right, lefts, rights)
    if isinstance(found, Met) and found.nodes is None:
        starts = row_starts(
            ours, theirs, found.counts, own.times, other.times, own.since, other.since, other.streams
        )  # fmt: skip
    else:
        starts = np.arange(len(ours) + 1)
    first = starts[:-1]
    mine, partner = ours[first], theirs[first]
    rows = (
        by_right, own.streams[mine], own.numbers[mine], other.streams[partner], starts, other.numbers[theirs],
        np.maximum(own.times[mine], other.times[partner]), right.times[rights[first]] >= left.times[lefts[first]],
        np.minimum(own.since[mine], other.since[partner]), found.nodes,
    )  # fmt: skip
    none = np.zeros(len(first) + 1, np.int64)
    if isinstance(found, Met):
        return Block(*rows, found.wanted, found.counts[first], none, none[:0])
    return Block(*rows, None, none[1:], found.member_starts, found.members)
