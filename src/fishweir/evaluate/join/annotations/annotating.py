"""Joins the items of a micro-batch with the items in their windows (RoSeS 3.2 and 4.2).

In: the links, the items to annotate, the new and retained runs with the items of the windows. Out: blocks of results,
each an item with its annotation and the queries that produce this annotation.

Candidates are found once for all queries that enumerate the same comparison. Equal features are found by lookup. For
`similar`, the candidates are the items that share one of the item's rarest words and are similar enough (prefix
filtering: if k of n words must be common, any n - k + 1 of them include a common one). The queries of a candidate are
those that select both items. Windows and the remaining comparisons are checked on whole arrays. No code loops over
queries or items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.annotations import ROLES
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.index.similarity import least_common
from fishweir.evaluate.join.annotations.checks import decide
from fishweir.evaluate.join.annotations.comparisons import EQUALITIES
from fishweir.evaluate.join.annotations.item_views import FeatureValues, Floats, ItemView, place_of
from fishweir.evaluate.join.annotations.links import Links
from fishweir.evaluate.join.annotations.windows import CountedWindows
from fishweir.evaluate.join.hashes import GOLDEN, Hashes, combine

AT_ONCE = 256
"""Number of items annotated at once, which bounds the memory."""


@dataclass(frozen=True)
class AnnotationBlock:
    """Row i holds an item (its position among the items to annotate), its queries and its annotation. The annotation
    lists joins, streams and numbers of the items, by join and then ordered by time, stream and number."""

    rows: Ints
    member_starts: Ints
    members: Ints
    item_starts: Ints
    joins: Ints
    streams: Ints
    numbers: Ints

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class CandidateMatches:
    """Candidate matches: item, link, and item of the window."""

    items: Ints
    links: Ints
    times: Floats
    streams: Ints
    numbers: Ints

    @property
    def keys(self) -> Ints:
        return self.items << 32 | self.links


def annotate(
    links: Links, primary: ItemView, runs: Sequence[ItemView], part: int = 0, parts: int = 1
) -> Iterator[AnnotationBlock]:
    """Yields the results for the items to annotate, restricted to `part` of `parts` of them."""
    rows = np.flatnonzero(np.diff(primary.to_annotate.starts))[part::parts]
    for start in range(0, len(rows), AT_ONCE):
        block = _Block(links, primary, rows[start : start + AT_ONCE], runs).results()
        if len(block):
            yield block


class _Block:
    """A block of items to annotate. `wants` holds (item, position of its side among the sides to annotate) pairs."""

    def __init__(self, links: Links, primary: ItemView, rows: Ints, runs: Sequence[ItemView]) -> None:
        self.links, self.primary, self.runs = links, primary, [run for run in runs if len(run)]
        source, sides = primary.to_annotate.of(rows)
        place = place_of(links.to_annotate, sides)
        self.items, self.wants = rows[source[place >= 0]], place[place >= 0]

    @cached_property
    def requests(self) -> Ints:
        """Sorted (item, link) pairs: the joins that apply to the block's items."""
        source, at = expand(self.links.link_starts[self.wants], self.links.link_starts[self.wants + 1])
        return np.unique(self.items[source] << 32 | self.links.linked[at])

    @cached_property
    def counted(self) -> CountedWindows:
        links = self.requests & 0xFFFFFFFF
        return CountedWindows(self.links, self.primary, self.requests[self.links.items[links] > 0], self.runs)

    def results(self) -> AnnotationBlock:
        found = self._found()
        met = np.unique(found.keys)
        source, at = expand(self.links.link_starts[self.wants], self.links.link_starts[self.wants + 1])
        keys = self.items[source] << 32 | self.links.linked[at]
        missing = np.bincount(source[~np.isin(keys, met)], minlength=len(self.wants))
        held = missing == 0
        shown = np.isin(found.keys, keys[held[source]])
        found = CandidateMatches(
            *(getattr(found, name)[shown] for name in ("items", "links", "times", "streams", "numbers"))
        )
        numbers = self.links.to_annotate[self.wants[held]] // ROLES
        return _grouped(self.links, np.unique(self.items[held] << 32 | numbers), found)

    def _found(self) -> CandidateMatches:
        parts = []
        for anchor in np.unique(self.links.anchors[self.requests & 0xFFFFFFFF]).tolist():
            requests = self.requests[self.links.anchors[self.requests & 0xFFFFFFFF] == anchor]
            for run, (items, links, others) in zip(self.runs, self._candidates(anchor, requests), strict=True):
                parts.append(self._checked(run, items, links, others, anchor))
        none = np.empty(0, np.int64)
        parts.append(CandidateMatches(none, none, np.empty(0), none, none))
        return CandidateMatches(
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("items", "links", "times", "streams", "numbers")
            )
        )

    def _candidates(self, anchor: int, requests: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yields for each run the items, the links anchored here, and the window items that these links may select."""
        if anchor < 0:
            for run in self.runs:
                yield self._whole_window(run, requests)
            return
        chosen = np.unique(requests >> 32)
        condition = self.links.compared[anchor]
        looked_up = _features(self.primary.values(condition.left.key), chosen)
        words, indexes = looked_up.features, [run.index(condition.right.key) for run in self.runs]
        hits = [tuple(np.searchsorted(keys, words, side) for side in ("left", "right")) for keys, _ in indexes]
        if condition.op == "similar":
            rare = _rarest(
                looked_up, sum((hi - lo for lo, hi in hits), np.zeros(len(words), np.int64)), self.links.least(anchor)
            )
            hits = [(lo[rare], hi[rare]) for lo, hi in hits]
            looked_up = _Features(looked_up.items[rare], looked_up.values[rare], looked_up.features[rare])
        for run, (_, holders), (lo, hi) in zip(self.runs, indexes, hits, strict=True):
            source, at = expand(lo, hi)
            met, others = looked_up.items[source], holders[at]
            in_reach = (run.times[others] <= self.primary.times[met]) & (
                run.times[others] >= self._oldest(requests, met)
            )
            pairs = _distinct(met[in_reach] << 32 | others[in_reach])
            if condition.op == "similar":
                degree = decide(condition, self.primary, pairs >> 32, run, pairs & 0xFFFFFFFF)
                pairs = pairs[degree >= self.links.least(anchor)]
            yield self._wanted(run, pairs >> 32, pairs & 0xFFFFFFFF, requests)

    def _oldest(self, requests: Ints, items: Ints) -> Floats:
        """The start of the longest of these windows, with a small margin."""
        longest = float(self.links.seconds[requests & 0xFFFFFFFF].max(initial=-1.0))
        return self.primary.times[items] - longest - 1.0

    def _wanted(self, run: ItemView, items: Ints, others: Ints, requests: Ints) -> tuple[Ints, Ints, Ints]:
        """The links that select both items of a pair. The shorter of the two lists is looked up in the longer one."""
        lo, hi = np.searchsorted(requests, items << 32), np.searchsorted(requests, (items + 1) << 32)
        entered, sides = run.in_windows.of(others)
        first, last = self.links.of_windows(sides)
        if (hi - lo).sum() <= (last - first).sum():
            pair, at = expand(lo, hi)
            links = requests[at] & 0xFFFFFFFF
            place = run.place_of(self.links.sides[links])
            keep = (place >= 0) & _within(run.entries, place << 32 | others[pair])
        else:
            source, at = expand(first, last)
            pair, links = entered[source], self.links.by_side[at]
            keep = _within(requests, items[pair] << 32 | links)
        return items[pair[keep]], links[keep], others[pair[keep]]

    def _whole_window(self, run: ItemView, requests: Ints) -> tuple[Ints, Ints, Ints]:
        """The candidates of links without a lookup: the part of the window that may be in reach."""
        items, links = requests >> 32, requests & 0xFFFFFFFF
        place, times = run.place_of(self.links.sides[links]), self.primary.times[items]
        first = np.searchsorted(run.times, times - self.links.seconds[links] - 1.0, "left")
        last = np.searchsorted(run.times, times, "right")
        lo, hi = (np.searchsorted(run.entries, np.maximum(place, 0) << 32 | end) for end in (first, last))
        source, at = expand(lo, np.where(place >= 0, hi, lo))
        return items[source], links[source], run.entries[at] & 0xFFFFFFFF

    def _checked(self, run: ItemView, items: Ints, links: Ints, others: Ints, anchor: int) -> CandidateMatches:
        """The candidates whose window holds the other item and whose comparisons all hold."""
        known, primary = self.links, self.primary
        apart = primary.times[items] - run.times[others]
        same = (primary.streams[items] == run.streams[others]) & (primary.numbers[items] == run.numbers[others])
        keep = (apart >= 0) & (apart <= known.seconds[links]) & ~same
        items, links, others = items[keep], links[keep], others[keep]
        counted = np.flatnonzero(known.items[links] > 0)
        if len(counted):
            inside = self.counted.hold(
                items[counted] << 32 | links[counted], run.streams[others[counted]], run.numbers[others[counted]]
            )
            keep = np.ones(len(items), np.bool_)
            keep[counted[~inside]] = False
            items, links, others = items[keep], links[keep], others[keep]
        row, at = expand(known.check_starts[links], known.check_starts[links + 1])
        holds = np.ones(len(items), np.bool_)
        for condition in np.unique(known.checks[at]).tolist():
            what = known.compared[condition]
            if condition == anchor and what.op in EQUALITIES:
                continue
            own = np.flatnonzero(known.checks[at] == condition)
            rows = row[own]
            pairs, back = np.unique(items[rows] << 32 | others[rows], return_inverse=True)
            degree = decide(what, primary, pairs >> 32, run, pairs & 0xFFFFFFFF)[back]
            met = degree >= (known.shares[at[own]] if what.op == "similar" else 1.0)
            holds[rows[met != known.positive[at[own]]]] = False
        items, links, others = items[holds], links[holds], others[holds]
        return CandidateMatches(items, links, run.times[others], run.streams[others], run.numbers[others])


@dataclass(frozen=True)
class _Features:
    """The features of one variable of some items: item, value, feature."""

    items: Ints
    values: Ints
    features: Hashes


def _features(of: FeatureValues, items: Ints) -> _Features:
    source, values = expand(*of.of(items))
    inner, at = expand(of.feature_starts[values], of.feature_starts[values + 1])
    return _Features(items[source[inner]], values[inner], of.features[at])


def _rarest(words: _Features, counts: Ints, least: float) -> Ints:
    """The rarest words of each value, at least one of which must be common."""
    order = np.lexsort((counts, words.values))
    _, starts, lengths = np.unique(words.values[order], return_index=True, return_counts=True)
    needed = least_common(np.full(len(lengths), least), lengths.astype(np.int64))
    within = np.arange(len(order)) - np.repeat(starts, lengths)
    return order[within < np.repeat(lengths - needed + 1, lengths)]


def _distinct(keys: Ints) -> Ints:
    """The distinct values, sorted. NumPy's hash-based implementation is several times slower."""
    ordered = np.sort(keys)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]


