"""Views of runs for annotation joins: items in the order of time, stream and number, their sides and their features.

In: a run (state.py). Out: a view, computed once per run. It has lists of the sides that an item belongs to (to annotate
or in windows) and an index from a window's side to its items. For each compared feature it has the values of the items
and an index from a feature to the items that have it, built on the first lookup.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.join.hashes import Hashes
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.join.variables import key_of

Floats = NDArray[np.float64]

TO_ANNOTATE, IN_WINDOWS = key_of("items to annotate"), key_of("items in windows")
"""The classes of the rows that list an item's sides."""


@dataclass(frozen=True)
class Lists:
    """A list of sides for each item."""

    starts: Ints
    sides: Ints

    def of(self, items: Ints) -> tuple[Ints, Ints]:
        """(Position among these items, side) for all of their sides."""
        source, at = expand(self.starts[items], self.starts[items + 1])
        return source, self.sides[at]


@dataclass(frozen=True)
class FeatureValues:
    """A list of values for each item, and a sorted list of features for each value."""

    value_starts: Ints
    feature_starts: Ints
    features: Hashes

    def of(self, items: Ints) -> tuple[Ints, Ints]:
        """The start and end of the values of some items."""
        return self.value_starts[items], self.value_starts[items + 1]


class ItemView:
    def __init__(self, run: Run) -> None:
        self.run = run
        rows = np.flatnonzero(np.isin(run.rows.classes, np.array([TO_ANNOTATE, IN_WINDOWS], np.uint64)))
        documents = np.unique(run.rows.documents[rows])
        order = np.lexsort((run.numbers[documents], run.streams[documents], run.times[documents]))
        self.documents = documents[order]
        self.streams, self.numbers = run.streams[self.documents], run.numbers[self.documents]
        self.times: Floats = run.times[self.documents]
        self.places = np.full(len(run), -1, np.int64)
        self.places[self.documents] = np.arange(len(self.documents))
        self._values: dict[int, FeatureValues] = {}
        self._indexes: dict[int, tuple[Hashes, Ints]] = {}

    def __len__(self) -> int:
        return len(self.documents)

    @cached_property
    def to_annotate(self) -> Lists:
        return self._lists(TO_ANNOTATE)

    @cached_property
    def in_windows(self) -> Lists:
        return self._lists(IN_WINDOWS)

    def _lists(self, key: int) -> Lists:
        rows = self.run.rows.of_class(key)
        source, at = expand(self.run.rows.member_starts[rows], self.run.rows.member_starts[rows + 1])
        owner = self.places[self.run.rows.documents[rows]][source]
        order = np.argsort(owner, kind="stable")
        starts = np.searchsorted(owner[order], np.arange(len(self) + 1))
        return Lists(starts.astype(np.int64), self.run.rows.members[at[order]])

    @cached_property
    def _by_side(self) -> tuple[Ints, Ints]:
        sides, place = np.unique(self.in_windows.sides, return_inverse=True)
        owner = np.repeat(np.arange(len(self)), np.diff(self.in_windows.starts))
        return sides, np.sort(place.astype(np.int64) << 32 | owner)

    @property
    def sides(self) -> Ints:
        """The distinct sides of windows, sorted. Also sets `entries`: sorted (position of the side, item) pairs."""
        return self._by_side[0]

    @property
    def entries(self) -> Ints:
        return self._by_side[1]

    def place_of(self, sides: Ints) -> Ints:
        """The position of each side, -1 if no item has it."""
        return place_of(self.sides, sides)

    def values(self, key: int) -> FeatureValues:
        """The values of a feature."""
        if key not in self._values:
            self._values[key] = self._gathered(key)
        return self._values[key]

    def index(self, key: int) -> tuple[Hashes, Ints]:
        """All features of items in windows, sorted, and the item of each."""
        if key not in self._indexes:
            values = self.values(key)
            owner = np.repeat(np.arange(len(self)), np.diff(values.value_starts))
            holders = np.repeat(owner, np.diff(values.feature_starts))
            there = np.flatnonzero(np.diff(self.in_windows.starts)[holders])
            order = there[np.argsort(values.features[there], kind="stable")]
            self._indexes[key] = values.features[order], holders[order]
        return self._indexes[key]

    def _gathered(self, key: int) -> FeatureValues:
        rows, kept = self.run.rows, self.run.rows.of_class(key)
        owner = self.places[rows.documents[kept]]
        order = np.argsort(owner, kind="stable")
        order = order[np.searchsorted(owner[order], 0) :]
        kept, owner = kept[order], owner[order]
        _, at = expand(rows.value_starts[kept], rows.value_starts[kept + 1])
        lengths = rows.value_starts[kept + 1] - rows.value_starts[kept]
        starts = np.searchsorted(owner, np.arange(len(self) + 1)).astype(np.int64)
        return FeatureValues(starts, np.append(0, np.cumsum(lengths)).astype(np.int64), rows.values[at])


def place_of(ordered: Ints, keys: Ints) -> Ints:
    """The position of each key in a sorted list, -1 if it is absent."""
    if not len(ordered):
        return np.full(len(keys), -1, np.int64)
    at = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.where(ordered[at] == keys, at, -1)


def item_view(run: Run) -> ItemView:
    if IN_WINDOWS not in run.views:
        run.views[IN_WINDOWS] = ItemView(run)
    view: ItemView = run.views[IN_WINDOWS]
    return view
