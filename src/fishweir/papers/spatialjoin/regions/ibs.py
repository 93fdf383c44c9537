"""IBS tree: the baseline, one interval binary search tree per attribute.

In: query regions; then batches of tuples. Out: the satisfied queries of each tuple as CSR. Shared: the path from the
root to a value is walked once for all queries with a condition on the attribute.

The tree of an attribute is balanced over the distinct ends of its ranges. A node has three lists of queries: for values
less than its own, equal to it, and greater. A range is entered at a node if it covers everything on that side below the
node, so that a value finds each range that contains it exactly once on its way down. The results of the trees are
merged by counting: a query is satisfied if the number of trees that returned it equals the number of its conditions.

Paper: Spatial Join CQ, section 3 and figure 3(b); the tree is Hanson's (the paper's [10]).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.matches import Matches, Numbers, Offsets
from fishweir.evaluate.select.boxes.regions import NULL, Boxes, Keys, tuple_keys
from fishweir.jit import kernel

LESS, EQUAL, GREATER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class IBSTree:
    """The node of values[m] is the middle of its subtree's constants [l, r), m = (l + r) // 2.

    Its lists are queries[starts[3 * m + side]:starts[3 * m + side + 1]].
    """

    values: Keys
    starts: npt.NDArray[np.int64]
    queries: Numbers

    @classmethod
    def of(cls, low: Keys, high: Keys, numbers: Numbers) -> IBSTree:
        """Builds a tree from closed ranges. All are entered at once, level by level."""
        values = np.unique(np.concatenate((low, high)))
        # Value i is slot 2i + 1; the gaps before and after it are slots 2i and 2i + 2.
        first, last = 2 * np.searchsorted(values, low) + 1, 2 * np.searchsorted(values, high) + 1
        which = np.arange(len(low))
        left, right = np.zeros(len(low), dtype=np.int64), np.full(len(low), len(values), dtype=np.int64)
        lists, members = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        while len(which):
            middle = (left + right) // 2
            begin, end = first[which], last[which]
            below = (begin <= 2 * left) & (end >= 2 * middle)
            above = (begin <= 2 * middle + 2) & (end >= 2 * right)
            inside = (begin <= 2 * middle + 1) & (end >= 2 * middle + 1)
            for side, entered in ((LESS, below), (EQUAL, inside), (GREATER, above)):
                lists.append(3 * middle[entered] + side)
                members.append(which[entered])
            down_left = ~below & (begin <= 2 * middle) & (end >= 2 * left) & (left < middle)
            down_right = ~above & (end >= 2 * middle + 2) & (begin <= 2 * right) & (middle + 1 < right)
            which = np.concatenate((which[down_left], which[down_right]))
            right = np.concatenate((middle[down_left], right[down_right]))
            left = np.concatenate((left[down_left], middle[down_right] + 1))
        list_of, member = np.concatenate(lists), np.concatenate(members)
        sizes = np.bincount(list_of, minlength=3 * len(values))
        order = np.argsort(list_of, kind="stable")
        return cls(values, np.concatenate(([0], np.cumsum(sizes))), numbers[member[order]])

    def holding(self, key: int) -> list[Numbers]:
        """The lists on the path to this key: queries whose range on this attribute contains it, each once."""
        lists, left, right = [], 0, len(self.values)
        while left < right:
            middle = (left + right) // 2
            value = self.values[middle]
            side = LESS if key < value else GREATER if key > value else EQUAL
            lists.append(self.queries[self.starts[3 * middle + side] : self.starts[3 * middle + side + 1]])
            if side == EQUAL:
                break
            left, right = (left, middle) if side == LESS else (middle + 1, right)
        return lists


class IBSIndex:
    """Built once for a set of queries, never changed."""

    def __init__(self, boxes: Boxes) -> None:
        self.queries, self.attributes = boxes.count, boxes.attributes
        conditioned, satisfiable = boxes.conditioned(), ~boxes.empty()
        self.conditions = conditioned.sum(axis=1).astype(np.int16)
        self.always = np.flatnonzero(satisfiable & (self.conditions == 0)).astype(np.int32)
        self.used = boxes.used_attributes()
        self.trees = []
        for attribute in self.used:
            numbers = np.flatnonzero(conditioned[:, attribute] & satisfiable).astype(np.int32)
            self.trees.append(IBSTree.of(boxes.low[numbers, attribute], boxes.high[numbers, attribute], numbers))

    def match(self, values: npt.ArrayLike, room: int | None = None) -> Matches:
        keys = tuple_keys(values, self.attributes)[:, self.used]
        if not self.trees:
            return Matches.from_lists([self.always] * len(keys))
        tree_values = np.concatenate([tree.values for tree in self.trees])
        bases = np.concatenate(([0], np.cumsum([len(tree.values) for tree in self.trees])))
        queries = np.concatenate([tree.queries for tree in self.trees])
        before = np.concatenate(([0], np.cumsum([len(tree.queries) for tree in self.trees])))
        starts = np.concatenate([tree.starts[:-1] + b for tree, b in zip(self.trees, before[:-1], strict=True)])
        starts = np.append(starts, before[-1])

        def step(row: int, position: int, numbers: Numbers, offsets: Offsets) -> tuple[int, int]:
            return count_matches(
                keys, tree_values, bases, starts, queries, self.conditions, self.always, row, position, numbers, offsets
            )

        return Matches.from_kernel(step, len(keys), self.queries, room)


@kernel
def count_matches(
    keys: Keys,
    values: Keys,
    bases: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    queries: Numbers,
    conditions: Any,
    always: Numbers,
    row: int,
    position: int,
    numbers: Numbers,
    offsets: Offsets,
) -> tuple[int, int]:
    """Writes the query numbers of each tuple while there is room."""
    met = np.zeros(len(conditions), dtype=np.int16)
    while row < len(keys):
        if position + len(conditions) > len(numbers):
            return row, position
        met[:] = 0
        numbers[position : position + len(always)] = always
        position += len(always)
        for attribute in range(keys.shape[1]):
            key = keys[row, attribute]
            if key != NULL:
                position = walk_tree(key, attribute, values, bases, starts, queries, conditions, met, numbers, position)
        row += 1
        offsets[row] = position
    return row, position


@kernel
def walk_tree(
    key: int,
    tree: int,
    values: Keys,
    bases: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    queries: Numbers,
    conditions: Any,
    met: Any,
    numbers: Numbers,
    written: int,
) -> int:
    """Walks down one tree. A query is written when its last condition is satisfied."""
    base, left, right = bases[tree], bases[tree], bases[tree + 1]
    while left < right:
        middle = base + (left - base + right - base) // 2
        side = 0 if key < values[middle] else 2 if key > values[middle] else 1
        for at in range(starts[3 * middle + side], starts[3 * middle + side + 1]):
            query = queries[at]
            met[query] += 1
            if met[query] == conditions[query]:
                numbers[written] = query
                written += 1
        if side == 0:
            right = middle
        elif side == 2:
            left = middle + 1
        else:
            break
    return written
