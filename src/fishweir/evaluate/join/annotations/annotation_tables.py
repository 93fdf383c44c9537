"""Annotation tables: the queries of one template that annotate items with items of windows.

In: query numbers, annotation templates, constants. Out: a table for each template, and rows for the filters of the
sources (select/filters.py). Each feed of each query is one of the filters of its source. The member of this filter is
the *side*: query number and role in one number. One filter plan per source therefore decides which queries' windows an
item enters, which queries annotate it and which queries select it, regardless of their comparisons. Windows over the
same items share one side, that of the first query with this window, regardless of their join partners and lengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.annotations import ROLES, AnnotationCondition, AnnotationTemplate
from fishweir.algebra.codec import to_json
from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.normal import ANY_ROOT
from fishweir.algebra.predicates import Predicate
from fishweir.algebra.texts import SIMILAR
from fishweir.evaluate.arrays import Column, Ints
from fishweir.evaluate.join.query_tables import QueryTable, read_columns
from fishweir.evaluate.matches import to_members
from fishweir.evaluate.query_rows import QueryRow, by_template
from fishweir.evaluate.witnesses.path_tables import Path


@dataclass(frozen=True)
class AnnotationTable(QueryTable):
    """The columns hold the sides of the windows, in order, then the threshold of each `similar`."""

    template: AnnotationTemplate
    numbers: Ints
    columns: tuple[Column, ...]

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(dict.fromkeys(side.predicate.source for side in self.template.sides))

    @property
    def merge_key(self) -> AnnotationTemplate:
        return self.template

    def windows(self, window: int) -> Ints:
        """The sides of the queries' windows in one join."""
        return np.asarray(self.columns[window], np.int64)

    def shares(self, condition: AnnotationCondition) -> NDArray[np.float64]:
        """The threshold of a condition for each query."""
        if condition.share < 0:
            return np.full(self.size, SIMILAR)
        return np.asarray(self.columns[len(self.template.windows) + condition.share], np.float64)

    def items(self, role: int) -> Ints:
        """The sides of the items to annotate for a role."""
        return self.numbers * ROLES + role

    @property
    def matched_sides(self) -> Ints:
        windows = [self.windows(i) for i in range(len(self.template.windows))]
        items = [self.items(role) for role in range(len(self.template.primaries))]
        return np.unique(np.concatenate([*windows, *items]))

    def waiting(self) -> Iterator[tuple[Source, Source, bool, NDArray[np.float64]]]:
        """Items of windows wait for items to annotate, which wait for nothing. A window that counts items has no time
        limit: the lists of its rows determine how many items it holds."""
        for i, window in enumerate(self.template.windows):
            reaches = np.full(self.size, np.inf if window.seconds is None else window.seconds)
            for source in self.template.sources(self.template.role(i)):
                yield from ((source, other, False, reaches) for other in self.template.annotated_by(i))

    def header(self) -> Any:
        return [to_json(self.template)]

    def paths(self, sources: Sequence[Source]) -> dict[Path, bool]:
        """The paths that are compared. The filters of the sides add their own paths."""
        return dict.fromkeys(value_paths(self.template, sources), True)


def value_paths(template: AnnotationTemplate, sources: Sequence[Source]) -> Iterator[Path]:
    """The paths that are compared in items of some sources."""
    for i, window in enumerate(template.windows):
        roles = [role for role, joins in enumerate(template.primaries) if i in joins]
        if any(source in sources for role in roles for source in template.sources(role)):
            yield from ((ANY_ROOT, *condition.left) for condition in window.conditions)
        if any(source in sources for source in template.sources(template.role(i))):
            yield from ((ANY_ROOT, *condition.right) for condition in window.conditions)


def build_annotations(queries: Iterable[QueryRow]) -> list[AnnotationTable]:
    """Builds a table for each template."""
    rows = ((number, inputs.template, [*sides, *inputs.shares(own)]) for number, inputs, own, sides in _read(queries))
    return [_table(template, *columns) for template, columns in by_template(rows).items()]


def _table(template: AnnotationTemplate, numbers: Sequence[int], rows: Sequence[Sequence[Any]]) -> AnnotationTable:
    order = np.argsort(np.array(numbers, np.int64), kind="stable")
    kinds = [np.int64] * len(template.windows) + [np.float64] * template.shares
    columns = zip(zip(*rows, strict=True), kinds, strict=True)
    own = tuple(np.array(values, kind)[order] for values, kind in columns)
    return AnnotationTable(template, np.array(numbers, np.int64)[order], own)


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
    """The inputs of a template, computed once. For each role: the predicates, each with the positions of its constants.
    For each window: the role, the number of its input and the positions of all its constants."""

    def __init__(self, template: AnnotationTemplate, numbers: dict[tuple[Predicate, ...], int]) -> None:
        self.template, self.items = template, range(len(template.primaries))
        roles = [*self.items, *map(template.role, range(len(template.windows)))]
        self.by_role = [[(side.predicate, side.span) for side in template.of_role(role)] for role in roles]
        self.first_share = template.first_share
        self.windows = [
            (role, numbers.setdefault(tuple(p for p, _ in read), len(numbers)), [span for _, span in read])
            for role in roles[len(self.items) :]
            for read in [self.by_role[role]]
        ]

    def shares(self, constants: Sequence[Constant]) -> Sequence[Constant]:
        return constants[self.first_share :]


def annotations_from_arrays(template: AnnotationTemplate, arrays: Mapping[str, Any]) -> AnnotationTable:
    return AnnotationTable(template, *read_columns(arrays))
