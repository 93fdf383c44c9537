"""Queries that differ only in their names, texts, constants and the arguments of their actions, stored as columns; and
such queries among others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from fishweir.algebra.action_columns import ActionColumns, to_columns
from fishweir.algebra.nodes import Action, Constant, CreateQuery
from fishweir.records import dataclass

Value = TypeVar("Value")
AnyQueries = TypeVar("AnyQueries", bound="UniformQueries | MixedQueries")


@dataclass(frozen=True, slots=True, eq=False)
class UniformQueries:
    """`first` is the first of the queries; `lines` are their positions in a script, if any; `actions` are their first
    action, their second action, ... as columns, if those of the first query are not the actions of all."""

    first: CreateQuery
    names: Sequence[str | None]
    texts: Sequence[str]
    constants: Sequence[tuple[Constant, ...]]
    lines: Sequence[int] = ()
    actions: Sequence[ActionColumns] = ()

    def __len__(self) -> int:
        return len(self.texts)

    def one(self, place: int) -> CreateQuery:
        line = self.lines[place] if self.lines else self.first.line
        name, text, constants = self.names[place], self.texts[place], self.constants[place]
        return replace(self.first, name=name, text=text, constants=constants, line=line, actions=self.actions_of(place))

    def actions_of(self, place: int) -> tuple[Action, ...]:
        return tuple([column.one(place) for column in self.actions]) if self.actions else self.first.actions

    @property
    def parts(self) -> Sequence[UniformQueries]:
        return (self,)

    @property
    def places(self) -> Sequence[int]:
        return range(len(self))

    def in_order(self) -> Sequence[UniformQueries]:
        return (self,)

    def unnamed_texts(self) -> Sequence[str]:
        return () if self.first.name else self.texts

    def at(self, places: Sequence[int]) -> UniformQueries:
        """The queries at these positions."""
        names, texts = [self.names[i] for i in places], [self.texts[i] for i in places]
        lines = [self.lines[i] for i in places] if self.lines else ()
        actions = [column.at(places) for column in self.actions]
        return UniformQueries(self.first, names, texts, [self.constants[i] for i in places], lines, actions)


@dataclass(frozen=True, slots=True, eq=False)
class MixedQueries:
    """Queries of several shapes that alternate. `places` are the positions of the queries of all parts, one part after
    the other, in the order in which they were written.
    """

    parts: Sequence[UniformQueries]
    places: Sequence[int]

    def __len__(self) -> int:
        return len(self.places)

    @property
    def names(self) -> Sequence[str | None]:
        return self._in_order([name for part in self.parts for name in part.names])

    def in_order(self) -> Sequence[UniformQueries]:
        """The queries one by one. Like `at`, each keeps the first query of its part."""
        return self._in_order([part.at([place]) for part in self.parts for place in range(len(part))])

    def statements(self) -> Sequence[CreateQuery]:
        return self._in_order([part.one(place) for part in self.parts for place in range(len(part))])

    def unnamed_texts(self) -> Sequence[str]:
        """The texts of the queries without a name."""
        texts = [None if part.first.name else text for part in self.parts for text in part.texts]
        return [text for text in self._in_order(texts) if text is not None]

    def _in_order(self, values: Sequence[Value]) -> list[Value]:
        ordered = list(values)
        for place, value in zip(self.places, values, strict=True):
            ordered[place] = value
        return ordered


def uniform(statements: Sequence[CreateQuery]) -> UniformQueries:
    """Statements that are known to be uniform, as columns."""
    first = statements[0]
    are_same = all(one.actions == first.actions for one in statements)
    numbers = () if are_same else range(len(first.actions))
    return UniformQueries(
        first,
        [one.name for one in statements],
        [one.text for one in statements],
        [one.constants for one in statements],
        [one.line for one in statements],
        [to_columns([one.actions[number] for one in statements]) for number in numbers],
    )


def group_uniform(given: Iterable[CreateQuery | AnyQueries], most: int) -> Iterator[UniformQueries | AnyQueries]:
    """Groups consecutive uniform statements, in order; keeps groups. Statements of one shape have the same shape
    object.
    """
    statements = iter(given)
    while some := list(islice(statements, most)):
        group: list[CreateQuery] = []
        for one in some:
            if group and (isinstance(one, (UniformQueries, MixedQueries)) or not _are_uniform(group[0], one)):
                yield uniform(group)
                group = []
            if isinstance(one, (UniformQueries, MixedQueries)):
                yield one
            else:
                group.append(one)
        if group:
            yield uniform(group)


def _are_uniform(one: CreateQuery, other: CreateQuery) -> bool:
    return (
        one.shape is other.shape
        and one.feed is other.feed
        and [action.name for action in one.actions] == [action.name for action in other.actions]
        and one.schedule == other.schedule
        and one.preference == other.preference
        and one.published == other.published
        and one.derived == other.derived
        and (one.name is None) == (other.name is None)
    )
