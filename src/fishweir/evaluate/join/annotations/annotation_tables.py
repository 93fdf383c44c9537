"""An annotation table: the queries of a segment that annotate items with those of a window.

In: query numbers, annotation templates, constants. Out: one table. Each feed of each query is a filter among the
filters of its source (filters.py), its member the *side*: query number and role in one number. So one filter plan a
source tells which queries' windows an item enters and which queries' items it is, whatever they compare. Windows over
the same items are one side, that of the first query that has it, whatever they are joined with and however long.
"""

from __future__ import annotations

from collections import defaultdict
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
from fishweir.evaluate.join.join_tables import Numbered
from fishweir.evaluate.select.filter_plan import build_filters, merge_filters
from fishweir.evaluate.select.filters import FilterTable, filters_from_arrays
from fishweir.evaluate.statistics import Statistics
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
    filters: tuple[FilterTable, ...]

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

    def header(self) -> Any:
        return [[to_json(t) for t in self.templates], [plan.header() for plan in self.filters]]

    def arrays(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in _ARRAYS}
        plans = {f"{i}/{key}": array for i, plan in enumerate(self.filters) for key, array in plan.arrays().items()}
        return own | plans

    def paths(self, sources: Sequence[Source]) -> dict[Path, bool]:
        """The paths that some sources' items are walked for, and whether their values are read."""
        found: dict[Path, bool] = {}
        read = [table.paths(sources) for table in self.filters]
        read += [{path: True} for template in self.templates for path in value_paths(template, sources)]
        for path, valued in (item for some in read for item in some.items()):
            found[path] = found.get(path, False) or valued
        return found


def value_paths(template: AnnotationTemplate, sources: Sequence[Source]) -> Iterator[Path]:
    """The paths that are compared, of items of some sources."""
    for i, window in enumerate(template.windows):
        roles = [role for role, joins in enumerate(template.primaries) if i in joins]
        if any(source in sources for role in roles for source in template.sources(role)):
            yield from ((ANY_ROOT, *condition.left) for condition in window.conditions)
        if any(source in sources for source in template.sources(template.role(i))):
            yield from ((ANY_ROOT, *condition.right) for condition in window.conditions)


def build_annotations(queries: Iterable[AnnotationRow], statistics: Statistics) -> AnnotationTable:
    templates: dict[AnnotationTemplate, int] = {}
    numbers, shapes = [], []
    windows: list[list[int]] = []
    shares: list[list[float]] = []
    sides: dict[Source, list[tuple[int, Predicate, Sequence[Constant]]]] = defaultdict(list)
    inputs = _Inputs()
    for number, template, constants in queries:
        numbers.append(number)
        shapes.append(templates.setdefault(template, len(templates)))
        shares.append([float(share) for share in constants[template.first_share :]])
        windows.append([])
        for role in range(template.role(len(template.windows))):
            own = number * ROLES + role
            if role >= len(template.primaries):
                first = inputs.first(own, shapes[-1], template, constants)
                windows[-1].append(first)
                if first != own:
                    continue
            for side in template.of_role(role):
                sides[side.predicate.source].append((own, side.predicate, side.own(constants)))
    filters = tuple(build_filters(source, some, statistics) for source, some in sides.items())
    return AnnotationTable(
        tuple(templates),
        np.array(numbers, np.int64),
        np.array(shapes, np.int64),
        *_lists(windows, np.int64),
        *_lists(shares, np.float64),
        filters,
    )


class _Inputs:
    """What windows are over, and the side that had it first."""

    def __init__(self) -> None:
        self.predicates: dict[tuple[Predicate, ...], int] = {}
        self.known: dict[tuple[int, int], int] = {}
        self.sides: dict[tuple[int, tuple[Constant, ...]], int] = {}

    def first(self, side: int, shape: int, template: AnnotationTemplate, constants: Sequence[Constant]) -> int:
        role = side % ROLES
        read = list(template.of_role(role))
        if (shape, role) not in self.known:
            predicates = tuple(one.predicate for one in read)
            self.known[shape, role] = self.predicates.setdefault(predicates, len(self.predicates))
        own = tuple(constant for one in read for constant in one.own(constants))
        return self.sides.setdefault((self.known[shape, role], own), side)


def _lists(parts: Sequence[Sequence[Any]], kind: Any) -> tuple[Ints, Any]:
    """Lists one after the other: where each begins, and all of them."""
    starts = np.append(0, np.cumsum([len(part) for part in parts])).astype(np.int64)
    return starts, np.array([one for part in parts for one in part], kind)


def merge_annotations(tables: Sequence[AnnotationTable], dead: Ints, statistics: Statistics) -> AnnotationTable | None:
    """One table of several, without the dead queries; filters of a source are planned anew together."""
    templates: dict[AnnotationTemplate, int] = {}
    parts: list[tuple[Any, ...]] = []
    filters: dict[Source, list[FilterTable]] = defaultdict(list)
    for table in tables:
        keep = np.flatnonzero(~np.isin(table.numbers, dead))
        place = np.array([templates.setdefault(t, len(templates)) for t in table.templates], np.int64)
        lists = (table.window_starts, table.windows), (table.share_starts, table.shares)
        own = [array for starts, values in lists for array in _taken(starts, values, keep)]
        parts.append((table.numbers[keep], place[table.shapes[keep]], *own, table.windows))
        for plan in table.filters:
            filters[plan.source].append(plan)
    numbers, shapes, held, windows, lengths, shares, before = (
        np.concatenate([part[i] for part in parts]) for i in range(7)
    )
    if not len(numbers):
        return None
    used, shapes = np.unique(shapes, return_inverse=True)
    sides = (dead[:, None] * ROLES + np.arange(ROLES)).ravel()
    gone = np.setdiff1d(np.append(sides, before), windows)
    merged = [merge_filters(plans, gone, statistics) for plans in filters.values()]
    every = list(templates)
    return AnnotationTable(
        tuple(every[i] for i in used.tolist()),
        numbers.astype(np.int64),
        shapes.astype(np.int64),
        np.append(0, np.cumsum(held)).astype(np.int64),
        windows.astype(np.int64),
        np.append(0, np.cumsum(lengths)).astype(np.int64),
        shares.astype(np.float64),
        tuple(plan for plan in merged if plan is not None),
    )


def _taken(starts: Ints, values: Any, rows: Ints) -> tuple[Ints, Any]:
    """The lists of some rows: how long each is, and all of them."""
    _, at = expand(starts[rows], starts[rows + 1])
    return np.diff(starts)[rows], values[at]


# In and out of a segment file.

_ARRAYS = ("numbers", "shapes", "window_starts", "windows", "share_starts", "shares")


def annotations_from_arrays(header: Sequence[Any], arrays: Mapping[str, Any]) -> AnnotationTable:
    templates, headers = header
    plans: list[dict[str, Any]] = [{} for _ in headers]
    for name, array in arrays.items():
        place, slash, key = name.partition("/")
        if slash:
            plans[int(place)][key] = array
    filters = tuple(filters_from_arrays(head, plan) for head, plan in zip(headers, plans, strict=True))
    own = {name: np.asarray(arrays[name]) for name in _ARRAYS}
    return AnnotationTable(templates=tuple(map(from_json, templates)), filters=filters, **own)
