"""RoSeS' annotation join in normal form (RoSeS 3.2): sides, windows, and the comparisons between them.

In: a Selection with joins. Out: an AnnotationTemplate, in which every feed of the from clause and of a window is a
predicate on one source under a role, and the way back. A role below `len(primaries)` is items that must match something
in those windows; the roles after them are the windows. Each conjunction of the disjunctive normal form of a join's
condition is a window of its own: what it asks of the item alone goes to the items' predicates, what it asks of the
window's items alone to the window's, and what is left compares the two. An item must match something by one conjunction
of each of its joins, and its annotation has what it matches by any. Queries with equal templates differ in constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import ClassVar

from fishweir.algebra.column_joins import is_between, own_clause, stripped
from fishweir.algebra.feeds import Annotation, Filter, Selection, conjunction
from fishweir.algebra.formula import And, Clause, Formula, Literal, Not, RelativePath, atoms_of, to_dnf
from fishweir.algebra.nodes import Source
from fishweir.algebra.predicates import Predicate, SlotPlace, order_of, to_predicates
from fishweir.algebra.texts import SIMILAR
from fishweir.errors import QueryError

ROLES = 64
"""Most roles a query may have: (query, role) is one number."""


@dataclass(frozen=True, slots=True)
class AnnotationCondition:
    """`left op window.right` or its negation; `share` is the position of similar's threshold among the constants, -1
    for the default."""

    left: RelativePath
    op: str
    right: RelativePath
    share: int = -1
    positive: bool = True

    def shown(self) -> str:
        left, right = ("/".join(map(str, path)) or "item" for path in (self.left, self.right))
        return f"{'' if self.positive else 'not '}{left} {self.op} window.{right}"


@dataclass(frozen=True, slots=True)
class AnnotationWindow:
    """The last `seconds`, or the last `items`, of what comes by the window's feeds, and the comparisons with them.
    `join` is the query's join that it belongs to."""

    seconds: float | None
    items: int | None
    conditions: tuple[AnnotationCondition, ...]
    join: int

    def shown(self) -> str:
        last = f"{self.items:,} items" if self.items is not None else f"{self.seconds:g} s"
        return f"last {last} with {' and '.join(c.shown() for c in self.conditions) or 'all'}"


@dataclass(frozen=True, slots=True)
class Side:
    """Items of a source under a role; the predicate's constants begin at `first` among the query's."""

    role: int
    predicate: Predicate
    first: int

    @property
    def span(self) -> slice:
        """The positions of its constants among those of the query."""
        return slice(self.first, self.first + len(self.predicate.types))


@dataclass(frozen=True, slots=True)
class AnnotationTemplate:
    """Constants: those of the sides, one after the other, then the shares of `similar`."""

    kind: ClassVar[str] = "joins"
    collects: ClassVar[bool] = True

    sides: tuple[Side, ...]
    windows: tuple[AnnotationWindow, ...]
    primaries: tuple[tuple[int, ...], ...]
    shares: int

    @property
    def types(self) -> tuple[str, ...]:
        return (*(kind for side in self.sides for kind in side.predicate.types), *("number",) * self.shares)

    @property
    def first_share(self) -> int:
        return len(self.types) - self.shares

    def role(self, window: int) -> int:
        return len(self.primaries) + window

    def of_role(self, role: int) -> Iterator[Side]:
        return (side for side in self.sides if side.role == role)

    def sources(self, role: int) -> tuple[Source, ...]:
        return tuple(dict.fromkeys(side.predicate.source for side in self.of_role(role)))

    def annotated_by(self, window: int) -> tuple[Source, ...]:
        """The sources of the items that must match something in a window."""
        roles = (role for role, windows in enumerate(self.primaries) if window in windows)
        return tuple(dict.fromkeys(source for role in roles for source in self.sources(role)))

    @property
    def signature(self) -> str:
        """The inputs and the comparisons between them."""
        main = dict.fromkeys(str(s) for role in range(len(self.primaries)) for s in self.sources(role))
        joins = [
            f"{window.shown()} in {' | '.join(map(str, self.sources(self.role(i))))}"
            for i, window in enumerate(self.windows)
        ]
        shown = joins[0]
        for i, text in enumerate(joins[1:], 1):
            shown += f"{' or ' if self.windows[i].join == self.windows[i - 1].join else ' join '}{text}"
        return f"{' | '.join(main)} join {shown}"

    @property
    def signatures(self) -> list[str]:
        return [self.signature]

    def __str__(self) -> str:
        return f"{' || '.join(str(side.predicate) for side in self.sides)} || {self.signature}"


