"""Matches: the documents of a batch that a group's queries select, and the sides that the documents belong to.

A *side* is a set of documents requested by a query of another kind. An annotation join has one side for the items to
annotate and one for each window. Both are matched among the filters of their source. The members of a group are query
numbers and sides. Sides are stored as negative members, so the two cannot be confused.
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
    """Pairs of a document's position in the batch and a side that the document belongs to."""

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
    """A set of queries that rows refer to by name instead of listing them. Equal sets have equal names."""

    name: str
    members: Ints

    @classmethod
    def of(cls, members: Ints) -> QuerySet:
        return cls(blake2b(np.ascontiguousarray(members).tobytes(), digest_size=12).hexdigest(), members)


@dataclass(frozen=True)
class Matches:
    """Row i has a document, its output nodes and its queries. The queries are slices or members between the offsets, or
    one of the `sets`."""

    documents: Ints
    nodes: Ints
    slice_offsets: Ints
    slices: Ints
    member_offsets: Ints
    members: NDArray[np.integer[Any]]
    sides: SideMatches = NO_SIDES
    """Sides of all documents of the batch, including those in no row."""
    sets: tuple[QuerySet, ...] = ()
    set_of: Ints | None = None

    def __len__(self) -> int:
        return len(self.documents)

    def listed(self) -> Matches:
        """The same matches with query lists instead of sets."""
        if self.set_of is None:
            return self
        members = [self.sets[number].members for number in self.set_of.tolist()]
        offsets = np.append(0, np.cumsum([len(some) for some in members])).astype(np.int64)
        listed = np.concatenate([np.empty(0, np.int64), *members])
        return replace(self, member_offsets=offsets, members=listed, sets=(), set_of=None)


def to_members(sides: Numbers) -> Numbers:
    """Sides encoded as members of a group."""
    return ~sides


def to_sides(members: Ints) -> Ints:
    """The inverse of `to_members`, for members that are sides."""
    return ~members
