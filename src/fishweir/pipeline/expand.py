"""Expands result rows on demand: to queries, and to results.

In: result rows of one micro-batch and the dropped queries. Out: (row, query) pairs in row order, and the results of
each row. Queries that were not alive at the version of the micro-batch are left out here, since segments may still
contain them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, codes_of, distinct, expand, order_of
from fishweir.evaluate.group import Group, origin_of
from fishweir.evaluate.plan.plan import cached_segment
from fishweir.pipeline.row_lists import first_of, flat_of, lengths_of, values_of
from fishweir.pipeline.writer import cached_set, set_path
from fishweir.records import dataclass

Pairs = tuple[Ints, Ints]
"""Row indexes and query numbers."""


class QuerySet(Protocol):
    """Some queries, by number."""

    numbers: Ints

    def __len__(self) -> int: ...

    def has(self, numbers: Ints) -> NDArray[np.bool_]:
        """Which of the given queries are in the set."""


QueryChoice: TypeAlias = "Ints | QuerySet | None"
"""The queries that a reader asks for; None for all."""


@dataclass(frozen=True)
class Expansion:
    """Expands the query sets of a home's result rows; `dropped` are the query numbers to leave out, and so are those of
    `waiting` queries, whose rows are not results yet."""

    plan: Path
    sets: Path
    dropped: Ints
    waiting: QuerySet | None = None

    def queries(self, rows: pa.Table, wanted: QueryChoice = None) -> Pairs:
        """The queries of each row, sorted. With `wanted`, only these queries, found without expanding the sets."""
        parts = [
            *(self._slices(rows, chosen, group, wanted) for chosen, group in self._by_group(rows)),
            *self._named(rows, wanted),
            _listed(rows, wanted),
        ]
        some = [part for part in parts if len(part[0])]
        row, numbers = some[0] if len(some) == 1 else (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        if len(self.dropped):
            alive = ~np.isin(numbers, self.dropped)
            row, numbers = row[alive], numbers[alive]
        if self.waiting is not None:
            decided = ~self.waiting.has(numbers)
            row, numbers = row[decided], numbers[decided]
        if (row[1:] > row[:-1]).all():
            return row, numbers
        order = np.lexsort((numbers, row))
        return row[order], numbers[order]

    def at_most(self, rows: pa.Table) -> Ints:
        """The number of queries of each row, including dropped ones: an upper bound for the expansion."""
        counts, slices = rows.column("count").combine_chunks(), values_of(rows, "slices")
        sums = np.append(0, np.cumsum(slices[1::2] - slices[::2]))
        ends = np.cumsum(lengths_of(rows, "slices")) // 2
        found = lengths_of(rows, "members") + np.diff(sums[ends], prepend=0)
        return found if counts.null_count == len(counts) else found + _numbers(counts)  # type: ignore[no-any-return]

    def _by_group(self, rows: pa.Table) -> Iterator[tuple[Ints, Group]]:
        """The rows with slices of each group."""
        sliced = np.flatnonzero(lengths_of(rows, "slices"))
        if not len(sliced):
            return
        some = _taken(rows.select(["segment", "group"]), sliced)
        segments = some.column("segment").combine_chunks().dictionary_encode()
        places = some.column("group").to_numpy().astype(np.int64)
        keys = segments.indices.to_numpy().astype(np.int64) * (places.max() + 1) + places
        for key in distinct(keys)[0]:
            chosen = np.flatnonzero(keys == key)
            segment = cached_segment(self.plan, segments.dictionary[int(key // (places.max() + 1))].as_py())
            yield sliced[chosen], segment.groups[int(places[chosen[0]])]

    def _slices(self, rows: pa.Table, chosen: Ints, group: Group, wanted: QueryChoice) -> Pairs:
        row, flat = flat_of(_taken(rows.select(["slices"]), chosen), "slices")
        row, lo, hi = chosen[row[::2]], flat[::2], flat[1::2]
        members = np.asarray(group.members)
        source, found = _inside(lo, hi, members, wanted)
        return row[source], found

    def _named(self, rows: pa.Table, wanted: QueryChoice) -> Iterator[Pairs]:
        """The first `count` queries of the sets that rows name."""
        if rows.column("set").null_count == len(rows):
            return
        names = rows.column("set").combine_chunks().dictionary_encode()
        codes = names.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        counts = _numbers(rows.column("count").combine_chunks())
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(names.dictionary) + 1))
        for code, name in enumerate(names.dictionary.to_pylist()):
            chosen = order[starts[code] : starts[code + 1]]
            members = cached_set(set_path(self.sets, name))
            source, found = _inside(np.zeros(len(chosen), np.int64), counts[chosen], members, wanted)
            yield chosen[source], found


def _numbers(column: pa.Array) -> Ints:
    """A column of numbers, with 0 for null."""
    return column.fill_null(0).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _taken(rows: pa.Table, chosen: Ints) -> pa.Table:
    """Some ascending rows, not copied if they are all."""
    return rows if len(chosen) == len(rows) else rows.take(pa.array(chosen))


def _chosen(numbers: Ints, wanted: Ints | QuerySet) -> NDArray[np.bool_]:
    return np.isin(numbers, wanted) if isinstance(wanted, np.ndarray) else wanted.has(numbers)


def _inside(lo: Ints, hi: Ints, members: Ints, wanted: QueryChoice) -> Pairs:
    """The members in each slice from `lo` to `hi`, with the slice; only those in `wanted`, if given."""
    if wanted is not None and (hi - lo).sum() <= len(members):
        source, positions = expand(lo, hi)
        keep = _chosen(members[positions], wanted)
        return source[keep], members[positions[keep]]
    if wanted is not None:
        kept = np.flatnonzero(_chosen(members, wanted))
        lo, hi, members = np.searchsorted(kept, lo), np.searchsorted(kept, hi), members[kept]
    source, positions = expand(lo, hi)
    return source, members[positions]


def _listed(rows: pa.Table, wanted: QueryChoice) -> Pairs:
    row, numbers = flat_of(rows, "members")
    if wanted is None:
        return row, numbers
    keep = _chosen(numbers, wanted)
    return row[keep], numbers[keep]


@dataclass(frozen=True)
class Entries:
    """Results of rows, independent of the queries: the row of each result and, in rows with one result for `each` other
    document, that document.

    They are ordered by the documents of the last side, then of the others, so that results with the same documents are
    adjacent.
    """

    rows: Ints
    others: Ints
    """A document number, or -1 if all other documents belong to one result."""
    documents: Ints
    """The last side's document by `origin_of`, or the row's own: other documents make another result."""

    def __len__(self) -> int:
        return len(self.rows)


def entries_of(rows: pa.Table, batches: Ints | None = None) -> Entries:
    """All results of some rows, in order; `batches` has the micro-batches of rows of several."""
    each = rows.column("each").to_numpy().astype(np.bool_)
    row = np.repeat(np.arange(len(rows)), np.where(each, lengths_of(rows, "others"), 1))
    others = np.full(len(row), -1, np.int64)
    if each.any():
        own_rows, flat = flat_of(rows, "others")
        others[each[row]] = flat[each[own_rows]]
    stream, document, side = (rows.column(name).to_numpy() for name in ("stream", "document", "side"))
    mine = stream.astype(np.int64)[row], document[row]
    theirs = first_of(rows, "other_streams")[row], others
    own_last = (~each | (side == 1))[row]
    last, first = mine, theirs
    if not own_last.all():
        last, first = (
            tuple(np.where(own_last, *pair) for pair in zip(some, rest, strict=True))
            for some, rest in ((mine, theirs), (theirs, mine))
        )
    of_batch = () if batches is None else (batches[row],)
    order = order_of(codes_of(*of_batch, *last, *first))
    return Entries(row[order], others[order], origin_of(*last)[order])


def result_times(rows: pa.Table, once: bool) -> NDArray[np.float64]:
    """The timestamp of each result in some rows of one query; `once` if several rows may be the same result."""
    entries = entries_of(rows)
    chosen = entries.rows
    if once and len(entries):
        listed = rows.select(["stream", "document", "other_streams", "others", "each", "nodes"]).to_pylist()
        known: dict[object, int] = {}
        for row, other in zip(entries.rows.tolist(), entries.others.tolist(), strict=True):
            one = listed[row]
            met = other if one["each"] else tuple(one["others"] or ())
            nodes, streams = one["nodes"], one["other_streams"]
            key = (one["stream"], one["document"], tuple(streams or ()), met, tuple(nodes) if nodes else None)
            known.setdefault(key, row)
        chosen = np.fromiter(known.values(), np.int64, len(known))
    return np.asarray(rows.column("timestamp").to_numpy()[chosen], np.float64)
