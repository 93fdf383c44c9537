"""Join operators: join tables of a segment, ready to keep state and to probe it.

In: the join tables that a strategy has taken (kind.py). Out: the cells and rows that a document leaves for them, and
the join partners of new documents: by edge sets (edges, pairs), by rows (rows/) or by an MJoin (many/). Other
strategies have their own operators with the same members (JoinOperator).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.nodes import Source
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import Batch
from fishweir.evaluate.join.edges import EdgeSets
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.many.mjoin import find_many
from fishweir.evaluate.join.many.multiway import MultiwayJoin
from fishweir.evaluate.join.many.partial import Combinations
from fishweir.evaluate.join.many.side_views import many_rows
from fishweir.evaluate.join.pairing import PairBlock, RunContext, find_pairs, gathered
from fishweir.evaluate.join.pairs import SetPairs, UnverifiedPairs, join_runs
from fishweir.evaluate.join.rows.probing import Joined, join_rows
from fishweir.evaluate.join.rows.row_joins import RowJoin, row_joins
from fishweir.evaluate.join.rows.verifying import verify
from fishweir.evaluate.join.state import Run, SideRows
from fishweir.evaluate.join.variables import Variable
from fishweir.evaluate.results import ResultRows, result_batch, rows_to_lists, to_lists
from fishweir.evaluate.watermarks import Watermarks
from fishweir.evaluate.witnesses.path_tables import Path, PathTable

RUNS_AT_ONCE = 8
"""The number of runs up to which looking up rows in each of them is cheaper than merging them."""


@dataclass(frozen=True)
class RowSide:
    """One side of a join whose documents leave rows. Rows of one class are stored once unless they list queries."""

    key: int
    lists_queries: bool
    sources: tuple[Source, ...]
    rows: Callable[[Batch], SideRows | None]

    def reads(self, sources: Collection[Source]) -> bool:
        return any(source in sources for source in self.sources)


def from_values(rows: Callable[[Mapping[Path, PathTable]], SideRows | None]) -> Callable[[Batch], SideRows | None]:
    """Adapts a function that computes a side's rows from the values of documents alone."""
    return lambda batch: rows(batch.witnesses)


@dataclass(frozen=True)
class Waits:
    """How long documents of one source wait for those of another: for a number of seconds, or until a number of rows
    are newer."""

    source: Source
    other: Source
    rows: bool
    reach: float


class ProbeOrder(Enum):
    """The order in which an operator takes the documents of a micro-batch."""

    ANY = "any"
    ARRIVAL = "arrival"
    """Arrival order: a document joins the documents that are present when it arrives."""
    ARRIVAL_AND_TIME = "arrival and time"
    """Arrival order, where a document is never in one block with a newer one that arrived before it. Windows of rows
    are evaluated for old documents too."""


class JoinOperator(Protocol):
    """The interface between the join stage and the operators of its strategies."""

    keeps_all: bool
    """Whether all documents of its sources are kept, or only those that have rows with lists."""

    @property
    def runs_at_once(self) -> int:
        """The number of runs that it probes about as fast as one."""

    @property
    def order(self) -> ProbeOrder: ...

    @property
    def tables(self) -> Sequence[JoinTable]: ...

    @property
    def sources(self) -> frozenset[Source]: ...

    @property
    def variables(self) -> Mapping[Variable, bool]:
        """The variables it needs as cells, each with a flag: whether its values are compared."""

    @property
    def row_sides(self) -> Sequence[RowSide]:
        """The sides it needs as rows."""

    def waits(self, dead: Collection[int] = ()) -> Iterable[Waits]:
        """The longest windows of living queries."""

    def listed(self, runs: Sequence[Run], watermarks: Watermarks) -> list[NDArray[np.bool_]]:
        """For runs that are merged, masks of the entries in the lists of their rows that later documents may need.
        Called only if `keeps_all` is false."""

    def find(self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext) -> Iterator[ResultRows]:
        """The join partners of the new documents, among themselves and with the old ones; one `part` of `parts` of
        them."""


class Joins(ABC):
    """Join tables that one strategy evaluates."""

    keeps_all: bool = True
    runs_at_once: int = 1

    def __init__(self, tables: Sequence[JoinTable]) -> None:
        self.tables = tuple(tables)

    @cached_property
    def order(self) -> ProbeOrder:
        counts_rows = any(rows for table in self.tables for _, _, rows, _ in table.waiting())
        return ProbeOrder.ARRIVAL_AND_TIME if counts_rows else ProbeOrder.ANY

    @cached_property
    def _windows(self) -> dict[tuple[Source, Source, bool], tuple[Ints, NDArray[np.float64]]]:
        """Each query's number and window, longest first, by source, the source it waits for and whether rows are
        counted."""
        parts: dict[tuple[Source, Source, bool], list[tuple[Ints, NDArray[np.float64]]]] = {}
        for table in self.tables:
            for source, other, rows, reaches in table.waiting():
                parts.setdefault((source, other, rows), []).append((table.numbers, reaches))
        found = {}
        for key, some in parts.items():
            numbers, reaches = (np.concatenate(columns) for columns in zip(*some, strict=True))
            order = np.argsort(-reaches, kind="stable")
            found[key] = numbers[order], reaches[order]
        return found

    def waits(self, dead: Collection[int] = ()) -> Iterator[Waits]:
        """The longest windows of living queries."""
        for (source, other, rows), (numbers, reaches) in self._windows.items():
            living = next((i for i in range(len(numbers)) if int(numbers[i]) not in dead), None)
            if living is not None:
                yield Waits(source, other, rows, float(reaches[living]))

    @cached_property
    def sources(self) -> frozenset[Source]:
        return frozenset(source for table in self.tables for source in table.sources)

    @property
    def variables(self) -> Mapping[Variable, bool]:
        return {}

    @property
    def row_sides(self) -> Sequence[RowSide]:
        return ()

    def listed(self, runs: Sequence[Run], watermarks: Watermarks) -> list[NDArray[np.bool_]]:
        return [np.ones(len(run.rows.members), np.bool_) for run in runs]

    @abstractmethod
    def find(self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext) -> Iterator[ResultRows]: ...


