"""Topmost elements: the units that a decision treats individually (utility-driven shedding, section 1).

Usually the unit is a document. If documents are lists of many elements that the queries of a stream iterate over, the
unit is such an element: the job switches between sets of patterns within a document, at the start of each element.

In: the parts that the queries of a stream can do without. Out: the path of the elements, as names, if all queries share
one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from fishweir.algebra.alternatives import output_places
from fishweir.algebra.nodes import Shape
from fishweir.records import dataclass
from fishweir.shedding.patterns import AbsolutePath, is_alone, places_of, to_tree
from fishweir.shedding.suspension import Parts


@dataclass(frozen=True, slots=True)
class Unit:
    """The path of the topmost elements; `is_all` says whether queries read nothing else in a document."""

    path: AbsolutePath
    is_all: bool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(step.name for step in self.path)


def unit_of(parts: Parts) -> Unit | None:
    """The elements that all queries with losses iterate over; None if they differ, or are the documents."""
    losers = {place for part in parts.parts for place, _ in part.losers} or set(range(len(parts.groups)))
    path = _common(parts.groups[place].shape for place in losers)
    if path is None or len(path) < 2:
        return None
    return Unit(path, _common(group.shape for group in parts.groups) == path)


@lru_cache(maxsize=10_000)
def context_place(shape: Any) -> int | None:
    """The position of the element that a query iterates over among a result's nodes; None if it is not among them."""
    if not isinstance(shape, Shape) or not is_alone(shape) or shape.alternatives:
        return None
    root, places = to_tree(shape).root, output_places(shape)
    return next((places[name] for name, path in places_of(shape).items() if path == root and name in places), None)


def _common(shapes: Iterable[Any]) -> AbsolutePath | None:
    found = {to_tree(shape).root if context_place(shape) is not None else None for shape in shapes}
    path = found.pop() if len(found) == 1 else None
    return path if path is not None and all(_is_plain(step) for step in path) else None


def _is_plain(step: Any) -> bool:
    return step.axis == "child" and step.name != "*" and step.namespace is None and not step.position
