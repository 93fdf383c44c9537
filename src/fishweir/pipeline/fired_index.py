"""A small index of the queries that may have rows in a micro-batch, so that reading one query opens no other files.

In: result rows, when they are written. Out: for each group, named set and list by which rows name queries, the
positions that occur, as at most `MOST` intervals. If there are too many gaps, the smallest are filled, so the index has
false positives but no false negatives. If rows refer to more than `MOST_NAMES` of them, there is no index. Commits
contain it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

import numpy as np
import pyarrow as pa

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.plan.plan import cached_segment
from fishweir.jit import kernel
from fishweir.pipeline.row_lists import flat_of, values_of
from fishweir.records import dataclass

MOST, MOST_NAMES = 16, 64
CELLS, FAR = 1 << 12, np.iinfo(np.int64).max
"""Number of slices up to which they are sorted, and of cells into which more of them are put first."""
GROUP, SET, LISTED = "group ", "set ", "listed"

NOTHING = np.empty(0, np.int64)

Index = dict[str, list[int]]
"""By group, set or list, the ends of intervals: from, to, from, to."""


def indexed(rows: pa.Table) -> Index | None:
    """The index of some rows; None if they refer to too many groups and sets."""
    found: Index = {}
    for name, lo, hi in _named(rows):
        found[name] = intervals(lo, hi)
        if len(found) > MOST_NAMES:
            return None
    return found


def merged(one: Index | None, other: Index | None) -> Index | None:
    if one is None or other is None:
        return None
    if not one or not other:
        return one or other
    found = dict(one)
    for name, ends in other.items():
        before = found.get(name)
        found[name] = ends if before is None else _both(before, ends)
    return found if len(found) <= MOST_NAMES else None


def intervals(lo: Ints, hi: Ints) -> list[int]:
    """The union of some slices as a few ascending intervals. If there are too many, the smallest gaps are filled."""
    lo, reach = _sorted(*(_in_cells(lo, hi) if len(lo) > CELLS else (lo, hi)))
    gaps = lo[1:] - reach[:-1]
    cuts = np.flatnonzero(gaps > 0)
    if len(cuts) >= MOST:
        cuts = np.sort(cuts[np.argsort(gaps[cuts], kind="stable")[-(MOST - 1) :]])
    ends = np.stack([lo[np.concatenate([[0], cuts + 1])], reach[np.concatenate([cuts, [len(lo) - 1]])]], axis=1)
    return ends.ravel().tolist()  # type: ignore[no-any-return]


def _sorted(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    order = np.argsort(lo, kind="stable")
    return lo[order], np.maximum.accumulate(hi[order])


def _in_cells(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """At most `CELLS` slices that cover the given ones: those that begin in the same cell become one. So the cost is
    one pass over the slices, however many queries there are."""
    first = int(lo.min())
    shift = max(0, (int(lo.max()) - first).bit_length() - CELLS.bit_length() + 1)
    starts, ends = np.full(CELLS, FAR, np.int64), np.full(CELLS, -1, np.int64)
    cover(lo, hi, first, shift, starts, ends)
    used = np.flatnonzero(ends >= 0)
    return starts[used], ends[used]


@kernel
def cover(lo: Ints, hi: Ints, first: int, shift: int, starts: Ints, ends: Ints) -> None:
    for i in range(len(lo)):
        cell = (lo[i] - first) >> shift
        starts[cell], ends[cell] = min(starts[cell], lo[i]), max(ends[cell], hi[i])


def _both(one: list[int], other: list[int]) -> list[int]:
    ends = np.array([*one, *other], np.int64)
    return intervals(ends[::2], ends[1::2])


def _named(rows: pa.Table) -> Iterator[tuple[str, Ints, Ints]]:
    """The groups, sets and lists by which rows name queries, with the slices in the rows."""
    row, flat = flat_of(rows, "slices") if _has(rows, "slices") else (NOTHING, NOTHING)
    if len(flat):
        of, groups = row[::2], rows.select(["segment", "group"]).take(pa.array(np.unique(row)))
        at = np.searchsorted(np.unique(row), of)
        segments = groups.column("segment").combine_chunks().dictionary_encode()
        codes = segments.indices.to_numpy().astype(np.int64)[at]
        places = groups.column("group").to_numpy().astype(np.int64)[at]
        keys = codes * (places.max() + 1) + places
        for key in np.unique(keys):
            chosen = np.flatnonzero(keys == key)
            name = f"{GROUP}{places[chosen[0]]} {segments.dictionary[int(codes[chosen[0]])].as_py()}"
            yield name, flat[::2][chosen], flat[1::2][chosen]
    if _has(rows, "set"):
        names = rows.column("set").combine_chunks().dictionary_encode()
        codes = names.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        counts = rows.column("count").combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)
        most = np.zeros(len(names.dictionary), np.int64)
        np.maximum.at(most, codes[codes >= 0], counts[codes >= 0])
        for name, count in zip(names.dictionary.to_pylist(), most.tolist(), strict=True):
            yield f"{SET}{name}", np.array([0]), np.array([count])
    numbers = values_of(rows, "members")
    if len(numbers):
        yield LISTED, numbers, numbers + 1


def _has(rows: pa.Table, column: str) -> bool:
    return bool(rows.column(column).null_count < len(rows))


@dataclass(frozen=True)
class Wanted:
    """Some queries and their positions in groups, sets and lists, looked up once for all micro-batches."""

    numbers: Ints
    plan: Path
    sets: Path
    _places: dict[str, Ints] = field(default_factory=dict, repr=False)

    def may_be_in(self, index: Mapping[str, list[int]] | None) -> bool:
        """Whether one of the queries may have a result in a micro-batch with this index."""
        return index is None or any(self._is_within(name, ends) for name, ends in index.items())

    def _is_within(self, name: str, ends: list[int]) -> bool:
        places = self._places.get(name)
        if places is None:
            places = self._places[name] = self._found(name)
        if not len(places):
            return False
        if len(places) == 1:
            only = int(places[0])
            return any(lo <= only < hi for lo, hi in zip(ends[::2], ends[1::2], strict=True))
        return bool((np.searchsorted(places, ends[::2]) < np.searchsorted(places, ends[1::2])).any())

    def _found(self, name: str) -> Ints:
        from fishweir.pipeline.writer import cached_set, set_path  # the writer imports this module

        if name == LISTED:
            return self.numbers
        if name.startswith(SET):
            members = cached_set(set_path(self.sets, name.removeprefix(SET)))
        else:
            group, _, segment = name.removeprefix(GROUP).partition(" ")
            members = np.asarray(cached_segment(self.plan, segment).groups[int(group)].members)
        return np.flatnonzero(np.isin(members, self.numbers))
