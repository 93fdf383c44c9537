"""Queries that differ only in their names, texts and constants, kept in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from fishweir.algebra.nodes import Constant, CreateQuery
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """`like` is the first of them; `lines` are their positions in a script, if any."""

    like: CreateQuery
    names: Sequence[str | None]
    texts: Sequence[str]
    constants: Sequence[tuple[Constant, ...]]
    lines: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.texts)

    def one(self, place: int) -> CreateQuery:
        line = self.lines[place] if self.lines else self.like.line
        name, text, constants = self.names[place], self.texts[place], self.constants[place]
        return replace(self.like, name=name, text=text, constants=constants, line=line)

    def at(self, places: Sequence[int]) -> Alike:
        """Some of them."""
        names, texts = [self.names[i] for i in places], [self.texts[i] for i in places]
        lines = [self.lines[i] for i in places] if self.lines else ()
        return Alike(self.like, names, texts, [self.constants[i] for i in places], lines)


def alike(statements: Sequence[CreateQuery]) -> Alike:
    """Statements that are known to be so."""
    return Alike(
        statements[0],
        [one.name for one in statements],
        [one.text for one in statements],
        [one.constants for one in statements],
        [one.line for one in statements],
    )


def runs(statements: Iterator[CreateQuery], most: int) -> Iterator[Alike]:
    """Statements in their order, neighbours that are alike together: those of one shape come with the same object."""
    while some := list(islice(statements, most)):
        start = 0
        for end in range(1, len(some) + 1):
            if end == len(some) or not _are_alike(some[start], some[end]):
                yield alike(some[start:end])
                start = end


def _are_alike(one: CreateQuery, other: CreateQuery) -> bool:
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
