"""STA, VCA on the subsumption graph and the naive plan as strategies of the engine: `--strategy filters=sta`.

A strategy plans the predicates of a source's group by its own algorithm, once per process and segment. The engine's
kernel then evaluates documents on that tree. STA and VCA build the subsumption graph, which grows exponentially (2**n)
with the length of the conjunctions. Sources above a limit are left to the default strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fishweir.evaluate.arrays import expand
from fishweir.evaluate.group import Bundle, PlacedBundle, Strategy
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.select.factorization.cost import Predicate, Selectivity, independent
from fishweir.evaluate.select.factorization.layout import to_layout
from fishweir.evaluate.select.factorization.plan import FilterPlan
from fishweir.evaluate.select.filter_kind import FilterOperator
from fishweir.evaluate.select.filters import FilterTable, match_filters, with_ends
from fishweir.evaluate.statistics import Statistics
from fishweir.evaluate.witnesses.path_tables import Path, PathTable
from fishweir.papers.roses.naive import naive_plan
from fishweir.papers.roses.sta import sta
from fishweir.papers.roses.subsumption import LONGEST
from fishweir.papers.roses.vca import vca

Algorithm = Callable[[Sequence[Predicate], Selectivity], FilterPlan]

MOST_EXPRESSIONS = 100_000
"""Maximum number of sub-expressions of all predicates for which a subsumption graph is built."""
MOST_STEINER = 300
"""Maximum number of different predicates for which STA is run. The paper has no limit; it stops short of 1,000 queries,
after 15 minutes. With 300 conjunctions of up to 5 out of 8 to 200 words it takes from 0.1 to 2.6 seconds here."""


@dataclass(frozen=True)
class PlannedFilters(FilterOperator):
    """One source's filters, planned by one of the paper's algorithms."""

    algorithm: Algorithm

    @cached_property
    def table(self) -> FilterTable:
        return planned_by(self.algorithm, super().table)

    def matches(self, witnesses: Mapping[Path, PathTable]) -> Iterator[tuple[int, Matches]]:
        """Yields lists of queries: slices would refer to positions of the group, which has another plan."""
        matches = match_filters(self.table, witnesses)
        if matches is not None:
            yield self.placed.first, _listed(matches, self.table)


def planned_by(algorithm: Algorithm, table: FilterTable) -> FilterTable:
    """The same predicates with another tree."""
    layout = table.layout
    ended = [layout.units_of(node) for node in range(len(layout))]
    counts = np.diff(layout.end_offsets).tolist()
    predicates = [units for units, count in zip(ended, counts, strict=True) for _ in range(count)]
    chances = layout.units.chances(table.chances)
    planned = to_layout(algorithm(predicates, independent(chances)), layout.units, chances)
    return replace(table, layout=with_ends(planned, table.members))


def _listed(matches: Matches, table: FilterTable) -> Matches:
    if not len(matches.slices):
        return matches
    lo, hi = matches.slices[::2], matches.slices[1::2]
    _, positions = expand(lo, hi)
    ends = np.append(0, np.cumsum(hi - lo))[matches.slice_offsets // 2]
    zeros, none = np.zeros_like(matches.slice_offsets), matches.slices[:0]
    return replace(matches, slice_offsets=zeros, slices=none, member_offsets=ends, members=table.members[positions])


class ByAlgorithm(Strategy):
    """`most` is the number of different predicates above which a source is left to the default."""

    kind, module = "filters", __name__

    def __init__(self, name: str, title: str, algorithm: Algorithm, most: int | None = None) -> None:
        self.name, self.title, self.algorithm, self.most = name, title, algorithm, most  # type: ignore[misc]

    def take(self, groups: Mapping[int, Any], statistics: Statistics) -> list[Bundle]:
        return [self.bundle([place]) for place, table in groups.items() if self._fits(table)]

    def _fits(self, table: FilterTable) -> bool:
        if self.most is None:
            return True
        layout = table.layout
        lengths = [len(layout.units_of(node)) for node in np.flatnonzero(np.diff(layout.end_offsets)).tolist()]
        small = max(lengths, default=0) <= LONGEST and sum(1 << length for length in lengths) <= MOST_EXPRESSIONS
        return small and len(lengths) <= self.most

    def operator(self, placed: PlacedBundle) -> PlannedFilters:
        return PlannedFilters(placed, self.algorithm)


STRATEGIES: dict[str, Strategy] = {
    "sta": ByAlgorithm("sta", "STA", sta, MOST_STEINER),
    "vca": ByAlgorithm("vca", "VCA on the subsumption graph", vca, MOST_EXPRESSIONS),
    "naive": ByAlgorithm("naive", "the naive plan", lambda predicates, _: naive_plan(predicates)),
}
