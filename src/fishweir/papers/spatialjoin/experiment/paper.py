"""The paper's own experiments: figures 15 to 17, table 3, and an automatically chosen Ndc against fixed ones.

Compares SJ-Batch, SJ-Immediate and IBS as in the paper, and the strategy that `choose` takes. Where the paper does not
give Rpred (figures 15 and 17, table 3) every attribute has a condition; figure 15 at 100,000 x 8 is also measured with
half of them.
Paper: Spatial Join CQ, sections 7.2 and 7.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fishweir.papers.spatialjoin.experiment.contestants import Batchwise, Chosen, Contestant, Strategy, check_agreement
from fishweir.papers.spatialjoin.experiment.measure import Point, measured_point, timed_build
from fishweir.papers.spatialjoin.experiment.work import Climate, Work, paper_work, skewed_tuples, uniform_tuples

Say = Callable[[str], None]

BASELINES = ("sj-immediate", "ibs")


@dataclass(frozen=True)
class Sizes:
    """The sizes of the experiments."""

    queries: tuple[int, ...] = (10_000, 25_000, 50_000, 100_000)
    attributes: tuple[int, ...] = (4, 8)
    tuples: int = 2_000
    rpred_queries: int = 50_000
    rpreds: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)
    skew_queries: int = 100_000
    rskews: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    table_queries: int = 10_000
    batches: tuple[int, ...] = (2_000, 4_000, 6_000, 8_000, 10_000)
    sizes: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    checked: int = 20
    limit: float = 1.0
    """Seconds that a contestant may take at one point."""


QUICK = Sizes(
    queries=(500, 2_000), tuples=200, rpred_queries=1_000, rpreds=(0.5, 1.0), skew_queries=1_000, rskews=(0.0, 1.0),
    table_queries=500, batches=(200, 400), sizes=(1, 8, 64), limit=0.03,
)  # fmt: skip


class Paper:
    """All experiments of the paper. Also counts the checked pairs."""

    def __init__(self, sizes: Sizes, climate: Climate, say: Say) -> None:
        self.sizes, self.climate, self.say = sizes, climate, say
        self.checked_pairs = 0

    def run(self) -> Iterator[Point]:
        yield from self.figure_15()
        yield from self.figure_16()
        yield from self.figure_17()
        yield from self.table_3()
        yield from self.cluster_sizes()

    def figure_15(self) -> Iterator[Point]:
        s = self.sizes
        for attributes in s.attributes:
            for queries in s.queries:
                rpreds = (0.5, 1.0) if (queries, attributes) == (s.queries[-1], s.attributes[-1]) else (1.0,)
                for rpred in rpreds:
                    work = paper_work(queries, attributes, rpred, uniform_tuples(s.tuples, attributes))
                    yield from self.compare("figure 15", work, rpred=rpred)

    def figure_16(self) -> Iterator[Point]:
        s = self.sizes
        attributes = s.attributes[-1]
        for rpred in s.rpreds:
            work = paper_work(s.rpred_queries, attributes, rpred, uniform_tuples(s.tuples, attributes))
            yield from self.compare("figure 16", work, rpred=rpred)

    def figure_17(self) -> Iterator[Point]:
        s = self.sizes
        attributes = s.attributes[0]
        for rskew in s.rskews:
            work = paper_work(s.skew_queries, attributes, 1.0, skewed_tuples(s.tuples, attributes, rskew))
            yield from self.compare("figure 17", work, rpred=1.0, rskew=rskew)
        work = paper_work(s.skew_queries, attributes, 1.0, self.readings(s.tuples), self.climate.source)
        yield from self.compare("figure 17", work, rpred=1.0)

    def table_3(self) -> Iterator[Point]:
        s = self.sizes
        for attributes in s.attributes:
            for batch in s.batches:
                work = paper_work(s.table_queries, attributes, 1.0, uniform_tuples(batch, attributes))
                yield self.point("table 3", work, lambda w=work, b=batch: Batchwise(w, b), batch=batch)  # type: ignore[misc]

    def cluster_sizes(self) -> Iterator[Point]:
        """Fixed sizes of data clusters, then the one found; on uniform tuples and on the sensors' readings."""
        s = self.sizes
        attributes, batch = s.attributes[0], s.batches[-1]
        both = (uniform_tuples(batch, attributes), "uniform"), (self.readings(batch), self.climate.source)
        for tuples, data in both:
            work = paper_work(s.table_queries, attributes, 1.0, tuples, data)
            for size in s.sizes:
                make = lambda w=work, b=batch, n=size: Batchwise(w, b, n)  # noqa: E731
                yield self.point("Ndc", work, make, batch=batch, ndc=size, note="fixed")
            yield self.point("Ndc", work, lambda w=work, b=batch: Batchwise(w, b), batch=batch, note="found")  # type: ignore[misc]

    def readings(self, count: int) -> Any:
        return self.climate.sample(count, self.sizes.attributes[0])

    def compare(self, experiment: str, work: Work, **about: Any) -> Iterator[Point]:
        """Measures all contestants on one work, after checking them."""
        makers: list[Callable[[], Contestant]] = [lambda: Batchwise(work, self.sizes.tuples)]
        makers += [lambda name=name: Strategy(work, name) for name in BASELINES]  # type: ignore[misc]
        makers.append(lambda: Chosen(work))
        built = [timed_build(make) for make in makers]
        self.checked_pairs += check_agreement(work, [contestant for contestant, _ in built], self.sizes.checked)
        for contestant, seconds in built:
            yield self.measured(experiment, work, contestant, seconds, **about)

    def point(self, experiment: str, work: Work, make: Callable[[], Contestant], **about: Any) -> Point:
        contestant, seconds = timed_build(make)
        self.checked_pairs += check_agreement(work, [contestant], self.sizes.checked)
        return self.measured(experiment, work, contestant, seconds, **about)

    def measured(self, experiment: str, work: Work, contestant: Contestant, build: float, **about: Any) -> Point:
        self.say(f"{experiment}: {work.name}, {work.data.split(' of ')[0]}, {contestant.name}")
        whole = isinstance(contestant, Batchwise)
        if isinstance(contestant, Batchwise):
            about["ndc"] = contestant.ndc(work.tuples)
        return measured_point(experiment, work, contestant, build, self.sizes.limit, whole, **about)
