"""Parts `growth` and `batches`: whether the cost of a document grows with the queries, and of a micro-batch with time.

The queries are regions of a plane whose size grows with their number, so that a document matches about the same number
of them however many there are. Half of them are registered while the job runs. Single documents and one more query are
timed while the planner merges both halves (merging.py).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fishweir.engine.weir import Weir
from fishweir.papers.experiment.figures import Target
from fishweir.papers.way.merging import while_merging
from fishweir.papers.way.part import Measured, Part, Setting, running, settle, wait_for
from fishweir.papers.way.processor import Spent, Stopwatch
from fishweir.papers.way.work import BOXES, STREAM


@dataclass(frozen=True)
class Sizes:
    queries: tuple[int, ...]
    documents: int
    """Documents per micro-batch."""
    rounds: int
    settling: int
    """Micro-batches before the measurement. Their values differ from those that the plan was made for: one is counted,
    the next one starts a new plan, and another one adopts it. Then the workers have to map its pages."""


WHOLE = Sizes((1_000, 10_000, 100_000, 1_000_000), 20_000, 25, 10)
QUICK = Sizes((1_000, 10_000), 2_000, 2, 1)


@dataclass(frozen=True)
class Span:
    """Number of queries, and of micro-batches over which the time must stay constant."""

    queries: int
    batches: int


WHOLE_SPAN, QUICK_SPAN = Span(100_000, 1_000), Span(1_000, 50)
TOLERATED = 1.3
MOST_FOR_PLAN, MOST_FOR_QUERY = 0.2, 0.5
"""Seconds of wall time."""
SPANS = 5


@dataclass(frozen=True)
class Figure:
    """The number of `documents` per micro-batch, the measured `batches`, and their median costs."""

    queries: int
    documents: int
    batches: str
    processor_us_a_document: float
    wall_ms_a_batch: float
    matches_a_document: float | None = None
    wall_ms_first_after_merge: float | None = None
    """Of single documents, as the next three."""
    wall_ms_while_merging: float | None = None
    wall_ms_one_more_query: float | None = None
    wall_ms_one_more_query_longest: float | None = None

    def point(self) -> tuple[str, float, float | None]:
        return f"{self.documents} documents, {self.batches}", self.queries, self.matches_a_document


def by_queries(setting: Setting) -> Measured:
    sizes, figures = setting.sizes_of("growth", WHOLE, QUICK), []
    for queries in sizes.queries:
        setting.say(f"{queries:,} queries")
        figures.append(with_queries(setting, queries, sizes))
    range_of = f"with {sizes.queries[0]:,} to {sizes.queries[-1]:,} queries"
    ratios = {
        f"a document takes the same processor time {range_of}": _ratio(figures, "processor_us_a_document"),
        f"a micro-batch takes the same wall time {range_of}": _ratio(figures, "wall_ms_a_batch"),
    }
    flat = [Target(name, f"{ratio:.2f} times", ratio < TOLERATED) for name, ratio in ratios.items()]
    return Measured(figures, [*flat, *waits(figures)])


def _ratio(figures: Sequence[Figure], name: str) -> float:
    """The last figure relative to the first."""
    return float(getattr(figures[-1], name) / getattr(figures[0], name))


def waits(figures: Sequence[Figure]) -> Iterator[Target]:
    """How long a micro-batch may wait for a new plan, and how soon a query must take effect."""
    for one in figures:
        if one.wall_ms_first_after_merge is not None and one.wall_ms_while_merging is not None:
            more = (one.wall_ms_first_after_merge - one.wall_ms_while_merging) / 1e3
            asked = f"{one.queries:,} queries: the first micro-batch after a merge takes at most {MOST_FOR_PLAN} s more"
            yield Target(asked, f"{more:.3f} s", more <= MOST_FOR_PLAN)
        if one.wall_ms_one_more_query_longest is not None:
            longest = one.wall_ms_one_more_query_longest / 1e3
            asked = f"{one.queries:,} queries: one more takes effect within {MOST_FOR_QUERY} s"
            yield Target(asked, f"{longest:.2f} s", longest <= MOST_FOR_QUERY)


def by_batches(setting: Setting) -> Measured:
    span = setting.sizes_of("batches", WHOLE_SPAN, QUICK_SPAN)
    setting.say(f"{span.batches:,} micro-batches")
    figures = over_batches(setting, span)
    steady = figures[-1].processor_us_a_document / figures[0].processor_us_a_document
    asked = f"a micro-batch costs the same over {span.batches:,}"
    return Measured(figures, [Target(asked, f"{steady:.2f} times", steady < TOLERATED)])


def with_queries(setting: Setting, queries: int, sizes: Sizes) -> Figure:
    with running(setting.spark, BOXES, queries, sizes.documents, queries // 2) as weir:
        merging = while_merging(weir, BOXES, queries, queries // 2)
        one_batch(weir, 1, 0)  # it drops the single queries
        for turn in range(sizes.settling):
            settle(weir)
            one_batch(weir, sizes.documents, 100 + turn)
        settle(weir)
        rounds = [one_batch(weir, sizes.documents, 200 + turn) for turn in range(sizes.rounds)]
    return Figure(
        queries,
        sizes.documents,
        f"{sizes.rounds}",
        statistics.median(one.processor for one in rounds) / sizes.documents * 1e6,
        statistics.median(one.wall for one in rounds) * 1e3,
        matches_a_document(queries),
        None if merging.first is None else merging.first * 1e3,
        merging.usual * 1e3,
        merging.one_more * 1e3,
        merging.one_more_longest * 1e3,
    )


def matches_a_document(queries: int) -> float:
    """The mean number of matches of some documents, each compared with all queries."""
    rows, documents = BOXES.rows(queries), BOXES.documents(100, 100)
    low_x, high_x, low_y, high_y = (np.array([row[name] for row in rows]) for name in "abcd")
    inside = (
        ((low_x <= one["x"]) & (one["x"] < high_x) & (low_y <= one["y"]) & (one["y"] < high_y)).sum()
        for one in documents
    )
    return float(sum(inside)) / len(documents)


def over_batches(setting: Setting, sizes: Span) -> list[Figure]:
    """Measures one document at a time. Returns the figures of equal spans of the run."""
    found, each = [], sizes.batches // SPANS
    with running(setting.spark, BOXES, sizes.queries, 1_000) as weir:
        for span in range(SPANS):
            rounds = [one_batch(weir, 1, span * each + turn) for turn in range(each)]
            found.append(
                Figure(
                    sizes.queries,
                    1,
                    f"{span * each + 1} to {(span + 1) * each}",
                    statistics.median(one.processor for one in rounds) * 1e6,
                    statistics.median(one.wall for one in rounds) * 1e3,
                )
            )
    return found


def one_batch(weir: Weir, documents: int, seed: int) -> Spent:
    batch = BOXES.documents(documents, seed)
    watch = Stopwatch()
    weir.publish(STREAM, batch)
    wait_for(weir)
    return watch.spent()


PARTS = (
    Part("growth", "Growth with the queries", by_queries),
    Part("batches", "Growth with the micro-batches", by_batches),
)
