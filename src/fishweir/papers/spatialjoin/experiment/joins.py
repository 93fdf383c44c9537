"""Figure 18: sliding window joins of two streams, by the number of queries and the size of the windows.

Compares SJ-Join and IBS-JS as in the paper with the engine's choice: three strategies of one join stage
(stage_join.py). Queries are as in section 7.1: a random condition on every attribute of both streams, and one
comparison of the first attributes by an operator drawn from = < <= > >=. All windows have the same number of rows. When
the clock starts, both windows are full, and each contestant has seen one tuple of each stream. Then tuples of the two
streams arrive in micro-batches, each probing the whole window of the other stream, and all (query, r, s) are listed.

Answers are checked first: on a small window against a naive evaluation of each query and pair, and at each point by the
number of results of every query on the same tuples, by all contestants.
Paper: Spatial Join CQ, sections 7.1 and 7.4.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fishweir.evaluate.select.boxes import Boxes
from fishweir.papers.experiment.contestants import Disagreement
from fishweir.papers.spatialjoin.experiment.measure import Point
from fishweir.papers.spatialjoin.experiment.stage_join import NAME as FISHWEIR
from fishweir.papers.spatialjoin.experiment.stage_join import StageJoin
from fishweir.papers.spatialjoin.experiment.work import Floats, paper_work, uniform_tuples
from fishweir.papers.spatialjoin.windows import (
    OPERATORS,
    STRATEGIES,
    Arrivals,
    Comparisons,
    JoinQueries,
    SJJoin,
    SlidingJoin,
    State,
    Triples,
)
from fishweir.papers.spatialjoin.windows.oracle import NaiveJoin

Say = Callable[[str], None]
EXPERIMENT = "figure 18"
DATA = "uniform"
REPETITIONS = 5
CONTESTANTS: dict[str, Callable[[JoinQueries], StageJoin]] = {
    **{name: partial(StageJoin, strategy=name) for name in STRATEGIES},
    FISHWEIR: StageJoin,
}


@dataclass(frozen=True)
class Sizes:
    queries: tuple[int, ...] = (1_000, 2_500, 5_000, 10_000)
    windows: tuple[int, ...] = (100, 1_000, 10_000)
    attributes: int = 4
    """Attributes of each stream. All have a condition."""
    batch: int = 100
    """Tuples of either stream in a micro-batch."""
    checked_window: int = 12
    limit: float = 3.0
    """Seconds that a contestant may take at one point."""


QUICK = Sizes(queries=(200, 500), windows=(20, 100), batch=4, limit=0.05)


@dataclass(frozen=True)
class JoinWork:
    """Queries with windows of `window` rows, and more than twice as many tuples of each stream."""

    queries: JoinQueries
    window: int
    tuples: tuple[Floats, Floats]

    @property
    def name(self) -> str:
        return f"{self.queries.count:,} queries, windows of {self.window:,}"


def join_work(count: int, window: int, attributes: int, more: int) -> JoinWork:
    ranges = paper_work(count, 2 * attributes, 1.0, np.empty((0, 2 * attributes)))
    halves = slice(None, attributes), slice(attributes, None)
    left, right = (Boxes.from_ranges(ranges.low[:, half], ranges.high[:, half]) for half in halves)
    draw = np.random.default_rng(18)
    first = np.zeros(count)
    compared = Comparisons.of(np.arange(count), first, draw.choice(list(OPERATORS), count).tolist(), first)
    tuples = [uniform_tuples(window + more, attributes, seed) for seed in (31, 32)]
    return JoinWork(JoinQueries.of(left, right, compared, rows=window), window, (tuples[0], tuples[1]))


class Running:
    """One strategy with full windows, and the arrivals that it has not seen yet."""

    def __init__(self, name: str, work: JoinWork) -> None:
        self.name, self.work, self.at = name, work, work.window
        began = time.perf_counter()
        self.join = CONTESTANTS[name](work.queries)
        self.build = time.perf_counter() - began
        full = np.arange(work.window)
        kept = [Arrivals.of(2.0 * full + side, work.tuples[side][: work.window], full) for side in (0, 1)]
        self.join.restore(State(kept[0], kept[1], (work.window, work.window), 2.0 * work.window - 1))

    def batch(self, side: int, count: int) -> Arrivals:
        """The next tuples of a stream, starting over after the last ones."""
        rows = self.at + np.arange(count)
        tuples = self.work.tuples[side]
        return Arrivals.of(2.0 * rows + side, tuples[rows % len(tuples)], rows)

    def once(self, count: int) -> tuple[float, int]:
        """Processor seconds for `count` tuples of each stream, and the number of their results."""
        both = self.batch(0, count), self.batch(1, count)
        began = time.process_time()
        triples: Triples = self.join.process_both(*both)
        seconds = time.process_time() - began
        found = len(triples)
        self.at += count
        return seconds, found

    def counts(self, count: int) -> Any:
        """Results of each query, for the next tuples of both streams."""
        found = self.join.count(self.batch(0, count), self.batch(1, count))
        self.at += count
        return found


class Joins:
    """The measurements of the figure. Also counts the checked triples."""

    def __init__(self, sizes: Sizes, say: Say) -> None:
        self.sizes, self.say = sizes, say
        self.checked_pairs = 0

    def run(self) -> Iterator[Point]:
        self.check_naively()
        for window in self.sizes.windows:
            for queries in self.sizes.queries:
                yield from self.compare(join_work(queries, window, self.sizes.attributes, 20 * self.sizes.batch))

    def check_naively(self) -> None:
        """Checks batches on a small window through all steps: probe, insert, invalidate."""
        window = self.sizes.checked_window
        work = join_work(60, window, self.sizes.attributes, 2 * window)
        naive = NaiveJoin(work.queries)
        running = [CONTESTANTS[name](work.queries) for name in CONTESTANTS]
        for start in range(0, 3 * window, window // 2):
            times = 2.0 * np.arange(start, start + window // 2)
            both = [Arrivals.of(times + s, work.tuples[s][start : start + window // 2]) for s in (0, 1)]
            expected = naive.process_both(both[0], both[1])
            for name, join in zip(CONTESTANTS, running, strict=True):
                query, left, right = (column.tolist() for column in join.process_both(both[0], both[1]).expanded())
                if sorted(zip(query, left, right, strict=True)) != expected:
                    raise Disagreement(f"{work.name}: {name} does not find the expected {len(expected):,} triples")
            self.checked_pairs += len(expected)

    def compare(self, work: JoinWork) -> Iterator[Point]:
        self.say(f"{EXPERIMENT}: {work.name}, checking")
        running = [Running(name, work) for name in CONTESTANTS]
        self.checked_pairs += check_counts(running, work)
        points = [self.measured(contestant, work) for contestant in running]
        (baseline,) = (p.seconds_per_tuple for p in points if p.contestant == "ibs-js")
        for p in points:
            yield replace(p, ratio=baseline / p.seconds_per_tuple)

    def measured(self, running: Running, work: JoinWork) -> Point:
        self.say(f"{EXPERIMENT}: {work.name}, {running.name}")
        batch = self.sizes.batch
        gc.collect()
        gc.disable()
        try:
            seconds, found = running.once(1)
            count = max(1, min(batch, int(self.sizes.limit / 2 / max(seconds, 1e-6))))
            best, repetitions, spent, total, seen = seconds if count == 1 else np.inf, 1, seconds, found, 1
            while repetitions < REPETITIONS and (best == np.inf or spent + best < self.sizes.limit):
                seconds, found = running.once(count)
                best, repetitions, spent = min(best, seconds), repetitions + 1, spent + seconds
                total, seen = total + found, seen + count
        finally:
            gc.enable()
        return Point(
            EXPERIMENT,
            work.name,
            DATA,
            work.queries.count,
            self.sizes.attributes,
            running.name,
            running.build,
            best / (2 * count),
            total / (2 * seen),
            2 * count,
            count < batch,
            repetitions,
            window=work.window,
            batch=count,
            ndc=max((size for join in running.join.published for size in cluster_sizes(join)), default=None),
        )


def cluster_sizes(join: SlidingJoin) -> list[int]:
    """Ndc of either side, if the algorithm has data clusters."""
    return [size for _, size in join.found_sizes.values()] if isinstance(join, SJJoin) else []


def check_counts(running: list[Running], work: JoinWork, count: int = 1) -> int:
    """Returns the number of results. Raises Disagreement unless every query has the same number of results with all
    contestants."""
    first = running[0].counts(count)
    for other in running[1:]:
        found = other.counts(count)
        if not np.array_equal(first, found):
            wrong = np.flatnonzero(first != found)[:3].tolist()
            raise Disagreement(f"{work.name}: {other.name} and {running[0].name} differ, e.g. in queries {wrong}")
    return int(first.sum())
