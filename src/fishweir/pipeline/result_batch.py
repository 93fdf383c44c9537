"""Some results: pairs of an entry (the documents that a row stands for) and a query.

In: result rows of one micro-batch, expanded to entries and to (entry, query) pairs. Out: an Arrow batch
(result_columns.py), or `Result` objects one by one. The output of queries of one kind for an entry is *made* once and
shared by all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fishweir.evaluate.arrays import Ints, distinct, expand, firsts_of
from fishweir.pipeline.block import Block
from fishweir.pipeline.bound_columns import bound_once, has_columns
from fishweir.pipeline.columns import Column, column_list
from fishweir.pipeline.document_columns import STREAM
from fishweir.pipeline.omitted_patterns import NOTHING_OMITTED
from fishweir.pipeline.outputs import Constructed
from fishweir.pipeline.pruned import Prunings
from fishweir.pipeline.query_cache import QueryColumns
from fishweir.pipeline.result import QueryLike, Result
from fishweir.pipeline.tuple_results import tuple_results

Made = tuple[list[str], int | None, list[Constructed]]
"""The ids of the documents, the origin and the outputs."""
KEPT = 4096
"""The number of entries whose outputs are cached while results are constructed one by one."""


@dataclass(frozen=True)
class ResultBatch:
    """Pairs of an entry and a query, in order. Each is one result, or several for a join that is bound when read."""

    block: Block
    entries: Ints
    queries: QueryColumns
    of: Ints
    """The position of each pair's query in `queries`."""

    def results(self) -> Iterator[tuple[int, Result]]:
        """Each result with the number of its query."""
        tuples = tuple_results(self)
        if tuples is None:
            yield from self._one_by_one()
        else:
            yield from zip(self.queries.numbers[self.of].tolist(), tuples, strict=True)

    def _one_by_one(self) -> Iterator[tuple[int, Result]]:
        block, made = self.block, _Makings(self)
        streams, numbers, timestamps, since = (
            block.listed(name) for name in ("stream", "document", "timestamp", "since")
        )
        kinds, names, of_query, added = (
            column.tolist()
            for column in (self.queries.shown, self.queries.listed_names, self.queries.numbers, self.queries.added)
        )
        columns = (self.entries, self.of, self.made_of, block.at[self.entries])
        left_out: tuple[str, ...] = ()
        has_cuts, last = bool(block.cuts), -1
        for some in block.in_parts(self.entries):
            for entry, place, making, row in zip(*(column[some].tolist() for column in columns), strict=True):
                if making != last:
                    documents, origin, outputs = made.of(making, entry, kinds[place])
                    where, timestamp, last = (streams[row], numbers[row]), timestamps[row], making
                if has_cuts:
                    cut = block.cut(entry, kinds[place])
                    left_out = cut.left_out if cut else ()
                for bindings, output in outputs:
                    came = since[row] if since[row] is None or since[row] >= 0 else added[place]
                    known = came, origin, where, left_out
                    yield of_query[place], Result(names[place], documents, timestamp, bindings, output, *known)

    @cached_property
    def kinds(self) -> tuple[Ints, list[QueryLike]]:
        """The kind of each query, and the kinds: queries of one kind show the same of an entry."""
        numbers, kinds = distinct(self.queries.kinds)
        return kinds, self.queries.shown[firsts_of(kinds, len(numbers))].tolist()

    @cached_property
    def made_of(self) -> Ints:
        """A number for each pair, equal for pairs that show the same."""
        kinds, firsts = self.kinds
        return self.entries * len(firsts) + kinds[self.of]

    def asked_for(self) -> ResultBatch:
        """The results of queries that users registered."""
        derived = self.queries.derived
        return self._some(~derived[self.of]) if derived.any() else self

    def those_cut(self, cut: bool) -> ResultBatch:
        """The results with omitted patterns, or those without."""
        kinds, pairs = self.queries.shown, zip(self.entries.tolist(), self.of.tolist(), strict=True)
        return self._some(
            np.array([(self.block.cut(entry, kinds[of]) is not None) == cut for entry, of in pairs], np.bool_)
        )

    def whole(self) -> ResultBatch:
        """The same results with all patterns."""
        self.block.cuts = NOTHING_OMITTED
        return self

    def _some(self, keep: Any) -> ResultBatch:
        return ResultBatch(self.block, self.entries[keep], self.queries, self.of[keep])

    def once(self, once: Once) -> ResultBatch:
        """The pairs that have not occurred before."""
        often = self.queries.several
        if not often.any():
            return self
        keep = ~often[self.of]
        kinds, numbers = self.queries.shown, self.queries.numbers
        for pair in np.flatnonzero(~keep).tolist():
            place, entry = int(self.of[pair]), int(self.entries[pair])
            key = (int(numbers[place]), *self.block.key(entry, kinds[place].shape))
            keep[pair] = once.is_new(int(self.block.last[entry]), key)
        return self._some(keep)