class JoinsOfTwo(Joins):
    """Joins whose results are pairs of documents."""

    @abstractmethod
    def pairs(
        self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext
    ) -> Iterator[SetPairs | Joined]: ...

    def find(self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext) -> Iterator[ResultRows]:
        for block in gathered(find_pairs([self], new, old, part, parts, known)):
            yield pair_rows(block)


class EdgeSetJoins(JoinsOfTwo):
    """Plain two-way joins, decided by the set of equal values of two documents. Caches the sets that occurred."""

    def __init__(self, tables: Sequence[JoinTable]) -> None:
        super().__init__(tables)
        self.sets = EdgeSets(self.tables)
        self._alone: dict[int, RowJoin] = {}

    @property
    def variables(self) -> Mapping[Variable, bool]:
        return self.sets.variables

    def alone(self, plain: int) -> RowJoin:
        """A table as a join by rows, for pairs that equal values do not decide."""
        if plain not in self._alone:
            (self._alone[plain],) = row_joins([self.tables[plain]])
        return self._alone[plain]

    def pairs(
        self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext
    ) -> Iterator[SetPairs | Joined]:
        yield from self.verified(join_runs(self.sets, new, old, part, parts))

    def verified(self, pairs: Iterable[SetPairs | UnverifiedPairs]) -> Iterator[SetPairs | Joined]:
        for found in pairs:
            if isinstance(found, UnverifiedPairs):
                yield from verify(self.alone(found.table), found)
            else:
                yield found


class JoinsByRows(JoinsOfTwo):
    """Two-way joins with more than equalities: those of one signature together."""

    def __init__(self, tables: Sequence[JoinTable]) -> None:
        super().__init__(tables)
        self.by_rows = row_joins(self.tables)
        self.runs_at_once = RUNS_AT_ONCE if all(join.takes_runs_together for join in self.by_rows) else 1

    @cached_property
    def row_sides(self) -> Sequence[RowSide]:
        return [
            RowSide(join.keys[side], join.listed[side], (join.sources[side],), from_values(partial(join.rows, side)))
            for join in self.by_rows
            for side in (0, 1)
        ]

    def pairs(
        self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext
    ) -> Iterator[SetPairs | Joined]:
        return join_rows(self.by_rows, new, old, part, parts, known.ranks)


class MultiwayJoins(Joins):
    """Joins of any number of streams, each table by itself."""

    def __init__(self, tables: Sequence[JoinTable]) -> None:
        super().__init__(tables)
        self.many = [MultiwayJoin(table) for table in self.tables]

    @cached_property
    def row_sides(self) -> Sequence[RowSide]:
        return [
            RowSide(
                join.table.keys[side],
                bool(template.conditions),
                (template.source,),
                from_values(partial(many_rows, join, side)),
            )
            for join in self.many
            for side, template in enumerate(join.template.sides)
        ]

    def find(self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext) -> Iterator[ResultRows]:
        for combinations in find_many([self], new, old, part, parts, known):
            yield combination_rows(combinations)


def pair_rows(block: PairBlock) -> ResultRows:
    """Result rows: a document with all partners that satisfy the same queries."""
    size = len(block)
    order = np.where(block.left_first[:, None], [[0, 1]], [[1, 0]])
    batch = result_batch(
        size,
        stream=block.streams,
        document=block.numbers,
        side=int(block.by_right),
        other_streams=rows_to_lists(block.partner_streams[:, None]),
        others=to_lists(block.partner_starts, block.partners),
        each=True,
        order=rows_to_lists(order),
        timestamp=block.times,
        since=block.since,
        nodes=None if block.nodes is None else rows_to_lists(block.nodes),
        set=None if block.contained is None else block.contained.name,
        count=block.counts,
        members=to_lists(block.member_starts, block.members),
    )
    sets = {} if block.contained is None else {block.contained.name: block.contained.members}
    return ResultRows(batch, len(block.partners), sets)


def combination_rows(block: Combinations) -> ResultRows:
    """Result rows: a document for each side."""
    batch = result_batch(
        len(block),
        stream=block.streams[:, 0],
        document=block.numbers[:, 0],
        side=0,
        other_streams=rows_to_lists(block.streams[:, 1:]),
        others=rows_to_lists(block.numbers[:, 1:]),
        each=False,
        order=rows_to_lists(block.order),
        timestamp=block.times,
        since=block.since,
        nodes=rows_to_lists(block.nodes),
        members=to_lists(block.member_starts, block.members),
    )
    return ResultRows(batch, len(block))
