"""Feeds as sides of joins: each is one of the filters of its source, whose member is a *side*.

In: the rows of joins of feeds. Out: the rows of the feeds for the filters of their sources (select/filters.py), and
rows of the joins in which sides take the place of the feeds' constants. A side is a query number and a role in one
number. One filter plan per source therefore decides which queries' windows an item enters, which queries annotate it
and which queries select it, regardless of their comparisons. Windows over the same items share one side, that of the
first query with this window, regardless of their join partners and lengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fishweir.algebra.annotations import ROLES
from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.nodes import Constant
from fishweir.algebra.predicates import Predicate
from fishweir.evaluate.matches import to_members
from fishweir.evaluate.query_rows import QueryRow


def with_sides(queries: Iterable[QueryRow]) -> Iterator[QueryRow]:
    """Rows whose constants are those that the join compares itself, and after them the sides of the windows."""
    for number, inputs, constants, windows in _read(queries):
        yield number, inputs.template, [*constants[inputs.matched :], *windows]


def side_rows(queries: Iterable[QueryRow]) -> Iterator[QueryRow]:
    """The filters of the sides: of items to annotate, and of windows that no earlier query has."""
    for number, inputs, constants, windows in _read(queries):
        own = dict.fromkeys(window - number * ROLES for window in windows if window // ROLES == number)
        for role in (*inputs.items, *own):
            for predicate, span in inputs.by_role[role]:
                yield to_members(number * ROLES + role), predicate, constants[span]


def _read(queries: Iterable[QueryRow]) -> Iterator[tuple[int, _Inputs, Sequence[Constant], list[int]]]:
    """Yields queries with their inputs: the inputs of the template, the constants, and the sides of the windows. The
    side of a window is that of the first query with a window over the same items."""
    known: dict[int, _Inputs] = {}
    firsts: dict[tuple[Any, ...], int] = {}
    numbers: dict[tuple[Predicate, ...], int] = {}
    for number, template, constants in queries:
        inputs = known.get(id(template))
        if inputs is None:
            inputs = known[id(template)] = _Inputs(template, numbers)
        windows = [
            firsts.setdefault((read, *(tuple(constants[span]) for span in spans)), number * ROLES + role)
            for role, read, spans in inputs.windows
        ]
        yield number, inputs, constants, windows


class _Inputs:
    """The feeds of a template, computed once. For each role: the predicates, each with the positions of its constants.
    For each window: the role, the number of its input and the positions of all its constants."""

    def __init__(self, template: JoinTemplate, numbers: dict[tuple[Predicate, ...], int]) -> None:
        self.template, self.matched = template, template.matched
        items, *windows = _spans(template)
        roles: dict[tuple[int, ...], list[tuple[Predicate, slice]]] = {}
        for one, meets in zip(items, template.sides[0].meets, strict=True):
            roles.setdefault(meets, []).append(one)
        self.by_role, self.items = [*roles.values(), *windows], range(len(roles))
        self.windows = [
            (role, numbers.setdefault(tuple(p for p, _ in read), len(numbers)), [span for _, span in read])
            for role, read in enumerate(windows, len(roles))
        ]


def _spans(template: JoinTemplate) -> Iterator[list[tuple[Predicate, slice]]]:
    """The filters of each feed, each with the positions of its constants."""
    first = 0
    for side in template.sides:
        found = []
        for predicate in side.filters:
            found.append((predicate, slice(first, first + len(predicate.types))))
            first += len(predicate.types)
        yield found
