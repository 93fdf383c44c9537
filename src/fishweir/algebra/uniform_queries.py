"""Queries that differ only in their names, texts and constants, stored as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from fishweir.algebra.nodes import Constant, CreateQuery
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class UniformQueries:
    """`first` is the first of the queries; `lines` are their positions in a script, if any."""

    first: CreateQuery
    names: Sequence[str | None]
    texts: Sequence[str]
    constants: Sequence[tuple[Constant, ...]]
    lines: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.texts)

    def one(self, place: int) -> CreateQuery:
        line = self.lines[place] if self.lines else self.first.line
        name, text, constants = self.names[place], self.texts[place], self.constants[place]
        return replace(self.first, name=name, text=text, constants=constants, line=line)

    def at(self, places: Sequence[int]) -> UniformQueries:
        """The queries at these positions."""
        names, texts = [self.names[i] for i in places], [self.texts[i] for i in places]
        lines = [self.lines[i] for i in places] if self.lines else ()
        return UniformQueries(self.first, names, texts, [self.constants[i] for i in places], lines)


def uniform(statements: Sequence[CreateQuery]) -> UniformQueries:
    """Statements that are known to be uniform, as columns."""
    return UniformQueries(
        statements[0],
        [one.name for one in statements],
        [one.text for one in statements],
        [one.constants for one in statements],
        [one.line for one in statements],
    )


def group_uniform(given: Iterable[CreateQuery | UniformQueries], most: int) -> Iterator[UniformQueries]:
    """Groups consecutive uniform statements, in order; keeps groups. Statements of one shape have the same shape
    object.
    """
    statements = iter(given)
    while some := list(islice(statements, most)):
        group: list[CreateQuery] = []
        for one in some:
            if group and (isinstance(one, UniformQueries) or not _are_uniform(group[0], one)):
                yield uniform(group)
                group = []
            if isinstance(one, UniformQueries):
                yield one
            else:
                group.append(one)
        if group:
            yield uniform(group)


def _are_uniform(one: CreateQuery, other: CreateQuery) -> bool:
    return (
        one.shape is other.shape
        and one.feed is other.feed
        and one.actions == other.actions
        and one.schedule == other.schedule
        and one.preference == other.preference
        and one.published == other.published
        and one.derived == other.derived
        and (one.name is None) == (other.name is None)
    )
