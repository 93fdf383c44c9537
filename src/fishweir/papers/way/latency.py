"""Part `latency`: from publish to a callback, one document at a time, while every query has an action.

Measured are the wall time while the job is idle otherwise and while it has half of the documents it can take; the
processor time of such a micro-batch, by process; what its steps take; and what a job costs that has nothing to do.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fishweir.engine.weir import Weir
from fishweir.papers.experiment.figures import Target
from fishweir.papers.way.part import Measured, Part, Setting, running, wait_for
from fishweir.papers.way.processor import Stopwatch
from fishweir.papers.way.work import BOXES, STREAM


@dataclass(frozen=True)
class Sizes:
    queries: int
    published: int
    """Single documents, of which the time to the callback is taken."""
    idle: float
    """Seconds."""
    load: int
    """Documents of the micro-batches that the capacity is measured by."""


WHOLE = Sizes(100_000, 200, 60.0, 20_000)
QUICK = Sizes(10_000, 30, 2.0, 2_000)


@dataclass(frozen=True)
class Figure:
    measured: str
    value: float
    unit: str

    def point(self) -> tuple[str, float, float | None]:
        return self.measured, 0, None


def measure(setting: Setting) -> Measured:
    sizes: Sizes = setting.sizes_of("latency", WHOLE, QUICK)
    hits = [{"x": row["a"], "y": row["c"]} for row in BOXES.rows(sizes.queries)[: sizes.published]]
    setting.say("the job starts")
    with running(setting.spark, BOXES, sizes.queries, max(1_000, sizes.load), heard=seen) as weir:
        setting.say("an idle job")
        watch = Stopwatch()
        time.sleep(sizes.idle)
        idle = watch.spent()
        setting.say("publish to callback, nothing else to do")
        watch = Stopwatch()
        alone = [published(weir, hit) for hit in hits]
        spent = watch.spent()
        steps = [commit.seconds for commit in weir.table.commits()[-len(hits) :]]
        setting.say("publish to callback, at half load")
        rate = capacity(weir, sizes.load)
        busy = at_half_load(weir, hits, rate)
    each = len(hits)
    figures = [
        Figure("publish to callback, median", statistics.median(alone), "s"),
        Figure("publish to callback, p99", quantile(alone, 0.99), "s"),
        Figure("of that the micro-batch up to its commit, median", statistics.median(steps), "s"),
        Figure("processor time a document, all processes", spent.processor / each, "s"),
        Figure("of that the driver", (spent.processor - spent.workers - spent.java) / each, "s"),
        Figure("of that Python workers", spent.workers / each, "s"),
        Figure("of that the JVM", spent.java / each, "s"),
        Figure("documents a second that the job can take, each with an action", rate, ""),
        Figure("at half load, publish to callback, median", statistics.median(busy), "s"),
        Figure("at half load, publish to callback, p99", quantile(busy, 0.99), "s"),
        Figure("idle, share of a core", idle.processor / idle.wall, ""),
        Figure("of that the JVM", idle.java / idle.wall, ""),
        Figure("of that Python workers", idle.workers / idle.wall, ""),
    ]
    return Measured(figures, targets(sizes.queries, figures))


def targets(queries: int, figures: Sequence[Figure]) -> list[Target]:
    value = {figure.measured: figure.value for figure in figures}
    wanted = [
        (f"one document, {queries:,} actions: processor time", "processor time a document, all processes", 0.1),
        ("a micro-batch with one document", "of that the micro-batch up to its commit, median", 0.15),
        ("publish to callback: median", "publish to callback, median", 0.15),
        ("publish to callback: p99", "publish to callback, p99", 0.4),
        ("at half load: median", "at half load, publish to callback, median", 0.15),
        ("at half load: p99", "at half load, publish to callback, p99", 0.4),
    ]
    goals = [
        Target(f"{name}, at most {most} s", f"{value[key]:.3f} s", value[key] <= most) for name, key, most in wanted
    ]
    idle = value["idle, share of a core"]
    return [*goals, Target("idle: at most 2% of a core", f"{100 * idle:.1f}%", idle <= 0.02)]


_arrived: dict[str, float] = {}
_heard = threading.Event()


def _hear(result: Any) -> None:
    _arrived.setdefault(result.documents[0], time.perf_counter())
    _heard.set()


def seen() -> Any:
    from fishweir.delivery.outputs.call import Call

    return Call(_hear)


def published(weir: Weir, document: Any) -> float:
    """Seconds from publish to the callback of one document."""
    _heard.clear()
    began = time.perf_counter()
    id = weir.publish(STREAM, [document])[0]
    while id not in _arrived:
        _heard.wait(60)
        _heard.clear()
    return _arrived.pop(id) - began


def capacity(weir: Weir, documents: int) -> float:
    """Documents a second, from publish until all is committed and delivered."""
    rates = []
    for seed in range(2):
        batch = BOXES.documents(documents, 500 + seed)
        began = time.perf_counter()
        weir.publish(STREAM, batch)
        wait_for(weir)
        weir.wait_idle()
        rates.append(documents / (time.perf_counter() - began))
    return rates[-1]


def at_half_load(weir: Weir, hits: Sequence[Any], rate: float) -> list[float]:
    """The times of single documents while others come, ten times a second, half as many as the job can take."""
    over = threading.Event()
    batch = BOXES.documents(max(1, int(rate / 2 / 10)), 900)

    def publish_others() -> None:
        due = time.perf_counter()
        while not over.is_set():
            weir.publish(STREAM, batch)
            due += 0.1
            over.wait(max(0.0, due - time.perf_counter()))

    thread = threading.Thread(target=publish_others, daemon=True)
    thread.start()
    try:
        return [published(weir, hit) for hit in hits]
    finally:
        over.set()
        thread.join()


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


PART = Part("latency", "One document, from publish to a callback", measure)
