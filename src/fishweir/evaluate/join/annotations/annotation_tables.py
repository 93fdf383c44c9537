"""An annotation table: the queries of a segment that annotate items with those of a window.

In: query numbers, annotation templates, constants. Out: one table, and rows for the filters of the sources
(select/filters.py). Each feed of each query is a filter among all those of its source, its member the *side*: query
number and role in one number. So one filter plan a source tells which queries' windows an item enters, which queries'
items it is and which queries select it, whatever they compare. Windows over the same items are one side, that of the
first query that has it, whatever they are joined with and however long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.annotations import ROLES, AnnotationCondition, AnnotationTemplate
from fishweir.algebra.codec import from_json, to_json
from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.normal import ANY_ROOT
from fishweir.algebra.predicates import Predicate
from fishweir.algebra.texts import SIMILAR
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.group import QueryRow
from fishweir.evaluate.join.join_tables import Numbered
from fishweir.evaluate.matches import to_members
from fishweir.evaluate.witnesses.path_tables import Path

AnnotationRow = tuple[int, AnnotationTemplate, Sequence[Constant]]


@dataclass(frozen=True)
class AnnotationTable(Numbered):
    """`numbers` has one query per row, `shapes` its template's place, `windows` the sides of its windows, `shares` what
    its `similar` ask for."""

    kind: ClassVar[str] = "annotations"

    templates: tuple[AnnotationTemplate, ...]
    numbers: Ints
    shapes: Ints
    window_starts: Ints
    windows: Ints
    share_starts: Ints
    shares: NDArray[np.float64]

    def of_template(self, shape: int) -> Ints:
        """The rows of a template's queries."""
        return np.flatnonzero(self.shapes == shape)

    def windows_of(self, rows: Ints, window: int) -> Ints:
        """The sides of some queries' windows of one join."""
        return self.windows[self.window_starts[rows] + window]

    def shares_of(self, rows: Ints, condition: AnnotationCondition) -> NDArray[np.float64]:
        """What a condition asks for, query by query."""
        if condition.share < 0:
            return np.full(len(rows), SIMILAR)
        return self.shares[self.share_starts[rows] + condition.share]

    @property
    def sides(self) -> Ints:
        """What is matched for its queries: the items to annotate and the windows."""
        found = [self.windows]
        for shape, template in enumerate(self.templates):
            numbers = self.numbers[self.of_template(shape)]
            found.append((numbers[:, None] * ROLES + np.arange(len(template.primaries))).ravel())
        return np.unique(np.concatenate(found))

    def header(self) -> Any:
        return [to_json(template) for template in self.templates]

    def arrays(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _ARRAYS}

    def paths(self, sources: Sequence[Source]) -> dict[Path, bool]:
        """The paths that are compared; the filters of the sides have theirs."""
        return {path: True for template in self.templates for path in value_paths(template, sources)}


def value_paths(template: AnnotationTemplate, sources: Sequence[Source]) -> Iterator[Path]:
    """The paths that are compared, of items of some sources."""
    for i, window in enumerate(template.windows):
        roles = [role for role, joins in enumerate(template.primaries) if i in joins]
        if any(source in sources for role in roles for source in template.sources(role)):
            yield from ((ANY_ROOT, *condition.left) for condition in window.conditions)
        if any(source in sources for source in template.sources(template.role(i))):
            yield from ((ANY_ROOT, *condition.right) for condition in window.conditions)


def build_annotations(queries: Iterable[AnnotationRow]) -> AnnotationTable:
    templates: dict[AnnotationTemplate, int] = {}
    numbers, shapes = [], []
    windows: list[list[int]] = []
    shares: list[list[float]] = []
    for (number, template, constants), sides in _with_windows(queries):
        numbers.append(number)
        shapes.append(templates.setdefault(template, len(templates)))
        windows.append(sides)
        shares.append([float(share) for share in constants[template.first_share :]])
    return AnnotationTable(
        tuple(templates),
        np.array(numbers, np.int64),
        np.array(shapes, np.int64),
        *_lists(windows, np.int64),
        *_lists(shares, np.float64),
    )


def side_rows(queries: Iterable[AnnotationRow]) -> Iterator[QueryRow]:
    """The filters of the sides: of items to annotate, and of windows that no query before has."""
    for (number, template, constants), windows in _with_windows(queries):
        primaries = (number * ROLES + role for role in range(len(template.primaries)))
        for side in (*primaries, *dict.fromkeys(window for window in windows if window // ROLES == number)):
            for read in template.of_role(side % ROLES):
                yield to_members(side), read.predicate, read.own(constants)


def _with_windows(queries: Iterable[AnnotationRow]) -> Iterator[tuple[AnnotationRow, list[int]]]:
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


def _lists(parts: Sequence[Sequence[Any]], kind: Any) -> tuple[Ints, Any]:
    """Lists one after the other: where each begins, and all of them."""
    starts = np.append(0, np.cumsum([len(part) for part in parts])).astype(np.int64)
    return starts, np.array([one for part in parts for one in part], kind)


def merge_annotations(tables: Sequence[AnnotationTable], dead: Ints) -> AnnotationTable | None:
    """One table of several, without the dead queries; a window stays the side of the query that had it first."""
    templates: dict[AnnotationTemplate, int] = {}
    parts: list[tuple[Any, ...]] = []
    for table in tables:
        keep = np.flatnonzero(~np.isin(table.numbers, dead))
        place = np.array([templates.setdefault(t, len(templates)) for t in table.templates], np.int64)
        lists = (table.window_starts, table.windows), (table.share_starts, table.shares)
        own = [array for starts, values in lists for array in _taken(starts, values, keep)]
        parts.append((table.numbers[keep], place[table.shapes[keep]], *own))
    numbers, shapes, held, windows, lengths, shares = (np.concatenate([part[i] for part in parts]) for i in range(6))
    if not len(numbers):
        return None
    used, shapes = np.unique(shapes, return_inverse=True)
    every = list(templates)
    return AnnotationTable(
        tuple(every[i] for i in used.tolist()),
        numbers.astype(np.int64),
        shapes.astype(np.int64),
        np.append(0, np.cumsum(held)).astype(np.int64),
        windows.astype(np.int64),
        np.append(0, np.cumsum(lengths)).astype(np.int64),
        shares.astype(np.float64),
    )


def _taken(starts: Ints, values: Any, rows: Ints) -> tuple[Ints, Any]:
    """The lists of some rows: how long each is, and all of them."""
    _, at = expand(starts[rows], starts[rows + 1])
    return np.diff(starts)[rows], values[at]


# In and out of a segment file.

_ARRAYS = ("numbers", "shapes", "window_starts", "windows", "share_starts", "shares")


def annotations_from_arrays(header: Sequence[Any], arrays: Mapping[str, Any]) -> AnnotationTable:
    return AnnotationTable(tuple(map(from_json, header)), **{name: np.asarray(arrays[name]) for name in _ARRAYS})
