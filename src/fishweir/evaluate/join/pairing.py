"""Finds the join partners of a batch's documents, by all two-way joins.

In: the operators of such joins, the run of the new documents and the retained runs. Out: blocks of results. Each row is
a document with its join partners and a set of queries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.join.edges import Contained
from fishweir.evaluate.join.hits import row_starts
from fishweir.evaluate.join.pairs import SetPairs
from fishweir.evaluate.join.ranks import Ranks
from fishweir.evaluate.join.rows.probing import Joined
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.join.superseded import SupersededRows

NO_RANKS = Ranks([])
SMALL, AT_ONCE = 1 << 16, 64
"""Size in members up to which a block is combined with others, and the number of blocks combined."""


@dataclass(frozen=True)
class PairBlock:
    """Results: each row is a document with all partners that satisfy the same queries. These are the first `counts`
    queries of `contained`, or a list of queries.

    The document of a row is the right one of its pairs if `by_right`, else the left one. `partners`, of one stream, are
    the others. `since` is the version of the catalog when the first of the two arrived: a query registered after that
    does not see the pair. `nodes` are the nodes of the left side, then of the right, of rows with one partner each.
    Without `nodes`, each document binds each node exactly once.
    """

    by_right: bool
    streams: Ints
    numbers: Ints
    partner_streams: Ints
    partner_starts: Ints
    partners: Ints
    times: NDArray[np.float64]
    left_first: NDArray[np.bool_]
    """Whether the right document is not earlier than the left one."""
    since: Ints
    nodes: Ints | None
    contained: Contained | None
    counts: Ints
    member_starts: Ints
    members: Ints

    def __len__(self) -> int:
        return len(self.times)

    def partners_of(self, row: int) -> Ints:
        return self.partners[self.partner_starts[row] : self.partner_starts[row + 1]]

    def members_of(self, row: int) -> Ints:
        if self.contained is not None:
            return self.contained.members[: self.counts[row]]
        return self.members[self.member_starts[row] : self.member_starts[row + 1]]


class PairJoins(Protocol):
    """Joins of two streams."""

    def pairs(
        self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext
    ) -> Iterator[SetPairs | Joined]:
        """Yields the pairs that contain a new document, with the queries they satisfy."""


def find_pairs(
    joins: Sequence[PairJoins],
    new: Run,
    old: Sequence[Run],
    part: int = 0,
    parts: int = 1,
    known: RunContext | None = None,
) -> Iterator[PairBlock]:
    """Yields the join partners of the new documents, among themselves and the old ones, restricted to `part` of
    `parts`. `known` covers all documents of the micro-batch and the retained ones."""
    known = known or RunContext([new, *old])
    for some in joins:
        yield from to_blocks(some.pairs(new, old, part, parts, known), known)


def to_blocks(results: Iterable[SetPairs | Joined], known: RunContext) -> Iterator[PairBlock]:
    """Converts results to blocks, without rows of changing files that are not in force and without documents paired
    with themselves."""
    for found in results:
        if not known.superseded.is_empty:
            found = only(found, known.superseded.in_force(found.left, found.right, found.lefts, found.rights))
        if known.passed_on:
            found = only(found, found.left.origins[found.lefts] != found.right.origins[found.rights])
        if len(found.lefts):
            yield _block(found)


def gathered(blocks: Iterable[PairBlock]) -> Iterator[PairBlock]:
    """Combines small blocks with lists of queries, one for each run and order in time, into few larger ones. Each block
    becomes a batch of rows, which has a fixed cost."""
    waiting: dict[tuple[bool, int], list[PairBlock]] = defaultdict(list)
    for block in blocks:
        if block.contained is not None or block.nodes is None or len(block.members) > SMALL:
            yield block
            continue
        alike = waiting[block.by_right, block.nodes.shape[1]]
        alike.append(block)
        if len(alike) == AT_ONCE:
            yield _one(alike)
            alike.clear()
    yield from (_one(alike) for alike in waiting.values() if alike)


_COLUMNS = (
    "streams",
    "numbers",
    "partner_streams",
    "partners",
    "times",
    "left_first",
    "since",
    "nodes",
    "counts",
    "members",
)


def _one(blocks: Sequence[PairBlock]) -> PairBlock:
    """Concatenates blocks with lists."""
    if len(blocks) == 1:
        return blocks[0]
    columns = {name: np.concatenate([getattr(block, name) for block in blocks]) for name in _COLUMNS}
    for name in ("partner_starts", "member_starts"):
        lengths = np.concatenate([np.diff(getattr(block, name)) for block in blocks])
        columns[name] = np.append(0, np.cumsum(lengths)).astype(np.int64)
    return PairBlock(by_right=blocks[0].by_right, contained=None, **columns)


class RunContext:
    """Data computed over all runs: positions in windows of rows, which rows of changing files are in force, and whether
    a document may occur twice."""

    def __init__(self, runs: Sequence[Run], counts_rows: bool = True) -> None:
        """`counts_rows` says whether any window counts rows."""
        self.runs, self.counts_rows = tuple(runs), counts_rows
        self.superseded = SupersededRows(runs)
        self.passed_on = any(run.passed_on for run in runs)

    @cached_property
    def ranks(self) -> Ranks:
        return Ranks(self.runs) if self.counts_rows else NO_RANKS


def only(found: SetPairs | Joined, kept: NDArray[np.bool_]) -> SetPairs | Joined:
    """A subset of the pairs."""
    keep = np.flatnonzero(kept)
    lefts, rights = found.lefts[keep], found.rights[keep]
    nodes = None if found.nodes is None else found.nodes[keep]
    if isinstance(found, SetPairs):
        return replace(found, lefts=lefts, rights=rights, nodes=nodes, counts=found.counts[keep])
    starts = found.member_starts
    _, at = expand(starts[keep], starts[keep + 1])
    ends = np.append(0, np.cumsum(starts[keep + 1] - starts[keep])).astype(np.int64)
    members = found.members[at]
    return replace(found, lefts=lefts, rights=rights, nodes=found.nodes[keep], member_starts=ends, members=members)


def _block(found: SetPairs | Joined) -> PairBlock:
    by_right = not isinstance(found, SetPairs) or found.by_right
    left, right, lefts, rights = found.left, found.right, found.lefts, found.rights
    own, other, ours, theirs = (right, left, rights, lefts) if by_right else (left, right, lefts, rights)
    if isinstance(found, SetPairs) and found.nodes is None:
        starts = row_starts(ours, theirs, found.counts, own.times, other.times, own.since, other.since, other.streams)
    else:
        starts = np.arange(len(ours) + 1)
    first = starts[:-1]
    mine, partner = ours[first], theirs[first]
    rows = (
        by_right,
        own.streams[mine],
        own.numbers[mine],
        other.streams[partner],
        starts,
        other.numbers[theirs],
        np.maximum(own.times[mine], other.times[partner]),
        right.times[rights[first]] >= left.times[lefts[first]],
        np.minimum(own.since[mine], other.since[partner]),
        found.nodes,
    )
    none = np.zeros(len(first) + 1, np.int64)
    if isinstance(found, SetPairs):
        return PairBlock(*rows, found.contained, found.counts[first], none, none[:0])
    return PairBlock(*rows, None, none[1:], found.member_starts, found.members)
