"""The experiments of utility-driven shedding, section 7: figures 9 to 13.

Costs of shed queries are measured on this machine (`costs.py`). A choice is then made for a period in which 100
elements fit, and its utility is what the chosen shed queries give. Figure 9 also runs the choices, to see if they fit.
Figures 12 and 13 concern the algorithms alone. Beyond the paper: how well the cost model predicts (`predicted.py`), and
a burst, end to end (`burst.py`).
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

import fishweir
from fishweir.engine.weir import Weir
from fishweir.papers.experiment.closing import show_targets, warn_if_busy
from fishweir.papers.experiment.figures import Outcome, Target, about_run
from fishweir.papers.shedding.burst import burst
from fishweir.papers.shedding.costs import Measured, measured, worth_of
from fishweir.papers.shedding.predicted import predictions
from fishweir.papers.shedding.transactions import FIGURE_7, Q1, Q2, TOKENS, sized, transactions
from fishweir.shedding.fastshed import fast_shed
from fishweir.shedding.optshed import opt_shed
from fishweir.shedding.problem import Candidate, Choice
from fishweir.shedding.random_shed import random_shed

NAME = "shedding"
FITTING = 100
"""Elements that the original query processes in a period."""
UNITS = 20
"""OptShed counts cost in such parts of the original query's; costs are rounded up."""
RATES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)
DEVIATIONS = (0.1, 0.2, 0.3, 0.4, 0.5)
SPREADS = (0.0, 0.2, 0.4, 0.6, 0.8)
ALGORITHMS: dict[str, Callable[[Sequence[Candidate], int, int], Choice]] = {
    "Random": random_shed,
    "FastShed": fast_shed,
    "OptShed": opt_shed,
}


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


def main(out: Path, quick: bool = False) -> None:
    """All figures; `quick` has small sizes, to see that it works."""
    run(out, quick, Console())


def run(out: Path, quick: bool, console: Console, opened: Callable[[Path], Weir] = fishweir.open) -> Outcome:
    outcome = Outcome(about_run("generated transactions by the schema of figure 1", quick))
    sample, sets = (20, 50) if quick else (200, 1_000)
    with console.status("") as status:
        for name, points in (
            ("figure 9", lambda: arrival_rates(sample)),
            ("figure 10", lambda: preferences(sample)),
            ("figure 11", lambda: pattern_sizes(sample)),
            ("figure 12", overhead),
            ("figure 13", lambda: random_sets(sets)),
            ("the cost model", lambda: cost_model(sample)),
            ("a burst", lambda: bursting(opened, *((1.0, 0.5, 300) if quick else (30.0, 5.0, 20_000)))),
        ):
            status.update(name)
            outcome.figures += points()
    outcome.about["load_after"] = os.getloadavg()[0]
    outcome.targets = targets(outcome)
    outcome.write(out, NAME)
    draw(outcome, out / f"{NAME}.png")
    show(outcome, console)
    console.print(f"Written: {out / NAME}.csv, .json, .png", markup=False)
    return outcome


