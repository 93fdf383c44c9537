"""Part `growth`: does a document cost the same with few and with many queries, a micro-batch the same after many?

The queries are regions of a plane whose size follows their number, so that a document matches about as many of them
however many there are.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from fishweir.engine.weir import Weir
from fishweir.papers.experiment.figures import Target
from fishweir.papers.way.part import Measured, Part, Setting, running, wait_for
from fishweir.papers.way.processor import Spent, Stopwatch
from fishweir.papers.way.work import BOXES, STREAM


@dataclass(frozen=True)
class Sizes:
    queries: tuple[int, ...]
    documents: int
    rounds: int
    batches: int
    """Micro-batches over which their time must stay the same."""
    queries_then: int


WHOLE = Sizes((1_000, 10_000, 100_000, 1_000_000), 20_000, 5, 1_000, 100_000)
QUICK = Sizes((1_000, 10_000), 2_000, 2, 50, 1_000)
TOLERATED = 1.3
SPANS = 5


@dataclass(frozen=True)
class Figure:
    """`documents` a micro-batch, of which `batches` were measured; what each costs in the median."""

    queries: int
    documents: int
    batches: str
    processor_us_a_document: float
    wall_ms_a_batch: float
    matches_a_document: float | None = None

    def point(self) -> tuple[str, float, float | None]:
        return f"{self.documents} documents, {self.batches}", self.queries, self.matches_a_document


def measure(setting: Setting) -> Measured:
    sizes: Sizes = setting.sizes_of("growth", WHOLE, QUICK)
    by_queries = []
    for queries in sizes.queries:
        setting.say(f"{queries:,} queries")
        by_queries.append(with_queries(setting, queries, sizes))
    setting.say(f"{sizes.batches:,} micro-batches")
    by_batches = over_batches(setting, sizes)
    flat, steady = spread_of([f.processor_us_a_document for f in by_queries]), ratio_of_ends(by_batches)
    few, many = sizes.queries[0], sizes.queries[-1]
    targets = [
        Target(f"a document costs the same with {few:,} to {many:,} queries", f"{flat:.2f} times", flat < TOLERATED),
        Target(f"a micro-batch takes the same over {sizes.batches:,}", f"{steady:.2f} times", steady < TOLERATED),
    ]
    return Measured([*by_queries, *by_batches], targets)


def with_queries(setting: Setting, queries: int, sizes: Sizes) -> Figure:
    with running(setting.spark, BOXES, queries, sizes.documents) as weir:
        rounds = [one_batch(weir, sizes.documents, 100 + turn) for turn in range(sizes.rounds + 1)][1:]
        matches = statistics.mean(commit.matches for commit in weir.table.commits()[-sizes.rounds :])
    return Figure(
        queries,
        sizes.documents,
        f"{sizes.rounds}",
        statistics.median(one.processor for one in rounds) / sizes.documents * 1e6,
        statistics.median(one.wall for one in rounds) * 1e3,
        matches / sizes.documents,
    )


def over_batches(setting: Setting, sizes: Sizes) -> list[Figure]:
    """One document at a time; the figures of equal spans of the run."""
    found, each = [], sizes.batches // SPANS
    with running(setting.spark, BOXES, sizes.queries_then, 1_000) as weir:
        for span in range(SPANS):
            rounds = [one_batch(weir, 1, span * each + turn) for turn in range(each)]
            found.append(
                Figure(
                    sizes.queries_then,
                    1,
                    f"{span * each + 1} to {(span + 1) * each}",
                    statistics.mean(one.processor for one in rounds) * 1e6,  # a tick is too coarse for a median
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


def spread_of(values: list[float]) -> float:
    """The last against the first, which is all there is to growth; not less than one by chance in between."""
    return values[-1] / values[0] if values[0] else 1.0


def ratio_of_ends(figures: list[Figure]) -> float:
    return figures[-1].wall_ms_a_batch / figures[0].wall_ms_a_batch


PART = Part("growth", "Growth", measure)
