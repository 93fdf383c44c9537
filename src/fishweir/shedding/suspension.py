"""Determines which patterns a stream's queries can do without, and in which order they are left out (sections 4 and 5,
for all queries of a stream together).

In: the queries of a stream, counted by shape and preference (groups), and the cost of each pattern. Out: a chain of
variants of the whole query set. Each variant leaves out one more part than the previous one: the part with the smallest
loss, summed over its queries and weighted by their subscribers, per cost saved. A part is one of three things:

- a **return pattern**: it is missing only from the outputs of the queries that return it;
- a **condition**: a path without which some queries cannot be evaluated. These queries then have no results;
- a **selection pattern**, which the paper's shed queries may lack: its condition is not checked, and its queries
  select more (`relaxing.py`).

Queries without a preference lose nothing, unless the stream is declared with `shed allowed`. So a condition is a part
only if all queries that need it may lose it, and if its absence does not make any of them true.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import Any

from fishweir.algebra.alternatives import parts
from fishweir.algebra.feeds import Selection
from fishweir.algebra.formula import And, Atom, Formula, Not, Or
from fishweir.algebra.nodes import PatternNode, Shape, Slot
from fishweir.algebra.normal import dotted
from fishweir.algebra.preferences import Preference
from fishweir.records import dataclass
from fishweir.shedding.patterns import AbsolutePath, is_alone, to_tree
from fishweir.shedding.relaxing import relaxable_at
from fishweir.shedding.utility import Utilities, utilities

LONGEST = 32
"""The maximum number of variants of a chain."""
MOST = 256
"""The maximum number of parts that are weighed: those that the fewest subscribers lose."""


Saved = tuple[float, float]
"""The two costs of a document: matching it in a micro-batch, and constructing its outputs."""


@dataclass(frozen=True, slots=True)
class PreferenceGroup:
    """Queries over one stream with one shape and preference (None for none), and their total number of subscribers.
    `taken` tells whether their outputs are consumed immediately, by a delivery or by a query over them.
    """

    preference: Preference | None
    subscribers: int
    shape: Any = None
    taken: bool = False
    is_read: bool = False
    """Whether other queries read their results."""

    @property
    def weight(self) -> float:
        return float(max(1, self.subscribers))


@dataclass(frozen=True, slots=True)
class Part:
    """Something that can be left out; `losers` are the affected groups, by position, with their lost patterns."""

    key: str
    is_condition: bool
    losers: tuple[tuple[int, frozenset[int]], ...]
    is_relaxed: bool = False
    """Whether it is a selection pattern: its condition is not checked."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The query set without some parts: the remaining shares of its utility and of its two costs, each at most 1."""

    utility: float = 1.0
    matching: float = 1.0
    constructing: float = 1.0
    returns: tuple[str, ...] = ()
    """Return patterns missing from outputs."""
    conditions: tuple[str, ...] = ()
    """Suspended paths: only queries that are not evaluated need them."""
    relaxed: tuple[str, ...] = ()
    """Paths whose conditions are not checked."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that can be left out of a stream's queries, regardless of cost; computed once per catalog version."""

    groups: tuple[PreferenceGroup, ...]
    parts: tuple[Part, ...]
    needed: Mapping[str, set[int]]
    """By path, the groups that need it."""

    @property
    def weight(self) -> float:
        return sum(group.weight for group in self.groups)

    def only(self, gone: Set[int]) -> tuple[str, ...]:
        """The paths that only groups in `gone` need."""
        keys = dict.fromkeys(key for place in sorted(gone) for key in needed_paths(self.groups[place].shape))
        return tuple(key for key in keys if self.needed[key] <= gone)


def parts_of(groups: Sequence[PreferenceGroup], allowed: bool, conditions: bool = True, made_up: bool = False) -> Parts:
    """The parts that the queries of a stream may lose; without `conditions`, only return patterns. If losses are
    `made_up` for, a query keeps its patterns if others read its results: these cannot be completed later.
    """
    losers: defaultdict[str, list[tuple[int, frozenset[int]]]] = defaultdict(list)
    needed: defaultdict[str, set[int]] = defaultdict(set)
    firm: set[str] = set()
    """Paths that some query must not lose."""
    for place, group in enumerate(groups):
        may = (allowed or group.preference is not None) and is_alone(group.shape)
        if may and not (made_up and group.is_read):
            for key, lost in _returned(group.shape):
                losers[key].append((place, lost))
        for key in needed_paths(group.shape):
            needed[key].add(place)
        if not may or not is_plain(group.shape):
            firm |= needed_paths(group.shape).keys()
    parts = [Part(key, False, tuple(some)) for key, some in losers.items()]
    if conditions:
        every = len(groups)
        alone = [key for key, some in needed.items() if key not in firm and len(some) < every]
        parts += [Part(key, True, tuple((i, to_tree(groups[i].shape).full) for i in needed[key])) for key in alone]
        selections = ((key, relaxable_at(key, some, groups, needed)) for key, some in needed.items())
        parts += [Part(key, False, losers, True) for key, losers in selections if losers]
    parts.sort(key=lambda part: sum(groups[place].weight for place, _ in part.losers))
    return Parts(tuple(groups), tuple(parts[:MOST]), needed)