def _within(ordered: Ints, keys: Ints) -> NDArray[np.bool_]:
    """Mask of the keys that are in a sorted list."""
    return place_of(ordered, keys) >= 0


def _grouped(links: Links, fired: Ints, found: CandidateMatches) -> AnnotationBlock:
    """Groups (item, query) pairs by the hash of their annotation: one row for all queries that give an item the same
    annotation. An item that matches by several conjunctions of a join is listed once."""
    owner, joins = found.items << 32 | links.numbers[found.links], links.joins[found.links]
    order = np.lexsort((found.numbers, found.streams, found.times, joins, owner))
    keys = [column[order] for column in (owner, joins, found.streams, found.numbers)]
    again = np.all([np.diff(key, prepend=-1) == 0 for key in keys], axis=0)
    owner, joins, streams, numbers = (key[~again] for key in keys)
    owner = np.searchsorted(fired, owner)
    mixed = combine(combine(combine(0, joins.astype(np.uint64)), streams.astype(np.uint64)), numbers.astype(np.uint64))
    digest = np.zeros(len(fired), np.uint64)
    np.add.at(digest, owner, mixed * GOLDEN)
    items, members = fired >> 32, fired & 0xFFFFFFFF
    by_content = np.lexsort((members, digest, items))
    same = (np.diff(items[by_content]) == 0) & (np.diff(digest[by_content].view(np.int64)) == 0)
    starts = np.flatnonzero(np.append(True, ~same))[: len(fired)]
    first = by_content[starts]
    by_owner = np.argsort(owner, kind="stable")
    lo, hi = (np.searchsorted(owner[by_owner], first, side) for side in ("left", "right"))
    _, at = expand(lo, hi)
    shown = by_owner[at]
    return AnnotationBlock(
        items[first],
        np.append(starts, len(fired)).astype(np.int64),
        members[by_content],
        np.append(0, np.cumsum(hi - lo)).astype(np.int64),
        joins[shown],
        streams[shown],
        numbers[shown],
    )
