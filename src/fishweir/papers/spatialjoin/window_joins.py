"""SJ-Join and IBS-JS as strategies of the engine: `--strategy window-joins=sj-join`.

A strategy takes the joins of two streams of tuples by comparisons (`=`, `<`, `<=`, `>`, `>=`) with ranges of numbers on
either side and windows in seconds or rows. The default strategies evaluate the rest. All queries over one pair of
streams form one join. A document is stored as a row for each attribute that some query reads, under a key that depends
only on the stream and the attribute. The rows therefore stay valid when queries are added and dropped. The default's
rows are stored too, so that a home may be opened with another strategy at any time. A process builds the windows from
the retained documents once, and then maintains them batch by batch. The queries are divided among the tasks.

A row of a window is a document of the stream, whatever its content. A side that counts rows therefore has all documents
of its stream. Documents that are evaluated together are inserted together: their order does not depend on the division
into runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.codec import to_json
from fishweir.algebra.nodes import Source
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.group import Bundle, PlacedBundle, Strategy
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.operators import JoinsByRows, RowSide, from_values
from fishweir.evaluate.join.pairing import RunContext, only
from fishweir.evaluate.join.pairs import SetPairs
from fishweir.evaluate.join.rows.probing import Joined, join_rows
from fishweir.evaluate.join.rows.row_joins import RowJoin
from fishweir.evaluate.join.rows.side_rows import as_rows
from fishweir.evaluate.join.state import Run, SideRows
from fishweir.evaluate.join.variables import key_of
from fishweir.evaluate.select.boxes.regions import Floats
from fishweir.evaluate.statistics import Statistics
from fishweir.evaluate.witnesses.path_tables import FirstValues, Path, PathTable
from fishweir.papers.document_numbering import DocumentNumbering, NumberedRuns
from fishweir.papers.spatialjoin.window_queries import (
    Attribute,
    attributes_of,
    compared_attributes,
    is_published,
    to_queries,
)
from fishweir.papers.spatialjoin.windows import LEFT, RIGHT, Arrivals, JoinQueries, SlidingJoin, State, Triples
from fishweir.papers.spatialjoin.windows import STRATEGIES as ALGORITHMS

Make = Callable[[JoinQueries, float], SlidingJoin]


Streams = tuple[frozenset[int], frozenset[int]]
"""The stream of each side that counts rows, once it is known."""
EXPONENT = np.uint64(1 << 62)


@dataclass
class Share:
    """The queries of one task with their numbers, and the join that has seen the retained documents."""

    queries: JoinQueries
    numbers: Ints
    join: SlidingJoin
    documents: DocumentNumbering
    streams: Streams = (frozenset(), frozenset())
    answered: RunContext | None = None
    """The last probe, which covered all of its new documents at once."""


class SlidingJoins(JoinsByRows):
    """Joins of one pair of streams, evaluated by one of the paper's algorithms."""

    def __init__(self, tables: Sequence[JoinTable], make: Make) -> None:
        super().__init__(tables)
        self.make, self.attributes = make, tuple(attributes_of(tables, side) for side in (LEFT, RIGHT))
        self.counts_rows = [any(table.template.counts_rows[side] for table in tables) for side in (LEFT, RIGHT)]
        self._shares: dict[tuple[int, int], Share] = {}

    @cached_property
    def row_sides(self) -> list[RowSide]:
        """Each attribute of both sides separately, and the rows of the default strategy."""
        return [*self._own_sides.values(), *super().row_sides]

    @cached_property
    def _own_sides(self) -> dict[int, RowSide]:
        sources = self.tables[0].sources
        return {
            _key(source, attribute): _attribute_side(source, attribute)
            for source, attributes in zip(sources, self.attributes, strict=True)
            for attribute in attributes
        }

    def pairs(
        self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext
    ) -> Iterator[SetPairs | Joined]:
        return chain(self._joined(old, part, parts, known), self._before(new, old, part, parts, known))

    def _before(
        self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext
    ) -> Iterator[SetPairs | Joined]:
        """Yields pairs with documents that were retained before the strategy was requested and have only the default's
        rows."""
        for join in self.by_rows:
            for run in old:
                older = self._is_older(join, run)
                for found in join_rows([join], new, [run], part, parts, known.ranks) if older.any() else ():
                    if found.left is not found.right:
                        yield only(found, older[found.rights if found.left is new else found.lefts])

    def _is_older(self, join: RowJoin, run: Run) -> NDArray[np.bool_]:
        """Mask of the documents that have rows of the default but not the attributes that the join compares."""
        older = np.zeros(len(run), np.bool_)
        for key, compared in zip(join.keys, self._compared[id(join)], strict=True):
            own = _documents(run, key)
            for attribute in compared if len(own) else ():
                has = np.zeros(len(run), np.bool_)
                has[_documents(run, attribute)] = True
                older[own] |= ~has[own]
        return older

    @cached_property
    def _compared(self) -> dict[int, list[list[int]]]:
        """The keys of the compared attributes, by join and side."""
        sources = self.tables[0].sources
        return {
            id(join): [
                [_key(sources[side], attribute) for attribute in compared_attributes(join.tables, side)]
                for side in (LEFT, RIGHT)
            ]
            for join in self.by_rows
        }

    def _joined(self, old: Sequence[Run], part: int, parts: int, known: RunContext) -> Iterator[Joined]:
        share = self._share(part, parts)
        if not share.queries.count or share.answered is known:
            return
        share.answered = known
        retained = {id(run) for run in old}
        new = [run for run in known.runs if id(run) not in retained]
        runs = [*old, *new]
        numbered = share.documents.number(old, new)
        streams = self._streams(LEFT, runs), self._streams(RIGHT, runs)
        if numbered.restarted or streams != share.streams:
            share.streams, share.join = streams, self.make(share.queries, np.inf)  # the stage decides what is retained
            before = [self._arrivals(side, old, numbered.numbers, streams) for side in (LEFT, RIGHT)]
            share.join.restore(State(before[LEFT], before[RIGHT], (numbered.first_new, numbered.first_new), -np.inf))
        arrived = [self._arrivals(side, new, numbered.numbers[len(old) :], streams) for side in (LEFT, RIGHT)]
        found = share.join.process_both(arrived[LEFT], arrived[RIGHT])
        share.join.forget(numbered.is_retained)
        yield from _by_runs(runs, numbered, found, share.numbers)

    def _streams(self, side: int, runs: Sequence[Run]) -> frozenset[int]:
        if not self.counts_rows[side]:
            return frozenset()
        own = (run.streams[_documents(run, key)] for run in runs for key in self._keys(side))
        return frozenset(stream for streams in own for stream in np.unique(streams).tolist())

    def _keys(self, side: int) -> list[int]:
        return [_key(self.tables[0].sources[side], attribute) for attribute in self.attributes[side]]

    def _arrivals(self, side: int, runs: Sequence[Run], numbers: Sequence[Ints], streams: Streams) -> Arrivals:
        """The tuples of one side in some runs, in the order of their numbers."""
        texts, keys = [texts for _, texts in self.attributes[side]], self._keys(side)
        times, columns, named = [np.empty(0)], [np.empty((0, len(keys)))], [np.empty(0, np.int64)]
        for run, own in zip(runs, numbers, strict=False):
            documents, values = _values(run, keys, texts, streams[side])
            times.append(run.times[documents])
            columns.append(values)
            named.append(own[documents])
        order = np.argsort(np.concatenate(named))
        return Arrivals(np.concatenate(times)[order], np.concatenate(columns)[order], np.concatenate(named)[order])

    @property
    def sliding(self) -> SlidingJoin:
        """The join of all queries, if they are not divided among tasks."""
        return self._share(0, 1).join

    def _share(self, part: int, parts: int) -> Share:
        if (part, parts) not in self._shares:
            queries, numbers = to_queries(self.tables, self.attributes, part, parts)
            self._shares[part, parts] = Share(queries, numbers, self.make(queries, np.inf), DocumentNumbering())
        return self._shares[part, parts]


