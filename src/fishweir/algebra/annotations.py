"""RoSeS' annotation join in normal form (RoSeS 3.2): a join of feeds, as a semi-join that collects.

In: a Selection with joins. Out: a JoinTemplate, whose first side is the items and whose other sides are the windows,
and the way back. Each conjunction of the disjunctive normal form of a join's condition is a window of its own: what it
asks of the item alone goes to the items' filters, what it asks of the window's items alone to the window's, and what is
left compares the two. An item must match something by one conjunction of each of its joins, and its annotation has what
it matches by any. Queries with equal templates differ in constants.
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
"""Most roles a query may have: (query, role) is one number."""


@dataclass(frozen=True, slots=True)
class Feed:
    """A side of a join: items that come by any of its filters. Edges compare the values at `paths`."""

    filters: tuple[Predicate, ...]
    paths: tuple[tuple[Step, ...], ...]
    meets: tuple[tuple[int, ...], ...]
    """By filter, the sides in each of which an item must match something; none for the items of a window."""

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(dict.fromkeys(one.source for one in self.filters))

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(kind for one in self.filters for kind in one.types)

    @property
    def roles(self) -> tuple[tuple[int, ...], ...]:
        """What items must match, each once: items that must match the same have one role."""
        return tuple(dict.fromkeys(self.meets))

    def path(self, value: int) -> tuple[Step, ...]:
        return self.paths[value]

    def meeting(self, side: int) -> tuple[Source, ...]:
        """The sources of items that must match something in a side."""
        own = (one.source for one, meets in zip(self.filters, self.meets, strict=True) if side in meets)
        return tuple(dict.fromkeys(own))

    def __str__(self) -> str:
        return " | ".join(map(str, self.filters))


@dataclass(frozen=True, slots=True)
class _Conjunction:
    """One of a join's condition: `item` and `other` are what it asks of the item and of the window's items alone."""

    join: int
    item: Formula
    other: Formula
    between: tuple[Literal, ...]


@lru_cache(maxsize=100_000)
def to_annotation(shape: Selection) -> JoinNormal:
    """The normal form of a selection with joins. Raises QueryError if it has too many roles or can never match."""
    ways = [_conjunctions(join, i) for i, join in enumerate(shape.joins)]
    flat = [one for some in ways for one in some]
    items = [part for one in shape.filters for part in _by_ways(one, ways, flat)]
    if (roles := len({part.joins for part in items}) + len(flat)) > ROLES:
        raise QueryError(f"its feeds have {roles} roles, more than {ROLES}")
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
    """Those of a join's condition, each in the order of its text."""
    order = {atom: i for i, atom in enumerate(atoms_of(join.condition))}
    found = []
    for clause in to_dnf(join.condition):
        between = [literal for literal in clause if is_between(literal.atom)]
        between.sort(key=lambda literal: order[literal.atom])
        item, other = (_formula(own_clause(clause, block)) for block in (0, 1))
        if other != And() and join.window.rows:
            reason = "what it holds would depend on the condition; put the condition on the feed"
            raise QueryError(f"a window of items has no condition on its items alone: {reason}")
        found.append(_Conjunction(number, item, other, tuple(between)))
    if not found:
        raise QueryError("the condition of its join never holds")
    return found


def _formula(clause: Clause) -> Formula:
    parts = sorted(clause, key=lambda literal: (order_of(literal.atom), literal.positive))
    return And(tuple(literal.atom if literal.positive else Not(literal.atom) for literal in parts))


def _both(formula: Formula, more: Formula) -> Formula:
    return formula if more == And() else conjunction((formula, more))


def _by_ways(part: Filter, ways: list[list[_Conjunction]], flat: list[_Conjunction]) -> Iterator[Filter]:
    """A filter for each choice of one conjunction of each of its joins, which are then the sides of the template."""
    for chosen in product(*(ways[join] for join in part.joins)):
        formula = part.formula
        for one in chosen:
            formula = _both(formula, one.item)
        yield Filter(part.source, formula, tuple(1 + flat.index(one) for one in chosen))


def _matched(
    filters: Sequence[Filter], slots: list[SlotPlace]
) -> tuple[tuple[Predicate, ...], tuple[tuple[int, ...], ...]]:
    """The predicates of a side's filters and what their items must match; appends the places of their constants."""
    found = []
    for part in filters:
        for predicate, places in to_predicates(part.source, part.formula):
            found.append((predicate, part.joins))
            slots.extend(places)
    return tuple(predicate for predicate, _ in found), tuple(meets for _, meets in found)


def _edges(
    own: _Conjunction, side: int, paths: list[dict[RelativePath, int]], slots: list[SlotPlace]
) -> Iterator[Edge]:
    """Those between the items and a window. Adds the values that they compare and the places of their thresholds."""
    for literal in own.between:
        atom, share = stripped(literal.atom), -1
        assert isinstance(atom.right, tuple)
        if atom.threshold is not None:
            share = len(slots)
            slots.append(atom.threshold.index)
        left = paths[0].setdefault(atom.path, len(paths[0]))
        right = paths[side].setdefault(atom.right, len(paths[side]))
        yield Edge(0, left, atom.op, side, right, share, literal.positive)