@dataclass(frozen=True, slots=True)
class AnnotationNormal:
    """A template and the way back: index of the constant for each slot."""

    template: AnnotationTemplate
    slots: tuple[SlotPlace, ...]


@dataclass(frozen=True, slots=True)
class _Conjunction:
    """One of a join's condition: `item` and `other` are what it asks of the item and of the window's items alone."""

    join: int
    item: Formula
    other: Formula
    between: tuple[Literal, ...]


@lru_cache(maxsize=100_000)
def to_annotation(shape: Selection) -> AnnotationNormal:
    """The normal form of a selection with joins. Raises QueryError if it has too many roles or can never match."""
    ways = [_conjunctions(join, i) for i, join in enumerate(shape.joins)]
    flat = [one for some in ways for one in some]
    filters = [part for one in shape.filters for part in _by_ways(one, ways, flat)]
    primaries = tuple(dict.fromkeys(part.joins for part in filters))
    if len(primaries) + len(flat) > ROLES:
        raise QueryError(f"its feeds have {len(primaries) + len(flat)} roles, more than {ROLES}")
    slots: list[SlotPlace] = []
    sides: list[Side] = []

    def add(role: int, filters: Sequence[Filter]) -> None:
        for part in filters:
            for predicate, places in to_predicates(part.source, part.formula):
                sides.append(Side(role, predicate, len(slots)))
                slots.extend(places)

    for role, joins in enumerate(primaries):
        add(role, [part for part in filters if part.joins == joins])
    for i, one in enumerate(flat):
        own = shape.joins[one.join].filters
        add(len(primaries) + i, [replace(part, formula=_both(part.formula, one.other)) for part in own])
    first = len(slots)
    windows = tuple(_window(shape, one, slots, first) for one in flat)
    return AnnotationNormal(AnnotationTemplate(tuple(sides), windows, primaries, len(slots) - first), tuple(slots))


def _conjunctions(join: Annotation, number: int) -> list[_Conjunction]:
    """Those of a join's condition, each in the order of its text."""
    order = {atom: i for i, atom in enumerate(atoms_of(join.condition))}
    found = []
    for clause in to_dnf(join.condition):
        between = [literal for literal in clause if is_between(literal.atom)]
        between.sort(key=lambda literal: order[literal.atom])
        item, other = (_formula(own_clause(clause, block)) for block in (0, 1))
        if other != And() and join.window.items is not None:
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
    """A filter for each choice of one conjunction of each of its joins."""
    for chosen in product(*(ways[join] for join in part.joins)):
        formula = part.formula
        for one in chosen:
            formula = _both(formula, one.item)
        yield Filter(part.source, formula, tuple(flat.index(one) for one in chosen))


def _window(shape: Selection, own: _Conjunction, slots: list[SlotPlace], first: int) -> AnnotationWindow:
    conditions = []
    for literal in own.between:
        atom, share = stripped(literal.atom), -1
        assert isinstance(atom.right, tuple)
        if atom.threshold is not None:
            share = len(slots) - first
            slots.append(atom.threshold.index)
        conditions.append(AnnotationCondition(atom.path, atom.op, atom.right, share, literal.positive))
    window = shape.joins[own.join].window
    return AnnotationWindow(window.seconds, window.items, tuple(conditions), own.join)


def share_of(condition: AnnotationCondition, shares: list[float]) -> float:
    return SIMILAR if condition.share < 0 else shares[condition.share]
