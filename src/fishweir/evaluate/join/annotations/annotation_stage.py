"""The annotation joins of all queries, as arrays: what to keep of items, and who compares what.

In: the annotation tables of the plan in force. Out: for a batch of items those to annotate and those that enter
windows, and for the evaluation (annotating.py) one *link* for each window of each query: its side, its reach, its
comparisons and the one of them that is enumerated, its anchor. Equal comparisons are one, whatever queries make them;
their candidates are found once. Without an equality, a link or `similar` the window itself is enumerated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.annotations import ROLES, AnnotationCondition
from fishweir.algebra.nodes import Source
from fishweir.algebra.normal import ANY_ROOT
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.group import Batch, Kept, Stage, State
from fishweir.evaluate.join.annotations.annotation_tables import AnnotationTable, value_paths
from fishweir.evaluate.join.annotations.items import Feature, Floats, Items, build_items, merge_items, place_of
from fishweir.evaluate.join.state import Hashes
from fishweir.evaluate.watermarks import Watermarks
from fishweir.evaluate.witnesses.path_tables import Path

KEPT = {
    "=": ("text", "text"), "!=": ("text", "text"), "similar": ("words", "words"), "contains": ("words", "words"),
    "references": ("references", "link"), "extends": ("extends", "link"), "shares-link": ("links", "link"),
    "<": ("number", "number"), "<=": ("number", "number"), ">": ("number", "number"), ">=": ("number", "number"),
}  # fmt: skip
"""What of the values a comparison needs, of the item and of the window's."""

EQUALITIES = ("=", "shares-link", "references", "extends")
"""Those that hold where some feature is common to both."""


@dataclass(frozen=True)
class Compared:
    """A comparison between a feature of items and one of a window's items."""

    left: Feature
    op: str
    right: Feature


def compared(condition: AnnotationCondition) -> Compared:
    left, right = KEPT[condition.op]
    return Compared(
        Feature((ANY_ROOT, *condition.left), left), condition.op, Feature((ANY_ROOT, *condition.right), right)
    )


@dataclass(frozen=True)
class NeededItems:
    """What items may still meet that are not older than a time."""

    reached: float
    reach: float
    used: Mapping[int, float] = field(default_factory=dict)

    def share(self, state: State) -> float:
        return float(len(state) > 0 and self.reached - state.newest <= self.reach)