def scaled(candidates: Sequence[Candidate]) -> tuple[list[Candidate], int]:
    """Costs as whole units, rounded up, and the budget in which `FITTING` elements of the original query fit."""
    unit = candidates[0].cost / UNITS
    whole = [Candidate(one.utility, float(max(1, -int(-one.cost / unit // 1)))) for one in candidates]
    return whole, FITTING * UNITS


def arrival_rates(sample: int) -> list[Point]:
    """Figure 9: utility per period by arrival rate, in parts of the capacity; the choices are run and timed."""
    bodies = transactions(sample)
    query = measured(Q1, bodies)
    candidates = query.candidates(worth_of(f"{Q1} pref {FIGURE_7}"))
    whole, budget = scaled(candidates)
    points = []
    for rate in RATES:
        for name, shed in ALGORITHMS.items():
            choice = shed(whole, round(rate * FITTING), budget)
            spent = _spent(query, choice, bodies) / (FITTING * query.costs[0])
            elements, note = round(rate * FITTING), f"{spent:.2f} of the time"
            points.append(Point("9", rate, name, choice.utility(whole), "utility", elements, note))
    return points


def _spent(query: Measured, choice: Choice, bodies: Sequence[bytes]) -> float:
    began = time.process_time()
    done = 0
    for number, count in enumerate(choice.counts):
        for _ in range(count):
            query.run(number, bodies[done % len(bodies)])
            done += 1
    return time.process_time() - began


def preferences(sample: int) -> list[Point]:
    """Figure 10: by the standard deviation of preferences over patterns of one size, at 1.4 times the capacity."""
    query = measured(Q2, sized([TOKENS // 4] * 4, sample))
    points = []
    for deviation in DEVIATIONS:
        values = [0.5 + sign * deviation for sign in (1, 1, -1, -1)]
        text = ", ".join(f"v(P{i}) = {value:g}" for i, value in enumerate(values, 1))
        whole, budget = scaled(query.candidates(worth_of(f"{Q2} pref {text}")))
        points += _at_overload("10", deviation, whole, budget)
    return points


def pattern_sizes(sample: int) -> list[Point]:
    """Figure 11: by the standard deviation of pattern sizes with equal preferences, at 1.4 times the capacity."""
    points = []
    for spread in SPREADS:
        sizes = [round(TOKENS / 4 * (1 + sign * spread)) for sign in (1, 0.5, -0.5, -1)]
        query = measured(Q2, sized(sizes, sample))
        equal = ", ".join(f"v(P{i}) = 0.5" for i in range(1, 5))
        whole, budget = scaled(query.candidates(worth_of(f"{Q2} pref {equal}")))
        points += _at_overload("11", round(statistics.pstdev(sizes), 1), whole, budget)
    return points


def _at_overload(figure: str, x: float, whole: Sequence[Candidate], budget: int) -> list[Point]:
    elements = round(1.4 * FITTING)
    return [
        Point(figure, x, name, shed(whole, elements, budget).utility(whole), "utility", elements)
        for name, shed in ALGORITHMS.items()
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
    """Figure 13: ratios of utility over random sets, by arrival rates from 1 to 2 times the capacity. A smaller query
    costs less than a larger one, all between 10 and 20, as in section 7.4."""
    draw, points = random.Random(7), []
    for number in range(count):
        candidates = _random_set(draw, 4)
        elements = round(draw.uniform(1.0, 2.0) * FITTING)
        budget = round(FITTING * candidates[0].cost)
        found = {name: shed(candidates, elements, budget).utility(candidates) for name, shed in ALGORITHMS.items()}
        points.append(Point("13a", number, "FastShed/OptShed", found["FastShed"] / found["OptShed"], "ratio"))
        points.append(Point("13b", number, "Random/FastShed", found["Random"] / found["FastShed"], "ratio"))
    return points


def cost_model(sample: int) -> list[Point]:
    """Predicted by measured cost, of each shed query of Q1."""
    found = predictions(sample)
    return [Point("cost", i, "predicted/measured", one.ratio, "ratio", sample) for i, one in enumerate(found)]


def bursting(opened: Callable[[Path], Weir], seconds: float, latency: float, warm: int) -> list[Point]:
    """A burst of three times the capacity on the running job: what waited, and what was left out."""
    found = burst(seconds, latency, warm, opened)
    late = sum(wait > latency for wait in found.waits)
    lines = {
        "capacity": (found.capacity, "documents/s"),
        "most waiting": (found.bound, "target latencies of arrivals"),
        "micro-batches in time": (1 - late / max(1, len(found.waits)), "share"),
        "longest wait": (max(found.waits, default=0.0) / latency, "target latencies"),
        "documents left out": (found.shed / found.published, "share"),
        "documents without patterns": (found.cut / found.published, "share"),
        "micro-batches to recover": (found.batches_to_recover, "micro-batches"),
        "missing in the end": (found.missing, "results"),
    }
    points = [Point("burst", 0, name, value, unit, found.published) for name, (value, unit) in lines.items()]
    return points + [Point("waiting", at, "waiting", count, "documents") for at, count in found.waiting]


def _random_set(draw: random.Random, patterns: int) -> list[Candidate]:
    worth = [draw.random() for _ in range(patterns)]
    costs: dict[int, int] = {}
    for kept in sorted(range(1, 1 << patterns), key=int.bit_count):
        smaller = [costs[kept & ~(1 << i)] for i in range(patterns) if kept & (1 << i) and kept & ~(1 << i)]
        costs[kept] = min(20, max(draw.randint(10, 20), max(smaller, default=9) + 1))
    order = sorted(costs, key=lambda kept: -kept.bit_count())
    return [
        Candidate(sum(w for i, w in enumerate(worth) if kept & (1 << i)) / sum(worth), float(costs[kept]))
        for kept in order
    ]


def targets(outcome: Outcome) -> list[Target]:
    def value(figure: str, x: float, algorithm: str) -> float:
        return float(outcome.find(figure=figure, x=x, algorithm=algorithm)[0].value)

    below = [value("9", rate, name) / (rate * FITTING) for rate in RATES if rate <= 1 for name in ALGORITHMS]
    beyond = [rate for rate in RATES if rate > 1]
    above = [min(value("9", r, name) for name in ("FastShed", "OptShed")) / value("9", r, "Random") for r in beyond]
    gain = value("9", 1.4, "FastShed") / value("9", 1.4, "Random") - 1
    ratios = [one.value for one in outcome.find(figure="13a")]
    mean = statistics.mean(ratios)
    choosing = max(one.value for one in outcome.find(figure="12", algorithm="FastShed"))
    costs = [one.value for one in outcome.find(figure="cost")]
    near = sum(abs(ratio - 1) <= 0.2 for ratio in costs) / len(costs)
    of = {one.algorithm: one.value for one in outcome.find(figure="burst")}
    most, in_time = of["most waiting"], of["micro-batches in time"]
    again, missing = of["micro-batches to recover"], of["missing in the end"]
    return [
        Target("figure 9: no loss below capacity", f"{min(below):.3f} of the utility", min(below) > 0.999),
        Target("figure 9: above Random at every rate beyond it", f"{min(above):.2f} times at least", min(above) >= 1),
        Target("figure 9: FastShed at least 25% above Random at 1.4", f"{gain:+.0%}", gain >= 0.25),
        Target("figure 13: FastShed at least 0.95 of OptShed", f"{mean:.3f} over {len(ratios):,} sets", mean >= 0.95),
        Target("figure 12: FastShed chooses within 1% of 1 s", f"{choosing:.2f} ms", choosing < 10),
        Target("cost model: 90% of shed queries within 20%", f"{near:.0%} of {len(costs)}", near >= 0.9),
        Target("burst: what waits arrived within two target latencies", f"{most:.2f}", most <= 2),
        Target("burst: 90% of micro-batches within the target latency", f"{in_time:.0%}", in_time >= 0.9),
        Target("burst: full results within five micro-batches behind it", f"{again:.0f}", again <= 5),
        Target("burst: nothing missing in the end", f"{missing:.0f} results", missing == 0),
    ]


def draw(outcome: Outcome, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 3, figsize=(14, 8))
    titles = {
        "9": "arrival rate / capacity",
        "10": "deviation of preferences",
        "11": "deviation of sizes",
        "12": "patterns",
    }
    for axis, (number, label) in zip(axes.flat, titles.items(), strict=False):
        for name in ALGORITHMS:
            points = outcome.find(figure=number, algorithm=name)
            axis.plot([one.x for one in points], [one.value for one in points], marker="o", label=name)
        axis.set_title(f"figure {number}")
        axis.set_xlabel(label)
        axis.legend()
    for axis, number in zip(axes.flat[4:], ("13a", "13b"), strict=True):
        axis.hist([one.value for one in outcome.find(figure=number)], bins=20)
        axis.set_title(f"figure {number}")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def show(outcome: Outcome, console: Console) -> None:
    table = Table("figure", "x", *ALGORITHMS)
    for number in ("9", "10", "11", "12"):
        for x in dict.fromkeys(one.x for one in outcome.find(figure=number)):
            values = [outcome.find(figure=number, x=x, algorithm=name)[0].value for name in ALGORITHMS]
            table.add_row(number, f"{x:g}", *(f"{value:,.2f}" for value in values))
    console.print(table)
    beyond = Table("burst", "value", "")
    for one in outcome.find(figure="burst"):
        beyond.add_row(one.algorithm, f"{one.value:,.2f}", one.unit)
    console.print(beyond)
    show_targets(outcome.targets, console)
    warn_if_busy(outcome.about, console)
