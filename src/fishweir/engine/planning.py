"""The plan of a home: connects the planner with the queries of the catalog."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from fishweir.catalog.catalog import Catalog
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import Strategy
from fishweir.evaluate.plan.manifest import SegmentEntry
from fishweir.evaluate.plan.plan import cached_segment
from fishweir.evaluate.plan.planner import Planner
from fishweir.evaluate.plan.rebuild import Rebuilder, write_piece
from fishweir.evaluate.plan.segments import Segment, build_groups, compact
from fishweir.evaluate.query_rows import PathRow, QueryRow
from fishweir.evaluate.statistics import Statistics
from fishweir.pipeline.batch import PlanInForce, load_statistics
from fishweir.pipeline.home import Home
from fishweir.records import dataclass


class Planning:
    def __init__(self, home: Home, catalog: Catalog, strategies: Mapping[str, str] | None = None) -> None:
        """`strategies` contains the name of the requested strategy of each kind."""
        self.home, self.catalog, self.requested = home, catalog, dict(strategies or {})
        self.strategies = named(self.requested)

    def planner(self, rebuilder: Rebuilder | None = None) -> Planner:
        return Planner(self.home.plan, _Queries(self.catalog), self.strategies, rebuilder)

    def newest(self, rebuilder: Rebuilder, expire: Callable[[], int]) -> Callable[[Statistics], PlanInForce]:
        """A function that returns the plan for the next micro-batch. `expire` drops expired queries and returns the
        version of the catalog."""
        planner = self.planner(rebuilder)

        def newest(statistics: Statistics) -> PlanInForce:
            version = expire()
            planner.refresh(version, statistics)
            queries = sum(piece.size for piece in planner.pieces)
            return PlanInForce(version, planner.segments, queries, self.catalog.tombstones(version).all)

        return newest

    def segments(self, statistics: Statistics) -> list[Segment]:
        """All segments, for read-only use: queries without a segment are in an additional one."""
        planner = self.planner()
        planned = [cached_segment(self.home.plan, id) for id in planner.segments]
        return [*planned, *planner.tail(self.catalog.version(), statistics)]

    def write(self, after: int, upto: int, rows: Iterable[QueryRow], paths: Iterable[PathRow]) -> SegmentEntry:
        """Writes the segment of queries that are being registered; some of them have the path as a constant."""
        statistics = load_statistics(self.home)
        piece = SegmentEntry(after, upto, after, 0, plan=secrets.token_hex(4))
        columns, others = compact(paths, self.strategies)
        groups = build_groups(chain(rows, others), statistics)
        return write_piece(self.home.plan, piece, groups, statistics, self.strategies, columns)


@dataclass(frozen=True)
class _Queries:
    """The planner's view of the catalog."""

    catalog: Catalog

    def planned(self, after: int, upto: int) -> Iterable[QueryRow]:
        return self.catalog.planned(after, upto)

    def dropped(self) -> Ints:
        return self.catalog.tombstones().numbers

    def gone(self, piece: SegmentEntry, version: int) -> int:
        return self.catalog.tombstones(version).within(piece.after, piece.upto, piece.built)

    def written(self, after: int) -> Sequence[SegmentEntry]:
        rows = self.catalog.segments(after)
        return [
            SegmentEntry(start, upto, start, size, plan=plan, asked=asked) for start, upto, size, plan, asked in rows
        ]


def named(strategies: Mapping[str, str]) -> tuple[Strategy, ...]:
    if not strategies:
        return ()
    from fishweir.papers.strategies import named_strategies

    return named_strategies(strategies)
