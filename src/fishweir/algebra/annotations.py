"""RoSeS' annotation join in normal form (RoSeS 3.2): sides, windows, and the comparisons between them.

In: a Selection with joins. Out: an AnnotationTemplate, in which every feed of the from clause and of a window is a
predicate on one source under a role, and the way back. A role below `len(primaries)` is items that must satisfy those
joins; the roles after them are the windows, one for each join. Queries with equal templates differ in constants only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from fishweir.algebra.feeds import Filter, Selection
from fishweir.algebra.formula import RelativePath
from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.predicates import Place, Predicate, to_predicates
from fishweir.algebra.texts import SIMILAR
from fishweir.errors import QueryError

ROLES = 64
"""Most roles a query may have: (query, role) is one number."""


@dataclass(frozen=True, slots=True)
class AnnotationCondition:
    """`left op window.right`; `share` is where similar's number stands among the constants, -1 for the usual."""

    left: RelativePath
    op: str
    right: RelativePath
    share: int = -1

    def shown(self) -> str:
        left, right = ("/".join(map(str, path)) or "item" for path in (self.left, self.right))
        return f"{left} {self.op} window.{right}"


@dataclass(frozen=True, slots=True)
class AnnotationWindow:
    """The last `seconds`, or the last `items`, of what comes by the window's feeds, and the comparisons with them."""

    seconds: float | None
    items: int | None
    conditions: tuple[AnnotationCondition, ...]

    def shown(self) -> str:
        last = f"{self.items:,} items" if self.items is not None else f"{self.seconds:g} s"
        return f"last {last} with {' and '.join(c.shown() for c in self.conditions)}"


@dataclass(frozen=True, slots=True)
class Side:
    """Items of a source under a role; the predicate's constants begin at `first` among the query's."""

    role: int
    predicate: Predicate
    first: int

    def own(self, constants: Sequence[Constant]) -> Sequence[Constant]:
        return constants[self.first : self.first + len(self.predicate.types)]


@dataclass(frozen=True, slots=True)
class AnnotationTemplate:
    """Constants: those of the sides, one after the other, then the shares of `similar`."""

    kind: ClassVar[str] = "annotations"

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

    @property
    def signature(self) -> str:
        """The inputs and the comparisons between them."""
        main = dict.fromkeys(str(s) for role in range(len(self.primaries)) for s in self.sources(role))
        joins = [
            f"{window.shown()} in {' | '.join(map(str, self.sources(self.role(i))))}"
            for i, window in enumerate(self.windows)
        ]
        return f"{' | '.join(main)} join {' join '.join(joins)}"

    @property
    def signatures(self) -> list[str]:
        return [self.signature]

    def __str__(self) -> str:
        return f"{' || '.join(str(side.predicate) for side in self.sides)} || {self.signature}"


@dataclass(frozen=True, slots=True)
class AnnotationNormal:
    """A template and the way back: index of the constant for each slot."""

    template: AnnotationTemplate
    slots: tuple[Place, ...]


@lru_cache(maxsize=100_000)
def to_annotation(shape: Selection) -> AnnotationNormal:
    """The normal form of a selection that joins; QueryError where it has too many roles."""
    primaries = tuple(dict.fromkeys(part.joins for part in shape.filters))
    if len(primaries) + len(shape.joins) > ROLES:
        raise QueryError(f"its feeds take part in {len(primaries) + len(shape.joins)} ways, more than {ROLES}")
    slots: list[Place] = []
    sides: list[Side] = []

    def add(role: int, filters: tuple[Filter, ...]) -> None:
        for part in filters:
            for predicate, places in to_predicates(part.source, part.formula):
                sides.append(Side(role, predicate, len(slots)))
                slots.extend(places)

    for role, joins in enumerate(primaries):
        add(role, tuple(part for part in shape.filters if part.joins == joins))
    for i, join in enumerate(shape.joins):
        add(len(primaries) + i, join.filters)
    first = len(slots)
    windows = []
    for join in shape.joins:
        conditions = []
        for one in join.conditions:
            share = -1
            if one.threshold is not None:
                share = len(slots) - first
                slots.append(one.threshold.index)
            conditions.append(AnnotationCondition(one.left, one.op, one.right, share))
        windows.append(AnnotationWindow(join.window.seconds, join.window.items, tuple(conditions)))
    template = AnnotationTemplate(tuple(sides), tuple(windows), primaries, len(slots) - first)
    return AnnotationNormal(template, tuple(slots))


def share_of(condition: AnnotationCondition, shares: list[float]) -> float:
    return SIMILAR if condition.share < 0 else shares[condition.share]
