"""The experiments of utility-driven shedding, section 7: figures 9 to 13.

The costs of shed queries are measured on this machine (`costs.py`). Then each algorithm makes a choice for a period in
which 100 elements fit, and the utility of the choice is that of the chosen shed queries. Figure 9 also runs the
choices, to check that they fit. Figures 12 and 13 concern the algorithms alone. Beyond the paper: the accuracy of the
cost model (`predicted.py`), and a burst, end to end (`burst.py`).
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

import fishweir
from fishweir.engine.weir import Weir
from fishweir.papers.experiment.figures import Outcome, about_run
from fishweir.papers.shedding import report
from fishweir.papers.shedding.burst import Sizes, burst
from fishweir.papers.shedding.costs import MeasuredCosts, measured, timed, worth_of
from fishweir.papers.shedding.predicted import predictions
from fishweir.papers.shedding.transactions import FIGURE_7, HUGE, LARGE, Q1, Q2, SMALL, TOKENS, sized, transactions
from fishweir.shedding.fastshed import fast_shed
from fishweir.shedding.optshed import opt_shed
from fishweir.shedding.problem import Candidate, Choice
from fishweir.shedding.random_shed import random_shed

NAME = "shedding"
FITTING = 100
"""Number of elements that the original query processes in a period."""
UNITS = 50
"""Number of cost units of the original query for OptShed. Costs are rounded up to whole units."""
RATES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)
DEVIATIONS = (0.1, 0.2, 0.3, 0.4, 0.5)
SPREADS = (0.0, 0.2, 0.4, 0.6, 0.8)
FLOOD = 10.0
"""Arrival rate, in multiples of the capacity, at which no shed query processes all elements."""
ALGORITHMS: dict[str, Callable[[Sequence[Candidate], int, int], Choice]] = {
    "Random": random_shed,
    "FastShed": fast_shed,
    "OptShed": opt_shed,
}
ONLY = ("figures", "costs", "burst", "patterns")
"""Parts that can be run separately."""


@dataclass(frozen=True)
class Point:
    """One value of a figure of the paper."""

    figure: str
    x: float
    algorithm: str
    value: float
    unit: str
    n: int = 1
    note: str = ""

    def point(self) -> tuple[str, float, float | None]:
        return f"{self.figure}, {self.algorithm}", self.x, None


def main(out: Path, quick: bool = False, only: Sequence[str] = ()) -> None:
    """Runs all figures, or some parts. `quick` uses small sizes for a smoke test."""
    run(out, quick, Console(), only=only)


def run(
    out: Path,
    quick: bool,
    console: Console,
    opened: Callable[[Path], Weir] = fishweir.open,
    only: Sequence[str] = (),
) -> Outcome:
    outcome = Outcome(about_run("generated transactions by the schema of figure 1", quick))
    sample, sets = (20, 50) if quick else (200, 1_000)
    sizes = Sizes(1.0, 0.5, 1.5, 500) if quick else Sizes()
    parts: dict[str, Sequence[Callable[[], list[Point]]]] = {
        "figures": (
            lambda: arrival_rates(sample),
            lambda: preferences(sample),
            lambda: pattern_sizes(sample),
            overhead,
            lambda: random_sets(sets),
        ),
        "costs": (lambda: cost_model(sample),),
        "burst": (lambda: bursting("burst", opened, sizes),),
        "patterns": (lambda: bursting("patterns", opened, sizes),),
    }
    with console.status("") as status:
        for name in only or ONLY:
            status.update(name)
            for points in parts[name]:
                outcome.figures += points()
    report.finish(outcome, out, NAME, console)
    return outcome


def chosen(candidates: Sequence[Candidate], elements: int) -> dict[str, Choice]:
    """The choice of each algorithm for a number of elements, in a period in which the original query processes
    `FITTING` elements. OptShed takes whole units of cost, so costs are rounded up for it."""
    unit = candidates[0].cost / UNITS
    whole = [Candidate(one.utility, float(max(1, math.ceil(one.cost / unit - 1e-9)))) for one in candidates]
    time_ = FITTING * candidates[0].cost
    return {
        "Random": random_shed(candidates, elements, time_),
        "FastShed": fast_shed(candidates, elements, time_),
        "OptShed": opt_shed(whole, elements, FITTING * UNITS),
    }


def arrival_rates(sample: int) -> list[Point]:
    """Figure 9: utility per period by arrival rate, relative to the capacity. The choices are run and timed. Small
    transactions are measured too: much of their cost is the same whatever is left out."""
    points = []
    for figure, times in (("9", LARGE), ("9, small", SMALL)):
        bodies = transactions(sample, times=times)
        query = measured(Q1, bodies)
        candidates = query.candidates(worth_of(f"{Q1} pref {FIGURE_7}"))
        for rate in RATES:
            elements = round(rate * FITTING)
            for name, choice in chosen(candidates, elements).items():
                note = f"{_spent(query, choice, bodies) / (FITTING * candidates[0].cost):.2f} of the time"
                points.append(Point(figure, rate, name, choice.utility(candidates), "utility", elements, note))
    return points


def _spent(query: MeasuredCosts, choice: Choice, bodies: Sequence[bytes]) -> float:
    """The cost of running the choice: each shed query for as many documents as it was chosen for."""
    return sum(
        count * min(sum(timed(one, bodies)) for _ in range(2))
        for one, count in zip(query.queries, choice.counts, strict=True)
        if count
    )


def preferences(sample: int) -> list[Point]:
    """Figure 10: by the standard deviation of preferences over patterns of one size, at 1.4 times the capacity."""
    query = measured(Q2, sized([TOKENS // 4] * 4, sample))
    points = []
    for deviation in DEVIATIONS:
        values = [0.5 + sign * deviation for sign in (1, 1, -1, -1)]
        text = ", ".join(f"v(P{i}) = {value:g}" for i, value in enumerate(values, 1))
        points += _at_overload("10", deviation, query.candidates(worth_of(f"{Q2} pref {text}")))
    return points


def pattern_sizes(sample: int) -> list[Point]:
    """Figure 11: by the standard deviation of pattern sizes with equal preferences, where more arrives than any shed
    query can process. The paper's elements have 200 tokens, and its engine spends its time on tokens. Elements of 1,000
    and 5,000 tokens are measured too: in this engine, the fixed costs weigh less on them."""
    points = []
    equal = ", ".join(f"v(P{i}) = 0.5" for i in range(1, 5))
    for figure, times in (("11", HUGE), ("11, 1,000 tokens", LARGE), ("11, 200 tokens", SMALL)):
        for spread in SPREADS:
            sizes = [round(times * TOKENS / 4 * (1 + sign * spread)) for sign in (1, 0.5, -0.5, -1)]
            query = measured(Q2, sized(sizes, max(1, sample // times)))
            deviation = round(statistics.pstdev(sizes) / times, 1)
            points += _at_overload(figure, deviation, query.candidates(worth_of(f"{Q2} pref {equal}")), FLOOD)
    return points


def _at_overload(figure: str, x: float, candidates: Sequence[Candidate], times: float = 1.4) -> list[Point]:
    elements = round(times * FITTING)
    return [
        Point(figure, x, name, choice.utility(candidates), "utility", elements)
        for name, choice in chosen(candidates, elements).items()
    ]


def overhead() -> list[Point]:
    """Figure 12: milliseconds of processor time to choose, by the number of patterns of a flat query."""
    draw, points = random.Random(5), []
    for patterns in (2, 3, 4, 5, 6):
        candidates = _random_set(draw, patterns)
        for name, shed in ALGORITHMS.items():
            began, times = time.process_time(), 0
            while times < 3 or time.process_time() - began < 0.05:
                shed(candidates, 140, FITTING * UNITS)
                times += 1
            points.append(Point("12", patterns, name, (time.process_time() - began) / times * 1e3, "ms", times))
    return points


def random_sets(count: int) -> list[Point]:
    """Figure 13: ratios of utility over random sets. FastShed by OptShed at 1 to 2 times the capacity, for queries with
    four patterns, since OptShed takes long for more. Random by FastShed at twice the capacity, for queries with as many
    patterns as Q1: the closer to the capacity, the less there is to gain."""
    draw, points = random.Random(7), []
    for number in range(count):
        candidates = _random_set(draw, 4)
        elements, budget = round(draw.uniform(1.0, 2.0) * FITTING), round(FITTING * candidates[0].cost)
        fast, best = (shed(candidates, elements, budget).utility(candidates) for shed in (fast_shed, opt_shed))
        points.append(Point("13a", number, "FastShed/OptShed", fast / best, "ratio"))
    for number in range(count):
        candidates = _random_set(draw, 6)
        elements, budget = 2 * FITTING, round(FITTING * candidates[0].cost)
        some, fast = (shed(candidates, elements, budget).utility(candidates) for shed in (random_shed, fast_shed))
        points.append(Point("13b", number, "Random/FastShed", some / fast, "ratio"))
    return points


def cost_model(sample: int) -> list[Point]:
    """Ratios of predicted to measured cost, for each shed query of several queries."""
    points = []
    for i, one in enumerate(predictions(sample)):
        points.append(Point("cost", i, one.query, one.predicted / one.measured, "ratio", sample))
        points.append(Point("cost, alone", i, one.query, one.alone / one.measured, "ratio", sample))
    return points


def bursting(figure: str, opened: Callable[[Path], Weir], sizes: Sizes) -> list[Point]:
    """Measures a burst on the running job: waiting documents, and what was left out."""
    found, latency = burst(sizes, opened, drop=figure == "burst"), sizes.latency
    late = sum(wait > latency for wait in found.waits)
    lines = {
        "capacity": (found.capacity, "documents/s"),
        "arriving": (found.times, "times the capacity"),
        "most waiting": (found.bound, "target latencies of arrivals"),
        "results in time": (1 - late / max(1, len(found.waits)), "share"),
        "longest wait": (max(found.waits, default=0.0) / latency, "target latencies"),
        "documents left out": (found.shed / found.published, "share"),
        "documents without patterns": (found.cut / found.published, "share"),
        "micro-batches to recover": (found.batches_to_recover, "micro-batches"),
        "missing in the end": (found.missing, "results"),
        "deciding": (found.deciding, "of the time of micro-batches"),
        "FastShed's choice": (found.choosing, "of the time of micro-batches"),
        "recording decisions": (found.recording, "of the time of micro-batches"),
    }
    points = [Point(figure, 0, name, value, unit, found.published) for name, (value, unit) in lines.items()]
    return points + [Point(f"{figure}, waiting", at, "waiting", count, "documents") for at, count in found.waiting]


def _random_set(draw: random.Random, patterns: int) -> list[Candidate]:
    """Candidates with costs between 10 and 20, as in section 7.4. The original query costs 20. A smaller query costs
    less than all larger ones: it is drawn after the queries with one more pattern."""
    worth = [draw.random() for _ in range(patterns)]
    costs: dict[int, int] = {}
    for kept in sorted(range(1, 1 << patterns), key=int.bit_count, reverse=True):
        larger = [costs[kept | 1 << i] for i in range(patterns) if not kept & (1 << i)]
        costs[kept] = draw.randint(10, max(10, min(larger) - 1)) if larger else 20
    return [
        Candidate(sum(w for i, w in enumerate(worth) if kept & (1 << i)) / sum(worth), float(cost))
        for kept, cost in costs.items()
    ]