def _by_runs(runs: Sequence[Run], numbered: NumberedRuns, found: Triples, numbers: Ints) -> Iterator[Joined]:
    """The pairs of each two runs, with their queries."""
    there = numbered.is_retained(found.left) & numbered.is_retained(found.right) & (found.left != found.right)
    kept = np.flatnonzero(there)
    lefts, rights = (numbered.locate(side[kept]) for side in (found.left, found.right))
    kinds = lefts[0] * len(runs) + rights[0]
    for kind in np.unique(kinds).tolist():
        left, right = divmod(kind, len(runs))
        own = np.flatnonzero(kinds == kind)
        first, last = found.offsets[kept[own]], found.offsets[kept[own] + 1]
        _, at = expand(first, last)
        starts = np.append(0, np.cumsum(last - first))
        none = np.empty((len(own), 0), np.int64)
        yield Joined(runs[left], runs[right], lefts[1][own], rights[1][own], none, starts, numbers[found.numbers[at]])


# Attributes of a stream as rows of the join state.


def _key(source: Source, attribute: Attribute) -> int:
    path, texts = attribute
    return key_of(json.dumps(["text" if texts else "column", to_json(source), *map(to_json, path)]))


def _attribute_side(source: Source, attribute: Attribute) -> RowSide:
    return RowSide(_key(source, attribute), False, (source,), from_values(partial(_attribute_rows, source, attribute)))


