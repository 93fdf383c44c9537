"""Experiments 1 and 2 of NiagaraCQ 5.2 on the kernel alone: grouped against non-grouped, without Spark.

In: a market. Out: figures. The contestants are checked for agreement before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fishweir.algebra.documents import Element
from fishweir.papers.experiment.contestants import NonGrouped, ValuesShared, check_agreement, grouped_of
from fishweir.papers.experiment.figures import Figure, Timed, time_stages
from fishweir.papers.niagaracq.quotes import SYMBOLS, Market, parsed_rows
from fishweir.papers.niagaracq.workloads import CASES, TYPES, Counts, Workload, all_fire, make_workload

CHANGED = 1_000
TOO_LONG = 40.0
"""Non-grouped is not run if a tenth of the queries took more than a tenth of this many seconds."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Sizes:
    """The sizes of the experiments."""

    symbols: int = SYMBOLS
    changed: int = CHANGED
    """Number of changed rows where it is not varied."""
    checked: tuple[int, ...] = (1_000, 10_000)
    sample: int = 100
    """Number of pairs of each checked workload that the oracle also decides."""
    queries: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    changes: tuple[int, ...] = (100, 250, 500, 1_000, 2_000)
    changes_queries: int = 2_000
    budget: float = 3.0
    """Seconds of measurement for a contestant at one point; at most one for non-grouped."""

    @property
    def steps(self) -> int:
        return len(TYPES) * len(CASES) * (len(self.checked) + len(self.queries)) + len(self.changes)


QUICK = Sizes(checked=(100, 500), queries=(50, 500), changes=(100, 200), changes_queries=200, budget=0.1)


def check_all(market: Market, sizes: Sizes, say: Say) -> int:
    """Checks all types and cases at each size. Returns the number of (query, row) pairs that were compared."""
    changed = market.changed(sizes.changed)
    rows, pairs = parsed_rows(changed), 0
    for n in sizes.checked:
        for type, case in [(type, case) for type in TYPES for case in CASES]:
            say(f"checking {type}, {case}, N={n:,}")
            pairs += check_agreement(make_workload(type, case, n, market, changed), rows, sizes.sample)
    return pairs


def measure_queries(market: Market, sizes: Sizes, say: Say) -> list[Figure]:
    """Experiment 1: time against N, with 1,000 changed rows."""
    changed = market.changed(sizes.changed)
    rows = parsed_rows(changed)
    figures: list[Figure] = []
    for type, case in [(type, case) for type in TYPES for case in CASES]:
        last: tuple[int, float] | None = None
        for n in sizes.queries:
            say(f"{type}, {case}, N={n:,}")
            expected = n / last[0] * last[1] if last else 0.0
            pair = compare(make_workload(type, case, n, market, changed), rows, expected, budget=sizes.budget)
            figures += pair
            alone = pair[1].seconds
            last = (n, alone) if alone is not None else (n, expected)
    return figures


def measure_changes(market: Market, sizes: Sizes, say: Say) -> list[Figure]:
    """Experiment 2: time against C, with F = N = 2,000 queries of type 1."""
    workload = all_fire(sizes.changes_queries, market.changed(min(sizes.changes)))
    figures: list[Figure] = []
    for c in sizes.changes:
        say(f"experiment 2, C={c:,}")
        figures += compare(workload, parsed_rows(market.changed(c)), experiment="changes", budget=sizes.budget)
    return figures


def compare(
    workload: Workload,
    rows: Sequence[Element],
    expected: float = 0.0,
    experiment: str = "queries",
    budget: float = Sizes.budget,
) -> tuple[Figure, ...]:
    """Measures the contestants on the same rows. The ratios are in grouped's figure."""
    grouped = grouped_of(workload)
    timed = time_stages(grouped.extract, grouped.match, rows, budget=budget)
    figure = _figure(experiment, workload, len(rows), grouped.name, timed, grouped.counts(timed.found))
    del grouped
    if expected > TOO_LONG:
        return figure, _not_run(figure)
    alone, values = NonGrouped(workload), ValuesShared(workload)
    slow = time_stages(alone.extract, alone.match, rows, most=3, budget=min(budget, 1.0))
    shared = time_stages(values.extract, values.match, rows, most=3, budget=min(budget, 1.0))
    other = _figure(experiment, workload, len(rows), alone.name, slow, slow.found)
    third = _figure(experiment, workload, len(rows), values.name, shared, shared.found)
    if len({(f.pairs, f.fired) for f in (figure, other, third)}) > 1:
        raise AssertionError(f"the contestants differ: {figure} {other} {third}")
    figure = replace(figure, ratio=slow.seconds / timed.seconds, ratio_match=shared.match / timed.match)
    return figure, other, third


def _figure(experiment: str, workload: Workload, c: int, name: str, timed: Timed, counts: Counts) -> Figure:
    return Figure(
        experiment,
        workload.type,
        workload.case,
        workload.size,
        name,
        timed.seconds,
        c,
        timed.extract,
        timed.match,
        counts.fired,
        counts.pairs,
        counts.result_rows,
        repetitions=timed.repetitions,
    )


def _not_run(figure: Figure) -> Figure:
    return Figure(
        figure.experiment,
        figure.type,
        figure.case,
        figure.n,
        NonGrouped.name,
        None,
        figure.c,
        repetitions=0,
        note=f"not run: judging by the smaller N, it would take more than {TOO_LONG:.0f} s",
    )
