"""Matches: what the queries of a group select from a batch of documents, and which sides the documents are of.

A *side* is documents that a query of another kind asks for: an annotation join has a side for the items to
annotate and one for each window, and both are matched among the filters of their source. A group's members are query
numbers and sides; a side is a negative member, so that neither is taken for the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints

Numbers = TypeVar("Numbers", int, Ints)


@dataclass(frozen=True)
class SideMatches:
    """Pairs of a document's place in the batch and a side that it is of."""

    documents: Ints
    sides: Ints

    def __len__(self) -> int:
        return len(self.sides)


NO_SIDES = SideMatches(np.empty(0, np.int64), np.empty(0, np.int64))


def all_sides(parts: Iterable[SideMatches]) -> SideMatches:
    some = [part for part in parts if len(part)]
    if len(some) < 2:
        return some[0] if some else NO_SIDES
    return SideMatches(*(np.concatenate([getattr(part, name) for part in some]) for name in ("documents", "sides")))


@dataclass(frozen=True)
class QuerySet:
    """Queries that rows name instead of listing them; the name is the same for the same queries."""

    name: str
    members: Ints

    @classmethod
    def of(cls, members: Ints) -> QuerySet:
        return cls(blake2b(np.ascontiguousarray(members).tobytes(), digest_size=12).hexdigest(), members)


@dataclass(frozen=True)
class Matches:
    """Row i: document, output nodes, and its queries: slices or members between the offsets, or one of the `sets`."""

    documents: Ints
    nodes: Ints
    slice_offsets: Ints
    slices: Ints
    member_offsets: Ints
    members: NDArray[np.integer[Any]]
    sides: SideMatches = NO_SIDES
    """Of all documents of the batch, also of those that are in no row."""
    sets: tuple[QuerySet, ...] = ()
    set_of: Ints | None = None

    def __len__(self) -> int:
        return len(self.documents)

    def listed(self) -> Matches:
        """The same with lists of queries in place of sets."""
        if self.set_of is None:
            return self
        members = [self.sets[number].members for number in self.set_of.tolist()]
        offsets = np.append(0, np.cumsum([len(some) for some in members])).astype(np.int64)
        listed = np.concatenate([np.empty(0, np.int64), *members])
        return replace(self, member_offsets=offsets, members=listed, sets=(), set_of=None)


def to_members(sides: Numbers) -> Numbers:
    """A side, or many, as members of a group."""
    return ~sides


def to_sides(members: Ints) -> Ints:
    """The inverse of `to_members`, of members that are sides."""
    return ~members
