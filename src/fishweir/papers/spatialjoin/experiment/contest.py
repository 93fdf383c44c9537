"""The contest with outsiders: the chosen strategy against other systems, with many matches and with few.

Wide: 900 and 9,500 matches per tuple. Narrow: less than one, on uniform tuples and on room climate readings, where half
of the queries select a node by equality. The factorized form, bitmaps instead of lists, is a separate row and not a
contestant, because it does less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from fishweir.papers.spatialjoin.experiment.contestants import (
    Chosen,
    Contestant,
    GridBitmaps,
    Strategy,
    check_agreement,
)
from fishweir.papers.spatialjoin.experiment.measure import Point, measured_point, timed_build
from fishweir.papers.spatialjoin.experiment.nested_loop import NestedLoopJoin
from fishweir.papers.spatialjoin.experiment.outsiders import OUTSIDERS
from fishweir.papers.spatialjoin.experiment.work import (
    Climate,
    Work,
    narrow_climate_work,
    narrow_work,
    paper_work,
    uniform_tuples,
)

Say = Callable[[str], None]
WIDE, NARROW = "wide", "narrow"


@dataclass(frozen=True)
class Sizes:
    queries: int = 100_000
    wide_tuples: int = 500
    narrow_tuples: int = 2_000
    checked_wide: int = 6
    checked_narrow: int = 200
    limit: float = 6.0
    """Seconds that a contestant may take at one work."""


QUICK = Sizes(queries=1_000, wide_tuples=60, narrow_tuples=100, checked_narrow=50, limit=0.1)


def works(sizes: Sizes, climate: Climate) -> list[tuple[str, Work]]:
    queries, wide = sizes.queries, sizes.wide_tuples
    return [
        (WIDE, paper_work(queries, 4, 1.0, uniform_tuples(wide, 4), name=f"wide, {queries:,} x 4, uniform")),
        (WIDE, paper_work(queries, 8, 1.0, uniform_tuples(wide, 8), name=f"wide, {queries:,} x 8, uniform")),
        (NARROW, narrow_work(queries, 4, uniform_tuples(sizes.narrow_tuples, 4))),
        (NARROW, narrow_climate_work(queries, climate, sizes.narrow_tuples)),
    ]


class Contest:
    """Every contestant on every work, checked first. Spark takes part only if there is a session."""

    def __init__(self, sizes: Sizes, climate: Climate, say: Say, session: Any = None) -> None:
        self.sizes, self.climate, self.say, self.session = sizes, climate, say, session
        self.checked_pairs = 0

    def run(self) -> Iterator[Point]:
        for regime, work in works(self.sizes, self.climate):
            yield from self.compare(regime, work)

    def compare(self, regime: str, work: Work) -> Iterator[Point]:
        makers: list[Callable[[], Contestant]] = [lambda: Chosen(work), lambda: Strategy(work, "ibs")]
        makers += [lambda outsider=outsider: outsider(work) for outsider in OUTSIDERS]  # type: ignore[misc]
        if self.session is not None:
            makers.append(lambda: NestedLoopJoin(work, self.session))
        makers.append(lambda: GridBitmaps(work))
        count = self.sizes.checked_wide if regime == WIDE else self.sizes.checked_narrow
        best = 0.0
        for make in makers:
            contestant, build = timed_build(make)
            self.say(f"{work.name}: {contestant.name}")
            self.checked_pairs += check_agreement(work, [contestant], count)
            point = measured_point(regime, work, contestant, build, self.sizes.limit)
            best = best or point.seconds_per_tuple
            yield replace(point, ratio=point.seconds_per_tuple / best)
