"""IBS-JS: the baseline. Evaluates the join first, shared by its queries; then the selections by IBS trees.

In: batches of tuples of two sides. Out: (query, r, s). Shared: a group's pairs are joined once (query plan sharing);
each joined pair walks one IBS tree per attribute of either side, over the selections of the group's queries. An
equality is joined by sorted values, other comparisons by the window in the order of time. Windows that differ within a
group are checked on the results.
Paper: Spatial Join CQ, sections 3 and 7.1, table 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.matches import Numbers
from fishweir.evaluate.select.boxes.regions import NULL, Boxes, Keys, float_keys
from fishweir.jit import kernel
from fishweir.papers.spatialjoin.regions.ibs import IBSIndex, walk_tree
from fishweir.papers.spatialjoin.windows.groups import Group, grouped
from fishweir.papers.spatialjoin.windows.join import SlidingJoin
from fishweir.papers.spatialjoin.windows.kernels import (
    came_between,
    count_up,
    in_bands,
    value_range,
    widened,
    within_reach,
    within_windows,
)
from fishweir.papers.spatialjoin.windows.queries import JoinQueries
from fishweir.papers.spatialjoin.windows.side import Ints
from fishweir.papers.spatialjoin.windows.triples import Triples


class Trees:
    """The trees of one group in sequence; attributes of R come before those of S."""

    def __init__(self, group: Group) -> None:
        left, right = group.selections
        joint = Boxes(np.concatenate((left.low, right.low), axis=1), np.concatenate((left.high, right.high), axis=1))
        index = IBSIndex(joint)
        trees, empty = index.trees, np.empty(0, np.int64)
        before = np.concatenate(([0], np.cumsum([len(tree.queries) for tree in trees]))).astype(np.int64)
        starts = [tree.starts[:-1] + b for tree, b in zip(trees, before[:-1], strict=True)]
        self.arrays = (
            np.asarray(index.used, np.int64),
            np.concatenate([empty, *(tree.values for tree in trees)]),
            np.concatenate(([0], np.cumsum([len(tree.values) for tree in trees]))).astype(np.int64),
            np.concatenate([empty, *starts, before[-1:]]),
            np.concatenate([empty.astype(np.int32), *(tree.queries for tree in trees)]),
            index.conditions,
            index.always,
        )


class IBSJS(SlidingJoin):
    def __init__(self, queries: JoinQueries, lateness: float = 0.0) -> None:
        super().__init__(queries, lateness)
        self.groups = grouped(queries)
        self.trees = [Trees(group) for group in self.groups]

    def _probe(self, side: int, new: Ints, limit: int, counts: Ints) -> list[Triples]:
        own, other = self.sides[side], self.sides[1 - side]
        own_keys, other_keys = float_keys(own.columns), float_keys(other.columns)
        parts = []
        for group, trees in zip(self.groups, self.trees, strict=True):
            equality = bool(len(group.lefts)) and bool(group.low[0] == group.high[0])
            by_value = np.empty(0), np.empty(0, np.int64)
            if equality:
                by_value = other.by_value(int((group.rights, group.lefts)[side][0]))
            windows = group.reach.seconds, group.reach.rows, group.reach.even, group.seconds, group.rows
            comparisons = group.lefts, group.rights, group.low[None], group.high[None]
            found = join_then_select(
                side,
                new,
                limit,
                own.arrays(),
                other.arrays(),
                own_keys,
                other_keys,
                equality,
                *by_value,
                comparisons,
                windows,
                trees.arrays,
                group.members,
                counts,
            )
            parts.append(Triples(*(found[:2] if side == 0 else found[1::-1]), *found[2:]))
        return parts


@kernel
def join_then_select(
    side: int,
    new: Ints,
    limit: int,
    own: Any,
    other: Any,
    own_keys: Keys,
    other_keys: Keys,
    equality: bool,
    values: npt.NDArray[np.float64],
    value_slots: Ints,
    comparisons: Any,
    windows: Any,
    trees: Any,
    members: Ints,
    counts: Ints,
) -> tuple[Ints, Ints, Ints, Numbers]:
    own_times, own_numbers, own_slots, _, own_columns = own
    times, tuple_numbers, slots, position, columns = other
    lefts, rights, low, high = comparisons
    longest, most, even, seconds, rows = windows
    ones, others = np.empty(64, np.int64), np.empty(64, np.int64)
    offsets, numbers = np.zeros(65, np.int64), np.empty(1024, np.int32)
    first: Any
    last: Any
    pairs, written = 0, 0
    met = np.zeros(len(members), np.int16)
    for place in new:
        time, own_slot = own_times[place], own_slots[place]
        start, end, after = within_reach(time, place, own_times, times, side, longest, most)
        first, last = start, end
        if equality:
            value = own_columns[own_slot, lefts[0] if side == 0 else rights[0]]
            if np.isnan(value):
                continue
            least, greatest = value_range(value, side, low[0, 0], high[0, 0])
            first, last = np.searchsorted(values, least), np.searchsorted(values, greatest, side="right")
        for candidate in range(first, last):
            slot = value_slots[candidate] if equality else slots[candidate]
            at = position[slot] if equality else candidate
            if at < start or at >= end or tuple_numbers[at] >= limit:
                continue
            if not in_bands(own_columns, own_slot, columns, slot, side, lefts, rights, low, high, 0):
                continue
            before = written
            if written + len(members) > len(numbers):
                numbers = widened(numbers, written, len(members))
            written = select(side, own_keys, own_slot, other_keys, slot, trees, met, numbers, written)
            if not even:
                apart = time - times[at]
                between = came_between(time, place, own_times, times[at], at, after)
                kept = before
                for entry in range(before, written):
                    query = numbers[entry]
                    numbers[kept] = query
                    kept += within_windows(apart, between, side, seconds, rows, query)
                written = kept
            if written == before:
                continue
            for entry in range(before, written):
                numbers[entry] = members[numbers[entry]]
            if len(counts) > 0:
                count_up(counts, numbers, before, written)
                written = before
                continue
            if pairs == len(ones):
                ones, others = widened(ones, pairs, 1), widened(others, pairs, 1)
                offsets = widened(offsets, pairs + 1, 1)
            ones[pairs], others[pairs] = own_numbers[place], tuple_numbers[at]
            pairs += 1
            offsets[pairs] = written
    return ones[:pairs], others[:pairs], offsets[: pairs + 1], numbers[:written]


@kernel
def select(
    side: int,
    own_keys: Keys,
    own_slot: int,
    other_keys: Keys,
    slot: int,
    trees: Any,
    met: Any,
    numbers: Numbers,
    written: int,
) -> int:
    """Writes the queries whose selections a pair satisfies on both sides."""
    used, tree_values, bases, starts, queries, conditions, always = trees
    of_left = own_keys.shape[1] if side == 0 else other_keys.shape[1]
    met[:] = 0
    for entry in range(len(always)):
        numbers[written] = always[entry]
        written += 1
    for tree in range(len(used)):
        on_left = used[tree] < of_left
        attribute = used[tree] if on_left else used[tree] - of_left
        key = own_keys[own_slot, attribute] if on_left == (side == 0) else other_keys[slot, attribute]
        if key != NULL:
            written = walk_tree(key, tree, tree_values, bases, starts, queries, conditions, met, numbers, written)
    return written
