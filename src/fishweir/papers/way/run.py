"""The way through the job: from publish to results on disk and to a callback, through the public calls.

Fishweir and a peer take the same documents in turns, answers compared first. Measured are processor time (driver, JVM
and Python workers together) and wall time for each size of a micro-batch and of the set of queries; how long a single
document takes from `publish` to a callback while every query has an action; what an idle job costs; and whether a
micro-batch costs the same after many of them.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from fishweir.engine.weir import Weir
from fishweir.papers.experiment.closing import show_targets, warn_if_busy
from fishweir.papers.experiment.figures import Outcome, Target, about_run
from fishweir.papers.way.processor import Spent, Stopwatch
from fishweir.papers.way.work import STREAM, WORKS, Pairs, Work

NAME = "way"
FISHWEIR = "Fishweir"
WARM = 5
"""Micro-batches that are not measured."""
CLOSELY = 2_000
"""Documents up to which all results are compared before anything is measured."""


@dataclass(frozen=True)
class Sizes:
    queries: tuple[int, ...]
    documents: tuple[int, ...]
    rounds: int
    published: int
    """Single documents, of which the time to the callback is taken."""
    batches: int
    """Micro-batches over which their time must stay the same."""
    idle: float


WHOLE = Sizes((1_000, 100_000, 1_000_000), (1, 100, 2_000, 20_000), 3, 200, 1_000, 10.0)
QUICK = Sizes((1_000, 10_000), (1, 100, 2_000), 2, 30, 60, 2.0)


@dataclass(frozen=True)
class Figure:
    """One line: microseconds a document; `share` is that of Python workers in the processor time."""

    work: str
    queries: int
    documents: int
    contestant: str
    processor: float
    wall: float
    matches: float
    share: float | None = None

    def point(self) -> tuple[str, float, float | None]:
        return f"{self.work}, {self.documents} documents, {self.contestant}", self.queries, self.matches


def main(out: Path, quick: bool = False) -> None:
    """The whole experiment; `quick` has small sizes, to see that it works."""
    run(out, QUICK if quick else WHOLE, Console(), quick)


def run(out: Path, sizes: Sizes, console: Console, quick: bool = False, session: Any = None) -> Outcome:
    from fishweir.pipeline.spark.session import open_session

    outcome, spark = Outcome(about_run("generated, seeded", quick)), session or open_session()
    with console.status("") as status:
        for work in WORKS:
            for queries in sizes.queries:
                status.update(f"{work.name}, {queries:,} queries")
                outcome.figures += compare(spark, work, queries, sizes)
        status.update("publish to callback")
        latency = callbacks(spark, sizes)
    if session is None:
        spark.stop()
    outcome.about |= {"load_after": os.getloadavg()[0], "callbacks": latency}
    outcome.targets = targets(outcome.figures, latency, sizes)
    outcome.write(out, NAME)
    draw(outcome.figures, out / f"{NAME}.png")
    show(outcome, console)
    console.print(f"Written: {out / NAME}.csv, .json, .png", markup=False)
    return outcome


@contextmanager
def running(spark: Any, work: Work, queries: int, size: int, action: str = "") -> Iterator[Weir]:
    """A home with its queries, whose job runs in the background."""
    folder = Path(tempfile.mkdtemp(prefix="fishweir-bench-"))
    try:
        with Weir(folder / "home", spark, documents_per_batch=size) as weir:
            weir.execute(work.stream)
            if action:
                weir.register_action(action, _seen)
            template = work.template + (f" do {action}" if action else "")
            weir.register_many(template, work.rows(queries))
            weir.start()
            for seed in range(WARM):
                weir.publish(STREAM, work.documents(1, seed))
                weir.wait_idle()
            yield weir
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(spark: Any, work: Work, queries: int, sizes: Sizes) -> list[Figure]:
    """Fishweir and the peer on the same documents, in turns; both must give the same pairs."""
    figures = []
    most = max(sizes.documents)
    with work.answering(work.rows(queries)) as peer, running(spark, work, queries, most) as weir:
        for size in sizes.documents:
            own, others, matches = list[Spent](), list[Spent](), 0
            for turn in range(sizes.rounds + 1):
                documents = work.documents(size, 100 + turn)
                watch = Stopwatch()
                weir.publish(STREAM, documents)
                wait_for(weir)
                own.append(watch.spent())
                watch = Stopwatch()
                wanted = peer(documents)
                others.append(watch.spent())
                if turn == 0 and size <= CLOSELY:
                    check(weir, work, size, wanted)
                matches += len(wanted)
            each = matches / size / (sizes.rounds + 1)
            figures.append(_figure(work, queries, size, FISHWEIR, own[1:], each))
            figures.append(_figure(work, queries, size, work.peer, others[1:], each))
    return figures


def wait_for(weir: Weir) -> None:
    """Until all that was published is committed: looked up every millisecond, which costs little."""
    runner = weir._runner
    assert runner is not None
    while runner.ahead() > 0:
        time.sleep(0.001)


def check(weir: Weir, work: Work, size: int, wanted: Pairs) -> None:
    """The results of the documents that came last are those of the peer."""
    first = sum(commit.documents for commit in weir.table.commits()) - size + 1
    ids = {f"{STREAM}-{first + place}": place for place in range(size)}
    pairs = {(r.query, ids[r.documents[0]]) for r in weir.results() if r.documents[0] in ids}
    assert pairs == wanted, f"{work.name}: {len(pairs)} results, {work.peer} has {len(wanted)} or other ones"


def _figure(work: Work, queries: int, size: int, who: str, spent: Sequence[Spent], matches: float) -> Figure:
    processor = statistics.median(one.processor for one in spent)
    share = statistics.median(one.workers / one.processor if one.processor else 0.0 for one in spent)
    wall = statistics.median(one.wall for one in spent)
    shown = round(share, 3) if who == FISHWEIR else None
    return Figure(work.name, queries, size, who, processor / size * 1e6, wall / size * 1e6, matches, shown)


_arrived: dict[str, float] = {}
_heard = threading.Event()


def _hear(result: Any) -> None:
    _arrived[result.documents[0]] = time.perf_counter()
    _heard.set()


def _seen() -> Any:
    from fishweir.delivery.outputs.call import Call

    return Call(_hear)


def callbacks(spark: Any, sizes: Sizes) -> dict[str, float]:
    """One document at a time, every query with an action: publish to callback, the cost of one, of nothing, and of the
    last of many against the first."""
    work, queries = WORKS[1], min(100_000, max(sizes.queries))
    hits = [{"x": row["a"], "y": row["c"]} for row in work.rows(queries)[: max(sizes.published, sizes.batches)]]
    with running(spark, work, queries, 1_000, "heard") as weir:
        watch = Stopwatch()
        time.sleep(sizes.idle)
        idle = watch.spent()
        watch, times = Stopwatch(), [_published(weir, hit) for hit in hits[: sizes.published]]
        spent = watch.spent()
        begin = len(weir.table.commits())
        for hit in hits[: sizes.batches]:
            weir.publish(STREAM, [hit])
            wait_for(weir)
        seconds = [commit.seconds for commit in weir.table.commits()[begin:]]
    part, times = max(1, len(seconds) // 5), sorted(times)
    return {
        "queries": queries,
        "median": statistics.median(times),
        "p99": times[int(0.99 * (len(times) - 1))],
        "processor": spent.processor / len(times),
        "idle": idle.processor / idle.wall,
        "first": statistics.median(seconds[:part]),
        "last": statistics.median(seconds[-part:]),
        "batches": len(seconds),
    }


def _published(weir: Weir, document: Any) -> float:
    """Seconds from publish to the callback of one document."""
    _heard.clear()
    began = time.perf_counter()
    id = weir.publish(STREAM, [document])[0]
    while id not in _arrived:
        _heard.wait(60)
        _heard.clear()
    return _arrived[id] - began


def targets(figures: Sequence[Figure], latency: dict[str, float], sizes: Sizes) -> list[Target]:
    goals = [
        Target(
            f"one document, {latency['queries']:,.0f} actions: at most 0.1 s of processor time",
            f"{latency['processor']:.3f} s",
            latency["processor"] <= 0.1,
        ),
        Target("publish to callback: median under 0.15 s", f"{latency['median']:.3f} s", latency["median"] < 0.15),
        Target("publish to callback: p99 under 0.4 s", f"{latency['p99']:.3f} s", latency["p99"] < 0.4),
        Target("idle: at most 2% of a core", f"{100 * latency['idle']:.1f}%", latency["idle"] <= 0.02),
        Target(
            f"a micro-batch costs the same over {latency['batches']:,.0f}",
            f"{latency['last'] / latency['first']:.2f} times",
            latency["last"] < 1.3 * latency["first"],
        ),
    ]
    for work in WORKS:
        own = {(f.queries, f.documents): f for f in figures if f.work == work.name and f.contestant == FISHWEIR}
        peer = {(f.queries, f.documents): f for f in figures if f.work == work.name and f.contestant == work.peer}
        for key in own:
            if key[1] == 2_000:
                ratio = peer[key].processor / own[key].processor
                goals.append(
                    Target(f"{work.name}, {key[0]:,} queries: ahead of {work.peer}", f"{ratio:.2f}", ratio > 1)
                )
        few, many = (own[size, max(sizes.documents)].processor for size in (sizes.queries[0], sizes.queries[-1]))
        if work.name == "boxes":
            name = f"boxes: time a document the same with {sizes.queries[0]:,} and {sizes.queries[-1]:,} queries"
            goals.append(Target(name, f"{many / few:.2f} times", many < 1.3 * few))
    return goals


def draw(figures: Sequence[Figure], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(WORKS), figsize=(11, 4))
    for work, axis in zip(WORKS, axes, strict=True):
        own = [f for f in figures if f.work == work.name]
        for who, queries in sorted({(f.contestant, f.queries) for f in own}):
            line = [f for f in own if f.contestant == who and f.queries == queries]
            axis.loglog(
                [f.documents for f in line], [f.processor for f in line], marker="o", label=f"{who}, {queries:,}"
            )
        axis.set_title(work.name)
        axis.set_xlabel("documents a micro-batch")
        axis.set_ylabel("processor time a document, us")
        axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def show(outcome: Outcome, console: Console) -> None:
    table = Table("work", "queries", "documents", "contestant", "processor us", "wall us", "matches", "workers' share")
    for f in outcome.figures:
        share = "" if f.share is None else f"{100 * f.share:.0f}%"
        row = (f.work, f"{f.queries:,}", f"{f.documents:,}", f.contestant, f"{f.processor:,.0f}", f"{f.wall:,.0f}")
        table.add_row(*row, f"{f.matches:.1f}", share)
    console.print(table)
    show_targets(outcome.targets, console)
    warn_if_busy(outcome.about, console)