def chain(found: Parts, weights: Saved, saved: Callable[[Part], Saved]) -> tuple[Variant, ...]:
    """The variants, the original first. `weights` are the two costs of a document, `saved` returns the share of each
    that leaving out a single part saves. No output loses its last pattern: an empty result has no value.
    """
    lost: defaultdict[int, frozenset[int]] = defaultdict(frozenset)
    gone: set[int] = set()
    returns: list[str] = []
    relaxed: dict[str, frozenset[int]] = {}
    variants = [Variant()]
    for part, (matching, constructing) in _ranked(found, weights, saved):
        if len(variants) == LONGEST:
            break
        if part.is_relaxed and gone.intersection(place for place, _ in part.losers):
            continue
        if not part.is_condition and any(_is_emptied(found.groups[i].shape, lost[i] | own) for i, own in part.losers):
            continue
        less = sum(_lost(found, part, place, lost[place], patterns, gone) for place, patterns in part.losers)
        for place, patterns in part.losers:
            lost[place] |= patterns
        if part.is_condition:
            gone |= {place for place, _ in part.losers}
            relaxed = {key: places for key, places in relaxed.items() if not places <= gone}
        elif part.is_relaxed:
            relaxed[part.key] = frozenset(place for place, _ in part.losers)
        else:
            returns.append(part.key)
        last = variants[-1]
        costs = max(0.0, last.matching - matching), max(0.0, last.constructing - constructing)
        utility = max(0.0, last.utility - less / found.weight)
        variants.append(Variant(utility, *costs, tuple(returns), found.only(gone), tuple(relaxed)))
    return tuple(variants)


def _lost(
    found: Parts, part: Part, place: int, before: frozenset[int], patterns: frozenset[int], gone: Set[int]
) -> float:
    """The additional loss of a group by a part, weighted by its subscribers."""
    if place in gone:
        return 0.0
    group = found.groups[place]
    worth = worth_of(group.shape, group.preference)
    after = 1.0 if part.is_condition else worth.normalized(before | patterns)
    return group.weight * (after - worth.normalized(before))


def _is_emptied(shape: Any, lost: frozenset[int]) -> bool:
    return all(i in lost for i, pattern in enumerate(to_tree(shape).patterns) if pattern.returned)


def _ranked(found: Parts, weights: Saved, saved: Callable[[Part], Saved]) -> list[tuple[Part, Saved]]:
    """The parts that save something, ordered by loss per cost saved."""
    rated = []
    for part in found.parts:
        shares = saved(part)
        saving = weights[0] * shares[0] + weights[1] * shares[1]
        if saving > 0:
            rated.append((loss_of(found, part) / saving, part, shares))
    rated.sort(key=lambda one: (one[0], one[1].key))
    return [(part, shares) for _, part, shares in rated]


def loss_of(found: Parts, part: Part) -> float:
    """The loss of utility of the queries that lose a part, weighted by subscribers."""
    total = 0.0
    for place, patterns in part.losers:
        group = found.groups[place]
        share = 1.0 if part.is_condition else worth_of(group.shape, group.preference).normalized(patterns)
        total += group.weight * share
    return total


@lru_cache(maxsize=100_000)
def worth_of(shape: Any, preference: Preference | None) -> Utilities:
    return utilities(to_tree(shape), preference)


@lru_cache(maxsize=100_000)
def _returned(shape: Any) -> tuple[tuple[str, frozenset[int]], ...]:
    """The return patterns of a query, each with the patterns removed with it: itself and the returned ones below."""
    tree = to_tree(shape)
    places = [i for i, pattern in enumerate(tree.patterns) if pattern.returned]
    return tuple((tree.patterns[i].key, frozenset(j for j in places if tree.is_below(j, i))) for i in places)


@lru_cache(maxsize=100_000)
def needed_paths(shape: Any) -> Mapping[str, AbsolutePath]:
    """The paths without which a query may have no results, for all its sides, by their keys."""
    if isinstance(shape, Shape):
        whole = (shape, shape.unless) if shape.unless else (shape,)
        sides = [block.pattern for one in whole for part in parts(one) for block in part.blocks]
        return {dotted(path): path for side in sides for path in _paths(side, ())}
    if isinstance(shape, Selection):
        filters = [*shape.filters, *(one for join in shape.joins for one in join.filters)]
        return {dotted(path): path for one in filters for path in _mentioned(one.formula)}
    return {}


def _paths(node: PatternNode, above: AbsolutePath) -> Iterator[AbsolutePath]:
    path = (*above, node.step)
    yield path
    for child in (*node.children, *(inner for absence in node.absent for inner in absence.children)):
        yield from _paths(child, path)


def _mentioned(formula: Formula) -> Iterator[AbsolutePath]:
    match formula:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _mentioned(part)
        case Not(part):
            yield from _mentioned(part)
        case Atom(path, _, right):
            yield from (tuple(one) for one in (path, right) if one and not isinstance(one, Slot))


@lru_cache(maxsize=100_000)
def is_plain(shape: Any) -> bool:
    """Whether a query has no results without one of its paths: no alternatives, no absences, no negation."""
    if isinstance(shape, Shape):
        absent = shape.unless is not None or any(n.absent for b in shape.blocks for n in b.pattern.walk())
        return not shape.alternatives and not absent
    return isinstance(shape, Selection) and all(_is_conjunction(one.formula) for one in shape.filters)


def _is_conjunction(formula: Formula) -> bool:
    match formula:
        case And(parts):
            return all(map(_is_conjunction, parts))
        case Atom():
            return bool(formula.path)
    return False
