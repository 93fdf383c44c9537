"""RoSeS' annotation join in normal form (RoSeS 3.2): a join of feeds, as a semi-join that collects.

In: a Selection with joins. Out: a JoinTemplate, whose first side is the items and whose other sides are the windows,
and the mapping back to the query. Each conjunction of the disjunctive normal form of a join's condition is a separate
window: its conditions on the item alone go to the items' filters, those on the window's items alone to the window's
filters, and the rest compares the two. For each of its joins, an item must match something by one conjunction, and its
annotation contains what it matches by any. Queries with equal templates differ only in constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from fishweir.algebra.column_joins import is_between, own_clause, stripped
from fishweir.algebra.feeds import Annotation, Filter, Selection, conjunction
from fishweir.algebra.formula import And, Clause, Formula, Literal, Not, RelativePath, atoms_of, to_dnf
from fishweir.algebra.joins import Edge, JoinNormal, JoinTemplate, placed_windows
from fishweir.algebra.nodes import SideWindow, Source, Step
from fishweir.algebra.normal import ANY_ROOT
from fishweir.algebra.predicates import Predicate, SlotPlace, order_of, to_predicates
from fishweir.errors import QueryError

ROLES = 64
"""The maximum number of roles of a query: (query, role) is encoded as one number."""


@dataclass(frozen=True, slots=True)
class Feed:
    """A side of a join: items that pass any of its filters. Edges compare the values at `paths`."""

    filters: tuple[Predicate, ...]
    paths: tuple[tuple[Step, ...], ...]
    meets: tuple[tuple[int, ...], ...]
    """For each filter, the sides in each of which an item must match something; empty for the items of a window."""

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(dict.fromkeys(one.source for one in self.filters))

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(kind for one in self.filters for kind in one.types)

    @property
    def roles(self) -> tuple[tuple[int, ...], ...]:
        """The distinct sets of sides that items must match. Items that must match the same sides have one role."""
        return tuple(dict.fromkeys(self.meets))

    def path(self, value: int) -> tuple[Step, ...]:
        return self.paths[value]

    def matching_sources(self, side: int) -> tuple[Source, ...]:
        """The sources of items that must match something in a side."""
        own = (one.source for one, meets in zip(self.filters, self.meets, strict=True) if side in meets)
        return tuple(dict.fromkeys(own))

    def __str__(self) -> str:
        return " | ".join(map(str, self.filters))


@dataclass(frozen=True, slots=True)
class _Conjunction:
    """A conjunction of a join's condition; `item` and `other` are its conditions on either side alone."""

    join: int
    item: Formula
    other: Formula
    between: tuple[Literal, ...]


@lru_cache(maxsize=100_000)
def to_annotation(shape: Selection) -> JoinNormal:
    """The normal form of a selection with joins. Raises QueryError if it has too many roles or can never match."""
    conjunctions = [_conjunctions(join, i) for i, join in enumerate(shape.joins)]
    flat = [one for some in conjunctions for one in some]
    items = [part for one in shape.filters for part in _by_conjunctions(one, conjunctions, flat)]
    if (roles := len({part.joins for part in items}) + len(flat)) > ROLES:
        raise QueryError(f"the feeds of this query have {roles} roles, more than {ROLES}")
    others = [
        [replace(part, formula=_both(part.formula, one.other)) for part in shape.joins[one.join].filters]
        for one in flat
    ]
    slots: list[SlotPlace] = []
    found = [_matched(filters, slots) for filters in (items, *others)]
    windows = placed_windows((SideWindow(), *(shape.joins[one.join].window for one in flat)), slots)
    paths: list[dict[RelativePath, int]] = [{} for _ in found]
    edges = [edge for side, one in enumerate(flat, 1) for edge in _edges(one, side, paths, slots)]
    sides = [
        Feed(filters, tuple((ANY_ROOT, *path) for path in own), meets)
        for (filters, meets), own in zip(found, paths, strict=True)
    ]
    collects = tuple(one.join for one in flat)
    return JoinNormal(JoinTemplate(tuple(sides), tuple(edges), windows, collects=collects), (), tuple(slots))


def _conjunctions(join: Annotation, number: int) -> list[_Conjunction]:
    """The conjunctions of a join's condition, in the order of the text."""
    order = {atom: i for i, atom in enumerate(atoms_of(join.condition))}
    found = []
    for clause in to_dnf(join.condition):
        between = [literal for literal in clause if is_between(literal.atom)]
        between.sort(key=lambda literal: order[literal.atom])
        item, other = (_formula(own_clause(clause, block)) for block in (0, 1))
        if other != And() and join.window.rows:
            reason = "its content would depend on the condition; put the condition on the feed"
            raise QueryError(f"a window that counts items cannot have a condition on its items alone: {reason}")
        found.append(_Conjunction(number, item, other, tuple(between)))
    if not found:
        raise QueryError("the condition of the join can never hold")
    return found


def _formula(clause: Clause) -> Formula:
    parts = sorted(clause, key=lambda literal: (order_of(literal.atom), literal.positive))
    return And(tuple(literal.atom if literal.positive else Not(literal.atom) for literal in parts))


def _both(formula: Formula, more: Formula) -> Formula:
    return formula if more == And() else conjunction((formula, more))


def _by_conjunctions(
    part: Filter, conjunctions: list[list[_Conjunction]], flat: list[_Conjunction]
) -> Iterator[Filter]:
    """A filter for each combination of one conjunction per join; the conjunctions become the sides of the template."""
    for chosen in product(*(conjunctions[join] for join in part.joins)):
        formula = part.formula
        for one in chosen:
            formula = _both(formula, one.item)
        yield Filter(part.source, formula, tuple(1 + flat.index(one) for one in chosen))


def _matched(
    filters: Sequence[Filter], slots: list[SlotPlace]
) -> tuple[tuple[Predicate, ...], tuple[tuple[int, ...], ...]]:
    """The predicates of a side's filters, and the sides their items must match. Appends to `slots`."""
    found = []
    for part in filters:
        for predicate, places in to_predicates(part.source, part.formula):
            found.append((predicate, part.joins))
            slots.extend(places)
    return tuple(predicate for predicate, _ in found), tuple(meets for _, meets in found)


def _edges(
    own: _Conjunction, side: int, paths: list[dict[RelativePath, int]], slots: list[SlotPlace]
) -> Iterator[Edge]:
    """The edges between the items and a window. Adds compared values to `paths` and thresholds to `slots`."""
    for literal in own.between:
        atom, share = stripped(literal.atom), -1
        assert isinstance(atom.right, tuple)
        if atom.threshold is not None:
            share = len(slots)
            slots.append(atom.threshold.index)
        left = paths[0].setdefault(atom.path, len(paths[0]))
        right = paths[side].setdefault(atom.right, len(paths[side]))
        yield Edge(0, left, atom.op, side, right, share, literal.positive)
