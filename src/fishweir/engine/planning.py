"""The plan of a home: which queries the catalog has, in which segments they are evaluated."""

from __future__ import annotations

from collections.abc import Mapping

from fishweir.catalog.catalog import Catalog
from fishweir.evaluate.group import Strategy
from fishweir.evaluate.plan.plan import cached_segment
from fishweir.evaluate.plan.planner import Planner
from fishweir.evaluate.plan.segments import Segment
from fishweir.evaluate.statistics import Statistics
from fishweir.pipeline.batch import PlanInForce
from fishweir.pipeline.home import Home


class Planning:
    def __init__(self, home: Home, catalog: Catalog, strategies: Mapping[str, str] | None = None) -> None:
        """`strategies` are asked for by name, by kind."""
        self.home, self.catalog, self.strategies = home, catalog, _named(strategies)

    def planner(self) -> Planner:
        gone = self.catalog.tombstones
        return Planner(self.home.plan, self.catalog.planned, lambda: gone().numbers, self.strategies)

    def newest(self, planner: Planner, statistics: Statistics) -> PlanInForce:
        """What the next micro-batch runs with."""
        version = self.catalog.version()
        planner.refresh(version, self.catalog.living, statistics)
        queries = sum(piece.size for piece in planner.pieces)
        return PlanInForce(version, planner.segments, queries, self.catalog.tombstones().all)

    def segments(self, statistics: Statistics) -> list[Segment]:
        """All segments, for those who only look: what is not yet in one is there as one more."""
        planner = self.planner()
        planned = [cached_segment(self.home.plan, id) for id in planner.segments]
        return [*planned, planner.tail(self.catalog.version(), statistics)]


def _named(strategies: Mapping[str, str] | None) -> tuple[Strategy, ...]:
    if not strategies:
        return ()
    from fishweir.papers.strategies import named_strategies

    return named_strategies(strategies)