class Once:
    """Results found by one alternative of a query, which another must not repeat. Entries are ordered by document."""

    def __init__(self) -> None:
        self.document = -1
        self.known: set[tuple[Any, ...]] = set()

    def is_new(self, document: int, key: tuple[Any, ...]) -> bool:
        if document != self.document:
            self.document, self.known = document, set()
        known = key in self.known
        self.known.add(key)
        return not known


class _Makings:
    """The outputs of entries, constructed on demand; the last ones are cached."""

    def __init__(self, batch: ResultBatch) -> None:
        self.batch, self.block = batch, batch.block
        self.prunings = Prunings() if len(batch.kinds[1]) == 1 else None
        self.bound: dict[int, dict[int, list[int]]] = {}
        """By kind of query, the nodes of entries whose rows have none."""
        self.kept: dict[int, Made] = {}
        self.lists: dict[tuple[int, ...], list[Column] | None] = {}

    def of(self, making: int, entry: int, query: QueryLike) -> Made:
        found = self.kept.get(making)
        if found is None:
            if len(self.kept) == KEPT:
                self.kept.clear()
            taken = self.block.taken(entry)
            columns = None if self.block.cut(entry, query) else self._columns(entry, query)
            made = (
                self.block.made(entry, query, taken, self._bound(making, query).get(entry), self.prunings)
                if columns is None or any(one.values is None for one in taken)
                else [({}, {name: taken[side].values[key] for name, side, key in columns})]  # type: ignore[index]
            )
            found = self.kept[making] = *self.block.shown(entry, taken), made
        return found

    def _bound(self, making: int, query: QueryLike) -> dict[int, list[int]]:
        """The nodes of all entries for a kind of query, walked together, if documents bind them exactly once."""
        kinds, firsts = self.batch.kinds
        kind = making % len(firsts)
        if kind not in self.bound:
            self.bound[kind] = {}
            if has_columns(query.shape) and query.shape.windows:
                entries = np.unique(self.batch.entries[kinds[self.batch.of] == kind])
                entries = entries[self._lack_nodes[self.block.at[entries]]]
                sides = self.block.sides(entries) if len(entries) else None
                if sides is not None and len(sides) == len(query.shape.blocks):
                    nodes = bound_once(query.shape, self.block.columns, sides)
                    self.bound[kind] = dict(zip(entries.tolist(), nodes.tolist(), strict=True))
        return self.bound[kind]

    @cached_property
    def _lack_nodes(self) -> Any:
        return self.block.rows.column("nodes").is_null().to_numpy()

    def _columns(self, entry: int, query: QueryLike) -> list[Column] | None:
        streams = tuple((self.block.columns.keys[self.block.places(entry)] >> STREAM).tolist())
        key = (id(query.shape), *streams)
        if key not in self.lists:
            self.lists[key] = column_list(query.shape, [self.block.log(stream).stream for stream in streams])
        return self.lists[key]


def pairs_of(
    block: Block,
    at: Ints,
    numbers: Ints,
    queries: Callable[[Ints], QueryColumns],
    tags: Callable[[Iterable[int]], list[int]],
) -> ResultBatch:
    """The pairs of a block's entries with those queries of their rows that were registered in time, or that the row's
    tag belongs to.
    """
    once, of = distinct(numbers)
    columns = queries(once)
    bounds = np.append(0, np.cumsum(np.bincount(at, minlength=len(block.rows))))
    entries, positions = expand(bounds[block.at], bounds[block.at + 1])
    of = of[positions]
    since = block.since[block.at[entries]]
    seen = columns.added[of] <= since
    if (tagged := since < 0).any():
        seen |= tagged & (np.array(tags(once.tolist()))[of] == since)
    return ResultBatch(block, entries[seen], columns, of[seen])
