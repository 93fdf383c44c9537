"""An annotation table: the queries of one template that annotate items with those of windows.

In: query numbers, annotation templates, constants. Out: a table for each template, and rows for the filters of the
sources (select/filters.py). Each feed of each query is a filter among all those of its source, its member the *side*:
query number and role in one number. So one filter plan a source tells which queries' windows an item enters, which
queries' items it is and which queries select it, whatever they compare. Windows over the same items are one side, that
of the first query that has it, whatever they are joined with and however long.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
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
from fishweir.evaluate.group import QueryRow
from fishweir.evaluate.join.query_tables import QueryTable, read_columns
from fishweir.evaluate.matches import to_members
from fishweir.evaluate.witnesses.path_tables import Path


@dataclass(frozen=True)
class AnnotationTable(QueryTable):
    """The columns are the sides of the windows, one after the other, then what each `similar` asks for."""

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
        """The sides of the queries' windows of one join."""
        return np.asarray(self.columns[window], np.int64)

    def shares(self, condition: AnnotationCondition) -> NDArray[np.float64]:
        """What a condition asks for, query by query."""
        if condition.share < 0:
            return np.full(self.size, SIMILAR)
        return np.asarray(self.columns[len(self.template.windows) + condition.share], np.float64)

    def items(self, role: int) -> Ints:
        """The sides of the items to annotate under a role."""
        return self.numbers * ROLES + role

    @property
    def matched_sides(self) -> Ints:
        windows = [self.windows(i) for i in range(len(self.template.windows))]
        items = [self.items(role) for role in range(len(self.template.primaries))]
        return np.unique(np.concatenate([*windows, *items]))

    def waiting(self) -> Iterator[tuple[Source, Source, bool, NDArray[np.float64]]]:
        """Items of windows wait for those to annotate, and these for nothing. How many a window of items holds is for
        the lists of its rows to say: without end in time."""
        for i, window in enumerate(self.template.windows):
            reaches = np.full(self.size, np.inf if window.seconds is None else window.seconds)
            for source in self.template.sources(self.template.role(i)):
                yield from ((source, other, False, reaches) for other in self.template.annotated_by(i))

    def header(self) -> Any:
        return [to_json(self.template)]

    def paths(self, sources: Sequence[Source]) -> dict[Path, bool]:
        """The paths that are compared; the filters of the sides have theirs."""
        return dict.fromkeys(value_paths(self.template, sources), True)


def value_paths(template: AnnotationTemplate, sources: Sequence[Source]) -> Iterator[Path]:
    """The paths that are compared, of items of some sources."""
    for i, window in enumerate(template.windows):
        roles = [role for role, joins in enumerate(template.primaries) if i in joins]
        if any(source in sources for role in roles for source in template.sources(role)):
            yield from ((ANY_ROOT, *condition.left) for condition in window.conditions)
        if any(source in sources for source in template.sources(template.role(i))):
            yield from ((ANY_ROOT, *condition.right) for condition in window.conditions)


def build_annotations(queries: Iterable[QueryRow]) -> list[AnnotationTable]:
    """A table for each template."""
    grouped: dict[AnnotationTemplate, list[tuple[int, list[Any]]]] = defaultdict(list)
    for (number, template, constants), sides in _with_windows(queries):
        grouped[template].append((number, [*sides, *constants[template.first_share :]]))
    return [_table(template, rows) for template, rows in grouped.items()]


def _table(template: AnnotationTemplate, rows: list[tuple[int, list[Any]]]) -> AnnotationTable:
    rows.sort(key=itemgetter(0))
    kinds = [np.int64] * len(template.windows) + [np.float64] * template.shares
    columns = zip(kinds, zip(*(own for _, own in rows), strict=True), strict=True)
    numbers = np.array([number for number, _ in rows], np.int64)
    return AnnotationTable(template, numbers, tuple(np.array(values, kind) for kind, values in columns))


def side_rows(queries: Iterable[QueryRow]) -> Iterator[QueryRow]:
    """The filters of the sides: of items to annotate, and of windows that no query before has."""
    for (number, template, constants), windows in _with_windows(queries):
        primaries = (number * ROLES + role for role in range(len(template.primaries)))
        for side in (*primaries, *dict.fromkeys(window for window in windows if window // ROLES == number)):
            for read in template.of_role(side % ROLES):
                yield to_members(side), read.predicate, read.own(constants)


def _with_windows(queries: Iterable[QueryRow]) -> Iterator[tuple[QueryRow, list[int]]]:
    """Queries with the sides of their windows."""
    inputs = _Inputs()
    for number, template, constants in queries:
        yield (number, template, constants), inputs.first(number, template, constants)


class _Inputs:
    """What windows are over, and the side that had it first."""

    def __init__(self) -> None:
        self.predicates: dict[tuple[Predicate, ...], int] = {}
        self.known: dict[AnnotationTemplate, list[int]] = {}
        self.sides: dict[tuple[int, tuple[Constant, ...]], int] = {}

    def first(self, number: int, template: AnnotationTemplate, constants: Sequence[Constant]) -> list[int]:
        """For each window of a query, the side that had its items first."""
        found = []
        for i, read in enumerate(self._read(template)):
            role = template.role(i)
            own = tuple(constant for side in template.of_role(role) for constant in side.own(constants))
            found.append(self.sides.setdefault((read, own), number * ROLES + role))
        return found

    def _read(self, template: AnnotationTemplate) -> list[int]:
        known = self.known.get(template)
        if known is None:
            roles = map(template.role, range(len(template.windows)))
            predicates = (tuple(side.predicate for side in template.of_role(role)) for role in roles)
            known = [self.predicates.setdefault(one, len(self.predicates)) for one in predicates]
            self.known[template] = known
        return known


def annotations_from_arrays(template: AnnotationTemplate, arrays: Mapping[str, Any]) -> AnnotationTable:
    return AnnotationTable(template, *read_columns(arrays))