def _attribute_rows(source: Source, attribute: Attribute, witnesses: Mapping[Path, PathTable]) -> SideRows | None:
    path, texts = attribute
    table = FirstValues(witnesses).get(path)
    if table is None or not len(table):
        return None
    values = (table.hashes if texts else table.numbers.view(np.uint64))[:, None]
    none = np.empty((len(table), 0), np.int64)
    starts, members = np.zeros(len(table) + 1, np.int64), np.empty(0, np.int64)
    return as_rows(_key(source, attribute), table.documents, none, values, None, starts, members)


def _documents(run: Run, key: int) -> Ints:
    return run.rows.documents[run.rows.of_class(key)]


def _values(run: Run, keys: Sequence[int], texts: Sequence[bool], streams: Collection[int]) -> tuple[Ints, Floats]:
    """The documents of a run that have one of the attributes or belong to some streams, and their values; NaN if there
    is none. A hash is read as a number, without the bit that would make it infinite or NaN."""
    values = np.full((len(run), len(keys)), np.nan)
    there = np.isin(run.streams, list(streams))
    for axis, (key, is_hash) in enumerate(zip(keys, texts, strict=True)):
        rows = run.rows.of_class(key)
        documents = run.rows.documents[rows]
        bits = run.rows.values[run.rows.value_starts[rows]]
        values[documents, axis] = (bits & ~EXPONENT if is_hash else bits).view(np.float64)
        there[documents] = True
    documents = np.flatnonzero(there)
    return documents, values[documents]


class BySlidingJoin(Strategy):
    kind, module = "joins", __name__

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]

    def take(self, groups: Mapping[int, Any], statistics: Statistics) -> list[Bundle]:
        by_streams: dict[tuple[Source, ...], list[int]] = {}
        for place, table in groups.items():
            if is_published(table):
                by_streams.setdefault(table.sources, []).append(place)
        return [self.bundle(places) for places in by_streams.values()]

    def operator(self, placed: PlacedBundle) -> SlidingJoins:
        return SlidingJoins(placed.groups, ALGORITHMS[self.name])  # type: ignore[arg-type]


STRATEGIES: dict[str, Strategy] = {name: BySlidingJoin(name) for name in ALGORITHMS}