class AnnotationStage(Stage):
    """Made once per plan and process. Links are in the order of their tables, templates and queries."""

    is_by_arrival = True

    def __init__(self, tables: Sequence[AnnotationTable]) -> None:
        self.tables = tuple(tables)
        self.conditions: dict[Compared, int] = {}
        self._variables: dict[tuple[int, tuple[Source, ...]], list[Feature]] = {}
        self._numbers: list[Ints] = [np.empty(0, np.int64)]
        self._sides: list[Ints] = [np.empty(0, np.int64)]
        self._joins: list[Ints] = [np.empty(0, np.int64)]
        self._seconds: list[Floats] = [np.empty(0)]
        self._items: list[Ints] = [np.empty(0, np.int64)]
        self._anchors: list[Ints] = [np.empty(0, np.int64)]
        self._checked: list[tuple[Ints, Ints, Floats, NDArray[np.bool_]]] = [
            (self._sides[0], self._sides[0], np.empty(0), np.empty(0, np.bool_))
        ]
        self._primaries: list[tuple[Ints, Ints, Ints]] = [(self._sides[0],) * 3]
        for table in tables:
            for shape in range(len(table.templates)):
                self._add(table, shape)
        self._arrange()

    def _add(self, table: AnnotationTable, shape: int) -> None:
        """The links of one template's queries, join by join."""
        template, rows = table.templates[shape], table.of_template(shape)
        numbers, first = table.numbers[rows], sum(map(len, self._sides))
        for i, window in enumerate(template.windows):
            links = first + i * len(rows) + np.arange(len(rows))
            self._numbers.append(numbers)
            self._sides.append(table.windows_of(rows, i))
            self._joins.append(np.full(len(rows), window.join, np.int64))
            self._seconds.append(np.full(len(rows), np.inf if window.seconds is None else window.seconds))
            self._items.append(np.full(len(rows), window.items or 0, np.int64))
            anchors, equal = np.full(len(rows), -1, np.int64), False
            for condition in window.conditions:
                place = self.conditions.setdefault(compared(condition), len(self.conditions))
                shares = table.shares_of(rows, condition)
                positive = np.full(len(rows), condition.positive)
                self._checked.append((links, np.full(len(rows), place, np.int64), shares, positive))
                if not condition.positive:
                    continue
                if condition.op in EQUALITIES and not equal:
                    anchors[:], equal = place, True
                elif condition.op == "similar":
                    anchors = np.where((anchors < 0) & (shares > 0), place, anchors)
            self._anchors.append(anchors)
        for role, joins in enumerate(template.primaries):
            wanted = first + np.arange(len(rows))[:, None] + np.array(joins, np.int64)[None, :] * len(rows)
            self._primaries.append((numbers * ROLES + role, np.full(len(rows), len(joins)), wanted.ravel()))

    def _arrange(self) -> None:
        self.numbers = np.concatenate(self._numbers)
        self.sides, self.joins = np.concatenate(self._sides), np.concatenate(self._joins)
        self.seconds, self.items = np.concatenate(self._seconds), np.concatenate(self._items)
        self.anchors = np.concatenate(self._anchors)
        self.by_side = np.argsort(self.sides, kind="stable")
        self.ordered = self.sides[self.by_side]
        self.windows, starts = np.unique(self.ordered, return_index=True)
        counts = self.items[self.by_side] > 0
        seconds = self.seconds[self.by_side]
        self.longest = [_greatest(np.where(counts == by_items, seconds, -np.inf), starts) for by_items in (False, True)]
        """Of each side the longest window in seconds, of those by time and of those by number, and the `most` items."""
        self.most = _greatest(self.items[self.by_side], starts)
        links, conditions, shares, positive = (np.concatenate([part[i] for part in self._checked]) for i in range(4))
        order = np.argsort(links, kind="stable")
        self.check_starts = np.searchsorted(links[order], np.arange(len(self.sides) + 1)).astype(np.int64)
        self.checks, self.shares = conditions[order].astype(np.int64), shares[order].astype(np.float64)
        self.positive = positive[order].astype(np.bool_)
        """Whether the comparison must hold, or must not."""
        sides, lengths, wanted = (np.concatenate([part[i] for part in self._primaries]) for i in range(3))
        order = np.argsort(sides, kind="stable")
        self.primaries = sides[order]
        ends = np.cumsum(lengths)
        _, at = expand((ends - lengths)[order], ends[order])
        self.link_starts = np.append(0, np.cumsum(lengths[order])).astype(np.int64)
        self.links = wanted[at].astype(np.int64)
        self.compared = list(self.conditions)

    def least(self, condition: int) -> float:
        """The least share that any link anchored at a `similar` asks for."""
        return self._least[condition]

    @cached_property
    def _least(self) -> dict[int, float]:
        owner = np.repeat(np.arange(len(self.sides)), np.diff(self.check_starts))
        own = (self.anchors[owner] == self.checks) & self.positive
        return {c: float(self.shares[own & (self.checks == c)].min()) for c in np.unique(self.checks[own]).tolist()}

    def links_of(self, sides: Ints) -> tuple[Ints, Ints]:
        """Where in `by_side` the links begin and end whose window a side is."""
        return np.searchsorted(self.ordered, sides, "left"), np.searchsorted(self.ordered, sides, "right")

    def variables(self, side: int, sources: tuple[Source, ...] = ()) -> list[Feature]:
        """What of the items (0), or of a window's (1), is compared: of some sources, or of all."""
        if (side, sources) not in self._variables:
            templates = [template for table in self.tables for template in table.templates]
            read = {path for template in templates for path in value_paths(template, sources)}
            every = dict.fromkeys(c.right if side else c.left for c in self.compared)
            self._variables[side, sources] = [f for f in every if not sources or f.path in read]
        return self._variables[side, sources]

    @cached_property
    def indexed(self) -> Hashes:
        """The window's features that items look up."""
        keys = {self.compared[anchor].right.key for anchor in np.unique(self.anchors).tolist() if anchor >= 0}
        return np.array(sorted(keys), dtype=np.uint64)

    def reads(self, sources: Sequence[Source]) -> bool:
        return any(source in self.sources for source in sources)

    @cached_property
    def sources(self) -> frozenset[Source]:
        return frozenset(s.predicate.source for table in self.tables for t in table.templates for s in t.sides)

    def counted(self, sources: Sequence[Source]) -> tuple[list[Path], set[Path]]:
        return list(dict.fromkeys(path for table in self.tables for path in table.paths(sources))), set()

    def keep(self, batch: Batch) -> Kept:
        primary, entering = batch_items(self, batch)
        return Kept(entering if len(entering) else None, primary if len(primary) else None)

    def needed(self, states: Sequence[State], watermarks: Watermarks, dropped: Collection[int] = ()) -> NeededItems:
        """What the longest window may hold of an item that is not behind its stream's watermark; a window of items has
        no end in time."""
        reached = watermarks.slowest(self.sources)
        used = {stream: reached for source in self.sources for stream in watermarks.streams(source)}
        return NeededItems(reached, float(self.seconds.max(initial=-1.0)), used)

    def merged(self, states: Sequence[Any], needed: Any = None) -> Items:
        """One run of several, without what no window can hold any more."""
        variables = np.array([feature.key for feature in self.variables(1)], dtype=np.uint64)
        keep = None if needed is None else lambda items: self._kept(items, needed.reached)
        return merge_items(states, variables, self.indexed, keep)

    def together(self, parts: Sequence[Any]) -> Items:
        """The items to annotate of several batches."""
        variables = np.array([feature.key for feature in self.variables(0)], dtype=np.uint64)
        return merge_items(parts, variables, np.empty(0, np.uint64))

    def _kept(self, items: Items, reached: float) -> NDArray[np.bool_]:
        """Which members an item that is not older than what is `reached` can still meet: in reach by time, or, of a
        window of items, among the newest of those that are not later than that."""
        owner = np.repeat(np.arange(len(items)), np.diff(items.member_starts))
        window = place_of(self.windows, items.members)
        by_time, by_items, most = (np.append(of, -1)[window] for of in (*self.longest, self.most))
        place = np.searchsorted(items.sides, items.members)
        rank = np.searchsorted(items.entries, place << 32 | owner)
        recent = np.searchsorted(items.times, reached, "right")
        newer = np.searchsorted(items.entries, place << 32 | recent) - 1 - rank
        apart = reached - items.times[owner]
        return (window >= 0) & ((apart <= by_time) | ((apart <= by_items) & (newer < most)))


def _greatest(values: NDArray[Any], starts: Ints) -> NDArray[Any]:
    return np.maximum.reduceat(values, starts) if len(starts) else values


def batch_items(stage: AnnotationStage, batch: Batch) -> tuple[Items, Items]:
    """Of a batch of one stream's items, by the sides they are of: those to annotate, and those that enter windows."""
    document, side = batch.sides.documents, batch.sides.sides
    to_annotate, enters = place_of(stage.primaries, side) >= 0, place_of(stage.windows, side) >= 0
    none = np.empty(0, np.uint64)
    known = batch.stream, batch.numbers, batch.times, batch.arrivals
    compared = [stage.variables(side, tuple(batch.sources)) for side in (0, 1)]
    return (
        build_items(*known, document[to_annotate], side[to_annotate], compared[0], none, batch.witnesses),
        build_items(*known, document[enters], side[enters], compared[1], stage.indexed, batch.witnesses),
    )
