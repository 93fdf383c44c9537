"""Measures the cost of lateness: real news through the Spark job, in the order of publication and delayed as if polled.

Half of the items arrive more than 12 hours late, 5% more than 44 hours (Weibull). The same items and joins run in
order, late with learned lateness, and late with declared lateness. All must return the same results. The experiment
measures documents per second in micro-batches, and the state retained between them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from fishweir.engine.weir import Weir
from fishweir.papers.experiment.closing import show_targets, warn_if_busy
from fishweir.papers.experiment.data import data_folder
from fishweir.papers.experiment.figures import Figure, Outcome, Target, about_run

NAME = "lateness"
HOUR, DAY = 3600.0, 86400.0
SHAPE, SCALE = 1.126, 16.6 * HOUR
"""Parameters of the Weibull distribution: median 12 hours, 95% below 44."""
QUERIES = 300
STREAMS = ("A", "B")
IN_ORDER, LEARNED, DECLARED = "in order", "late, learned", "late, declared"
LONGEST = 8 * DAY
"""The declared lateness. Fewer than one item in a million is later."""
ROUNDS = 2
"""Number of alternating rounds, of which the fastest counts: other work on the machine can only add time."""
WARM = 2
"""Number of micro-batches that are not measured: processes start and kernels are loaded."""


@dataclass(frozen=True)
class News:
    """Items by time of publication, with the delay of each."""

    times: Any
    delays: Any
    bodies: list[str]
    streams: Any
    source: str


@dataclass
class Run:
    figure: Figure
    found: dict[str, int]
    retained: list[int] = field(default_factory=list)
    missed: int = 0


def main(out: Path, quick: bool = False) -> None:
    """Runs the whole experiment. `quick` uses small sizes for a smoke test."""
    run(out, quick, Console())


def run(out: Path, quick: bool, console: Console) -> Outcome:
    from fishweir.pipeline.spark.session import open_session

    news, batch = load_news(4_000 if quick else 160_000), 500 if quick else 4_000
    console.print(f"Data: {news.source}", markup=False, soft_wrap=True)
    outcome, session = Outcome(about_run(news.source, quick)), open_session()
    runs: dict[str, Run] = {}
    rounds = 1 if quick else ROUNDS
    with console.status("") as status:
        for number in range(rounds):
            for name in (IN_ORDER, LEARNED, DECLARED):
                status.update(f"{len(news.bodies):,} items, {name}, round {number + 1} of {rounds}")
                one = measure(partial(Weir, spark=session), news, name, batch)
                runs[name] = one if name not in runs or _seconds(one) < _seconds(runs[name]) else runs[name]
    session.stop()
    outcome.figures = [one.figure for one in runs.values()]
    outcome.about |= {
        "load_after": os.getloadavg()[0],
        "retained": {name: one.retained for name, one in runs.items()},
        "missed": {name: one.missed for name, one in runs.items()},
    }
    outcome.targets = targets(runs)
    outcome.write(out, NAME)
    draw(runs, out / f"{NAME}.png")
    show(outcome, runs, console)
    console.print(f"Written: {out / NAME}.csv, .json, .png", markup=False)
    return outcome


def load_news(count: int, seed: int = 11) -> News:
    rng, folder = np.random.default_rng(seed), data_folder("rss_items_2025")
    if folder is None:
        times = np.sort(rng.random(count)) * count / 4_300 * DAY
        titles, channels = rng.zipf(1.3, count), rng.integers(0, 691, count)
        source = "generated items: 4,300 a day, titles by Zipf's law"
    else:
        table = pq.read_table(folder / "items.parquet", columns=["ts", "channel_url", "title"])
        when = table.column("ts").cast("timestamp[ms]").cast("int64").to_numpy() / 1e3
        order = np.argsort(when, kind="stable")[:count]
        times, titles = when[order], table.column("title").take(order).to_pylist()
        channels = table.column("channel_url").take(order).to_pylist()
        days = (times[-1] - times[0]) / DAY
        source = f"the first {count:,} items of rss_items_2025 by publication, {days:.1f} days; lateness drawn"
    bodies = [
        f"<item><title>{escape(str(title or ''))}</title><channel>{escape(str(channel))}</channel></item>"
        for title, channel in zip(titles, channels, strict=True)
    ]
    return News(times, SCALE * rng.weibull(SHAPE, count), bodies, rng.integers(0, 2, count), source)


def queries() -> str:
    """Joins of three shapes, each query with its own window, from a minute to a day."""
    shapes = ("title->a", "title->b"), ("channel->a", "channel->b"), ("title->a][channel->c", "title->b][channel->d")
    texts = []
    for number in range(QUERIES):
        left, right = shapes[number % 3]
        same = "a = b AND c = d" if number % 3 == 2 else "a = b"
        seconds = 60 * (1 + number % 30) if number % 3 == 1 else DAY * (1 + number) / QUERIES
        texts.append(f"A//item[{left}] JOIN{{{same}, {seconds:g}}} B//item[{right}] publish j{number}")
    return ";\n".join(texts)


def measure(open_weir: Callable[..., Weir], news: News, name: str, batch: int) -> Run:
    home = Path(tempfile.mkdtemp(prefix="fishweir-bench-"))
    arrivals = news.times if name == IN_ORDER else news.times + news.delays
    order, late = np.argsort(arrivals, kind="stable"), f" late by {LONGEST:g}" if name == DECLARED else ""
    now = [float(arrivals[order[0]])]
    try:
        with open_weir(home / "home", documents_per_batch=batch, clock=lambda: now[0]) as weir:
            weir.execute("".join(f"create stream {stream} timestamp t{late};" for stream in STREAMS) + queries())
            for start in range(0, len(order), batch):
                some = order[start : start + batch]
                now[0] = float(arrivals[some[-1]])
                for number, stream in enumerate(STREAMS):
                    own = some[news.streams[some] == number]
                    weir.publish(stream, [news.bodies[i] for i in own], news.times[own].tolist())
            weir.run(until_idle=True)
            return _outcome(weir, name, len(order))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _outcome(weir: Weir, name: str, size: int) -> Run:
    commits = weir.table.commits()
    warm = commits[WARM:] or commits
    documents, seconds = sum(c.documents for c in warm), sum(c.seconds for c in warm)
    found = {f"j{i}": weir.status(f"j{i}").results for i in range(0, QUERIES, 7)}  # type: ignore[union-attr]
    figure = Figure(
        NAME, name, f"{QUERIES} joins", size, "Fishweir", seconds / documents, pairs=sum(c.matches for c in commits)
    )
    retained = [sum(file["documents"] for file in commit.states) for commit in commits]
    return Run(figure, found, retained, sum(sum(commit.missed.values()) for commit in commits))


def targets(runs: dict[str, Run]) -> list[Target]:
    whole = runs[IN_ORDER]
    goals = []
    for name in (LEARNED, DECLARED):
        run = runs[name]
        lost = 1 - sum(run.found.values()) / max(1, sum(whole.found.values()))
        words = f"{sum(run.found.values()):,} of {sum(whole.found.values()):,}, {run.missed:,} items later than allowed"
        goals.append(Target(f"{name}: all results of the run in order", words, lost == 0))
        ratio = _seconds(whole) / _seconds(run)
        goals.append(Target(f"{name}: at least 0.8 of its documents per second", f"{ratio:.2f}", ratio >= 0.8))
        half = len(run.retained) // 2
        growth = max(run.retained[half:]) / max(1, max(run.retained[half // 2 : half]))
        goals.append(Target(f"{name}: constant state", f"{growth:.2f} times from one half to the next", growth < 1.5))
    return goals


def _seconds(run: Run) -> float:
    assert run.figure.seconds is not None
    return run.figure.seconds


def draw(runs: dict[str, Run], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4))
    left.bar(list(runs), [1 / _seconds(run) for run in runs.values()])
    left.set_ylabel("documents per second in micro-batches")
    for name, run in runs.items():
        right.plot(run.retained, label=name)
    right.set_xlabel("micro-batch")
    right.set_ylabel("documents retained for joins")
    right.legend()
    figure.suptitle("Half of the items more than 12 hours late, 5% more than 44 hours")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def show(outcome: Outcome, runs: dict[str, Run], console: Console) -> None:
    table = Table("arrival", "documents per second", "match rows", "retained at most", "later than allowed")
    for name, run in runs.items():
        rate, rows = f"{1 / _seconds(run):,.0f}", f"{run.figure.pairs:,}"
        table.add_row(name, rate, rows, f"{max(run.retained):,}", f"{run.missed:,}")
    console.print(table)
    show_targets(outcome.targets, console)
    warn_if_busy(outcome.about, console)
