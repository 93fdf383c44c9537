"""The annotation joins of a segment as arrays: which query compares what with which window.

In: the tables of joins that collect. Out: one *link* for each window of each query: its side, its reach, its
comparisons, and its anchor, which is the comparison that is enumerated. Queries share equal comparisons, whose
candidates are found once. A link without an equality, a comparison of links or `similar` enumerates the window itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.nodes import Source
from fishweir.algebra.texts import SIMILAR
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.join.annotations.comparisons import EQUALITIES, FeatureComparison, feature_comparison
from fishweir.evaluate.join.annotations.item_views import Floats
from fishweir.evaluate.join.join_tables import JoinTable

MOST_ITEMS = 1 << 40
"""The maximum number of items of a window, more than any window contains."""


class Links:
    """Arrays by link: `numbers` of queries, `sides` of windows, `joins`, the `seconds` and `items` that a window
    reaches back, `anchors`, and `waits`, the element of `annotated` that its window's items wait for. Built once per
    segment and process."""

    def __init__(self, tables: Iterable[JoinTable]) -> None:
        self._compared: dict[FeatureComparison, int] = {}
        self._annotated: dict[tuple[Source, ...], int] = {}
        self._links: list[tuple[NDArray[Any], ...]] = []
        self._checks: list[tuple[Ints, Ints, Floats, NDArray[np.bool_]]] = []
        self._items: list[tuple[Ints, Ints, Ints]] = []
        count = 0
        for table in tables:
            self._add(table, count)
            count += table.size * len(table.template.collects)
        self._arrange(count)

    def _add(self, table: JoinTable, first: int) -> None:
        """Adds the links of one table's queries, window by window."""
        template, size = table.template, table.size
        for i, (join, sides) in enumerate(zip(template.collects, table.collected, strict=True)):
            waits = self._annotated.setdefault(tuple(template.awaited(i + 1)), len(self._annotated))
            anchors, reaches = self._add_checks(table, i + 1, first + i * size), table.reaches[i + 1]
            rows = template.counts_rows[i + 1]
            seconds = np.full(size, np.inf) if rows else reaches
            items = np.minimum(reaches, MOST_ITEMS).astype(np.int64) if rows else np.zeros(size, np.int64)
            self._links.append(
                (table.numbers, sides, np.full(size, join), seconds, items, anchors, np.full(size, waits))
            )
        for items, meets in zip(table.collecting, template.sides[0].roles, strict=True):
            links = first + np.arange(size)[:, None] + (np.array(meets, np.int64)[None, :] - 1) * size
            self._items.append((items, np.full(size, len(meets)), links.ravel()))

    def _add_checks(self, table: JoinTable, side: int, first: int) -> Ints:
        """Adds the comparisons of one window and returns the one that each link enumerates."""
        links, anchors, equal = first + np.arange(table.size), np.full(table.size, -1, np.int64), False
        for edge in table.template.edges_of(side):
            place = self._compared.setdefault(feature_comparison(table.template, edge), len(self._compared))
            shares = np.full(table.size, SIMILAR) if edge.share < 0 else table.constant(edge.share)
            self._checks.append((links, np.full(table.size, place), shares, np.full(table.size, edge.positive)))
            if not edge.positive:
                continue
            if edge.op in EQUALITIES and not equal:
                anchors[:], equal = place, True
            elif edge.op == "similar":
                anchors = np.where((anchors < 0) & (shares > 0), place, anchors)
        return anchors

    def _arrange(self, count: int) -> None:
        self.numbers, self.sides, self.joins, seconds, self.items, self.anchors, self.waits = _columns(self._links, 7)
        self.seconds = seconds.astype(np.float64)
        self.by_side = np.argsort(self.sides, kind="stable")
        self.ordered = self.sides[self.by_side]
        self.windows = np.unique(self.ordered)
        links, self.checks, shares, positive = _columns(self._checks, 4)
        order = np.argsort(links, kind="stable")
        self.check_starts = np.searchsorted(links[order], np.arange(count + 1)).astype(np.int64)
        self.checks, self.shares = self.checks[order], shares[order].astype(np.float64)
        self.positive = positive[order].astype(np.bool_)
        """True if the comparison must hold, False if it must not."""
        sides, lengths, links = _columns(self._items, 3)
        order = np.argsort(sides, kind="stable")
        self.to_annotate = sides[order]
        """The sides of items to annotate, sorted. `linked` holds the links of each."""
        ends = np.cumsum(lengths)
        _, at = expand((ends - lengths)[order], ends[order])
        self.link_starts = np.append(0, np.cumsum(lengths[order])).astype(np.int64)
        self.linked = links[at]
        self.compared: Sequence[FeatureComparison] = list(self._compared)
        self.annotated: Sequence[tuple[Source, ...]] = list(self._annotated)

    def least(self, condition: int) -> float:
        """The lowest threshold of any link anchored at a `similar`."""
        return self._least[condition]

    @cached_property
    def _least(self) -> dict[int, float]:
        owner = np.repeat(np.arange(len(self.sides)), np.diff(self.check_starts))
        own = (self.anchors[owner] == self.checks) & self.positive
        return {c: float(self.shares[own & (self.checks == c)].min()) for c in np.unique(self.checks[own]).tolist()}

    def of_windows(self, sides: Ints) -> tuple[Ints, Ints]:
        """The start and end in `by_side` of the links whose window is one of these sides."""
        return np.searchsorted(self.ordered, sides, "left"), np.searchsorted(self.ordered, sides, "right")


def _columns(parts: Sequence[tuple[NDArray[np.generic], ...]], count: int) -> list[Ints]:
    """The columns of several parts, each concatenated into one array; integer columns if there are no parts."""
    return [np.concatenate([part[i] for part in parts]) if parts else np.empty(0, np.int64) for i in range(count)]
