"""Targets of the shedding experiments and their presentation: tables and a picture."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fishweir.papers.experiment.closing import show_targets, warn_if_busy
from fishweir.papers.experiment.figures import Outcome, Target

NAMES = ("Random", "FastShed", "OptShed")


def finish(outcome: Outcome, out: Path, name: str, console: Console) -> None:
    outcome.about["load_after"] = os.getloadavg()[0]
    outcome.targets = list(targets(outcome))
    outcome.write(out, name)
    draw(outcome, out / f"{name}.png")
    show(outcome, console)
    console.print(f"Written: {out / name}.csv, .json, .png", markup=False)


def targets(outcome: Outcome) -> Iterator[Target]:
    """The targets of the parts that were run."""
    for part, figure in ((_figures, "9"), (_costs, "cost"), (_burst, "burst"), (_patterns, "patterns")):
        if outcome.find(figure=figure):
            yield from part(outcome)


def _figures(outcome: Outcome) -> Iterator[Target]:
    def value(x: float, algorithm: str) -> float:
        return float(outcome.find(figure="9", x=x, algorithm=algorithm)[0].value)

    rates = list(dict.fromkeys(one.x for one in outcome.find(figure="9")))
    elements = {one.x: one.n for one in outcome.find(figure="9")}
    below = [value(rate, name) / elements[rate] for rate in rates if rate <= 1 for name in NAMES]
    beyond = [rate for rate in rates if rate > 1]
    above = [min(value(rate, name) for name in NAMES[1:]) / value(rate, "Random") for rate in beyond]
    gain = value(1.4, "FastShed") / value(1.4, "Random") - 1
    ratios = [one.value for one in outcome.find(figure="13a")]
    mean = statistics.mean(ratios)
    choosing = max(one.value for one in outcome.find(figure="12", algorithm="FastShed"))
    yield Target("figure 9: no loss below capacity", f"{min(below):.3f} of the utility", min(below) > 0.999)
    yield Target("figure 9: above Random at every higher rate", f"at least {min(above):.2f} times", min(above) >= 1)
    yield Target("figure 9: FastShed at least 25% above Random at 1.4", f"{gain:+.0%}", gain >= 0.25)
    yield Target("figure 13: FastShed at least 0.95 of OptShed", f"{mean:.3f} over {len(ratios):,} sets", mean >= 0.95)
    yield Target("figure 12: FastShed chooses within 1% of 1 s", f"{choosing:.2f} ms", choosing < 10)


def _costs(outcome: Outcome) -> Iterator[Target]:
    ratios = [one.value for one in outcome.find(figure="cost")]
    near = sum(abs(ratio - 1) <= 0.2 for ratio in ratios) / len(ratios)
    yield Target("cost model: 90% of shed queries within 20%", f"{near:.0%} of {len(ratios)}", near >= 0.9)


def _burst(outcome: Outcome) -> Iterator[Target]:
    of = {one.algorithm: one.value for one in outcome.find(figure="burst")}
    most, in_time = of["most waiting"], of["results in time"]
    left, again, missing = of["documents left out"], of["micro-batches to recover"], of["missing in the end"]
    yield Target("burst: documents were left out", f"{left:.0%}", left > 0)
    yield Target("burst: at most two target latencies of arrivals wait", f"{most:.2f}", most <= 2)
    yield Target("burst: 90% of results within the target latency", f"{in_time:.0%}", in_time >= 0.9)
    yield Target("burst: full results within five micro-batches after it", f"{again:.0f}", again <= 5)
    yield Target("burst: nothing missing in the end", f"{missing:.0f} results", missing == 0)
    chosen = of["FastShed's choice"]
    yield Target("burst: FastShed's choice takes under 1% of micro-batches", f"{chosen:.2%}", chosen < 0.01)


def _patterns(outcome: Outcome) -> Iterator[Target]:
    of = {one.algorithm: one.value for one in outcome.find(figure="patterns")}
    cut, left, missing = of["documents without patterns"], of["documents left out"], of["missing in the end"]
    yield Target("patterns: left out, but no documents", f"{cut:.0%}, {left:.0%}", cut > 0 and left == 0)
    in_time, again = of["results in time"], of["micro-batches to recover"]
    yield Target("patterns: 90% of results within the target latency", f"{in_time:.0%}", in_time >= 0.9)
    yield Target("patterns: full results within five micro-batches after it", f"{again:.0f}", again <= 5)
    yield Target("patterns: all results are complete in the end", f"{missing:.0f} missing", missing == 0)


def draw(outcome: Outcome, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 4, figsize=(18, 8))
    titles = {
        "9": ("arrival rate / capacity", "utility per period of 100 elements"),
        "10": ("standard deviation of preferences", "utility at 1.4 times the capacity"),
        "11": ("standard deviation of sizes / 25, of 5,000 tokens", "utility at 10 times the capacity"),
        "12": ("patterns", "ms to choose"),
    }
    for axis, (number, (across, up)) in zip(axes.flat, titles.items(), strict=False):
        for name in NAMES:
            points = outcome.find(figure=number, algorithm=name)
            axis.plot([one.x for one in points], [one.value for one in points], marker="o", label=name)
        axis.set(title=f"figure {number}", xlabel=across, ylabel=up)
        axis.legend()
        if number == "12":
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=0)
    histograms = {"13a": "FastShed / OptShed", "13b": "Random / FastShed", "cost": "predicted / measured cost"}
    for axis, (number, across) in zip(axes.flat[4:], histograms.items(), strict=False):
        axis.hist([one.value for one in outcome.find(figure=number)], bins=20)
        title = "cost model" if number == "cost" else f"figure {number}"
        axis.set(title=title, xlabel=across, ylabel="shed queries" if number == "cost" else "sets")
    for name in ("burst", "patterns"):
        waiting = outcome.find(figure=f"{name}, waiting")
        axes.flat[7].plot([one.x for one in waiting], [one.value for one in waiting], label=name)
    axes.flat[7].set(title="bursts", xlabel="seconds", ylabel="waiting documents")
    axes.flat[7].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def show(outcome: Outcome, console: Console) -> None:
    table = Table("figure", "x", *NAMES)
    for number in ("9", "9, small", "10", "11", "11, 1,000 tokens", "11, 200 tokens", "12"):
        for x in dict.fromkeys(one.x for one in outcome.find(figure=number)):
            values = [outcome.find(figure=number, x=x, algorithm=name)[0].value for name in NAMES]
            table.add_row(number, f"{x:g}", *(f"{value:,.2f}" for value in values))
    console.print(table)
    near = Table("cost model", "", "shed queries", "within 20%", "predicted / measured")
    for figure in ("cost", "cost, alone"):
        for name in dict.fromkeys(one.algorithm for one in outcome.find(figure=figure)):
            ratios = [one.value for one in outcome.find(figure=figure, algorithm=name)]
            good = sum(abs(ratio - 1) <= 0.2 for ratio in ratios)
            near.add_row(figure, name, f"{len(ratios)}", f"{good}", f"{min(ratios):.2f} to {max(ratios):.2f}")
    console.print(near)
    beyond = Table("burst", "measure", "value", "")
    for figure in ("burst", "patterns"):
        for one in outcome.find(figure=figure):
            beyond.add_row(figure, one.algorithm, f"{one.value:,.4g}", one.unit)
    console.print(beyond)
    show_targets(outcome.targets, console)
    warn_if_busy(outcome.about, console)
