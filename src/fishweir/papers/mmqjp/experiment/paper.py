"""The experiments: figures 8 to 15 with two documents, figure 16 on the RSS stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fishweir.papers.mmqjp.experiment.contestants import Entry
from fishweir.papers.mmqjp.experiment.measure import REPETITIONS, Point, measure_items, measure_work
from fishweir.papers.mmqjp.experiment.through_spark import measure_retained, measure_whole
from fishweir.papers.mmqjp.experiment.work import (
    Items,
    Work,
    load_items,
    rss_queries,
    three_level,
    two_level,
    two_level_stream,
)

Say = Callable[[str], None]
SMALL = 1_000
"""Number of queries where it is not varied, as in table 5."""


SPARK_AT = {
    "figure 8": (10, 1_000, 100_000), "figure 9": (2, 4, 8), "figure 11": (10, 100_000), "figure 12": (2, 3),
    "figure 16": (10,),
}  # fmt: skip
"""The points at which MMQJP on Spark SQL takes part."""


@dataclass(frozen=True)
class Sizes:
    queries: tuple[int, ...] = (10, 100, 1_000, 10_000, 100_000)
    leaves: tuple[int, ...] = (2, 4, 6, 8, 10, 12)
    joins: tuple[int, ...] = (2, 3, 4, 5)
    zipf: tuple[float, ...] = (0.0, 0.8, 1.6)
    small: int = SMALL
    rss_queries: tuple[int, ...] = (10, 1_000, 100_000)
    items: int = 225_000
    """Items of the RSS stream, as many as in the paper."""
    batch: int = 1_000
    sample: int = 20
    """Number of queries that Sequential is timed with."""
    stream_queries: int = 100_000
    stream: int = 8_000
    """Documents of the two-level stream."""
    whole_queries: int = 100_000
    whole_items: int = 64_000
    whole_batch: int = 8_000
    """Batch size of the RSS stream through Spark."""
    retained: int = 1_000_000
    retained_batch: int = 25_000
    patience: float = 60.0
    """Seconds after which a contestant is stopped on the RSS stream."""
    repetitions: int = REPETITIONS
    """Maximum number of repetitions of the second document."""
    spark_at: Mapping[str, tuple[float, ...]] = field(default_factory=SPARK_AT.copy)


QUICK = Sizes(
    queries=(10, 100), leaves=(4,), joins=(2, 3), zipf=(0.8,), small=50, rss_queries=(10, 50), items=120, batch=40,
    sample=5, stream_queries=50, stream=60, whole_queries=50, whole_items=120, whole_batch=40, retained=400,
    retained_batch=40, repetitions=1,
)  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    name: str
    """Figure and schema."""
    across: str
    x: float
    make: Callable[[], Work]


def experiments(sizes: Sizes) -> list[Experiment]:
    """The experiments. Figures 14 and 15 are the largest points of 8 and 11, with and without views."""
    n, found = sizes.small, []
    for count in sizes.queries:
        found.append(Experiment("figure 8", "queries", count, lambda count=count: two_level(count)))  # type: ignore[misc]
    for leaves in sizes.leaves:
        found.append(Experiment("figure 9", "leaves", leaves, lambda leaves=leaves: two_level(n, leaves)))  # type: ignore[misc]
    for zipf in sizes.zipf:
        found.append(Experiment("figure 10", "Zipf", zipf, lambda zipf=zipf: two_level(n, zipf=zipf)))  # type: ignore[misc]
    for count in sizes.queries:
        found.append(Experiment("figure 11", "queries", count, lambda count=count: three_level(count)))  # type: ignore[misc]
    for joins in sizes.joins:
        found.append(Experiment("figure 12", "value joins", joins, lambda joins=joins: three_level(n, joins)))  # type: ignore[misc]
    for zipf in sizes.zipf:
        found.append(Experiment("figure 13", "Zipf", zipf, lambda zipf=zipf: three_level(n, zipf=zipf)))  # type: ignore[misc]
    return found


def run(sizes: Sizes, items: Items, entries: list[Entry], session: Any, say: Say) -> Iterator[list[Point]]:
    """Runs the experiments step by step, for a progress bar: the steps of `steps`. Kernels are compiled before the
    first."""
    measure_work("before", 0, two_level(10), entries[:1], sizes.repetitions)
    for one in experiments(sizes):
        say(f"{one.name}: {one.across} = {one.x:g}")
        yield measure_work(one.name, one.x, one.make(), entries, sizes.repetitions)
    for count in sizes.rss_queries:
        say(f"figure 16: {count:,} queries over the RSS stream")
        queries = rss_queries(count)
        yield measure_items("figure 16", queries, items, sizes.batch, entries, True, sizes.sample, sizes.patience)
    say(f"stream: {sizes.stream_queries:,} queries")
    queries, documents = two_level(sizes.stream_queries).queries, two_level_stream(sizes.stream)
    yield measure_items("stream", queries, documents, sizes.batch, entries, False, sizes.sample)
    if session is not None:
        say(f"through Spark: {sizes.whole_queries:,} queries over {sizes.whole_items:,} items")
        whole = load_items(sizes.whole_items).arrivals
        yield measure_whole(session, rss_queries(sizes.whole_queries), whole, sizes.whole_batch)
        say(f"through Spark: up to {sizes.retained:,} documents retained")
        yield measure_retained(session, sizes.retained, sizes.retained_batch)


def steps(sizes: Sizes, session: Any) -> int:
    return len(experiments(sizes)) + len(sizes.rss_queries) + (1 if session is None else 3)
