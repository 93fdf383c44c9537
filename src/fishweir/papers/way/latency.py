"""Part `latency`: from publish to a callback, one document at a time, while every query has an action.

Measures the wall time while the job is otherwise idle and at half load; the processor time of such a micro-batch, by
process; the time of its steps; and the cost of an idle job. The peers answer the same documents, one at a time, in this
process or over a pipe. Their answers are compared first.

The capacity is the rate that the job sustains: documents are published in portions as fast as callbacks arrive, so that
some thousands are always in flight and the size of micro-batches is unrestricted. Half load is half of that rate,
published ten times per second: first documents whose queries have not fired yet, then documents that the job has had.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fishweir.engine.weir import Weir
from fishweir.papers.experiment.figures import Target
from fishweir.papers.way.documents import peers_of
from fishweir.papers.way.part import FISHWEIR, Measured, Part, Setting, running
from fishweir.papers.way.peers import Answer
from fishweir.papers.way.processor import Spent, Stopwatch
from fishweir.papers.way.work import BOXES, STREAM

OFTEN = 0.1
"""Seconds between two publications of the load."""
PORTION, UNDER_WAY = 200, 5_000
"""Documents per portion when the capacity is measured, and the maximum number without a result."""


@dataclass(frozen=True)
class Sizes:
    queries: int
    published: int
    """Number of single documents whose time to the callback is measured."""
    idle: float
    """Seconds in which the job is idle."""
    load: int
    """Number of documents for measuring the capacity."""
    longest: float
    """Seconds at half load after which no more single documents are published."""


WHOLE = Sizes(100_000, 200, 60.0, 10_000, 30.0)
QUICK = Sizes(10_000, 30, 2.0, 2_000, 5.0)


@dataclass(frozen=True)
class Figure:
    measured: str
    contestant: str
    value: float
    unit: str

    def point(self) -> tuple[str, float, float | None]:
        return f"{self.measured}, {self.contestant}", 0, None


class Ear:
    """Records when the first result of each expected document arrives."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._wanted: set[str] = set()
        self._enough = 0
        self._heard = threading.Event()

    def action(self) -> Any:
        from fishweir.delivery.outputs.call import Call

        return Call(self._hear)

    def _hear(self, result: Any) -> None:
        id = result.documents[0]
        if id in self._wanted:
            self.times[id] = time.perf_counter()
            self._wanted.discard(id)
            if len(self._wanted) <= self._enough:
                self._heard.set()

    def publish(self, weir: Weir, documents: Sequence[Any], ids: Sequence[str]) -> float:
        """Publishes documents and waits for a result of each. Returns the seconds until the last one."""
        began = time.perf_counter()
        self.publish_ahead(weir, documents, ids, 0)
        return max(self.times.pop(id) for id in ids) - began

    def publish_ahead(self, weir: Weir, documents: Sequence[Any], ids: Sequence[str], most: int) -> None:
        """Publishes documents and waits until at most `most` of them are without a result."""
        self._heard.clear()
        self._wanted.update(ids)
        weir.publish(STREAM, documents, ids=ids)
        self.wait(most)

    def wait(self, most: int = 0) -> None:
        """Waits until at most `most` documents are without a result."""
        self._enough = most
        while len(self._wanted) > most:
            if not self._heard.wait(120):
                raise TimeoutError(f"{len(self._wanted)} documents had no result within two minutes")
            self._heard.clear()


def measure(setting: Setting) -> Measured:
    sizes: Sizes = setting.sizes_of("latency", WHOLE, QUICK)
    rows, ear, measured = BOXES.rows(sizes.queries), Ear(), Measured()
    corners = [{"x": row["a"], "y": row["c"]} for row in rows]
    hits, ids = corners[: sizes.published], [f"alone-{number}" for number in range(sizes.published)]
    setting.say("the peers")
    with peers_of(BOXES, sizes.queries, measured) as peers:
        wanted, answered = {}, {name: one_by_one(peer, hits) for name, peer in peers.items()}
        for name, (pairs, _) in answered.items():
            wanted[name] = {(query, ids[place]) for query, place in pairs}
    setting.say("the job starts")
    with running(setting.spark, BOXES, sizes.queries, max(1_000, sizes.load), heard=ear.action) as weir:
        setting.say("an idle job")
        watch = Stopwatch()
        time.sleep(sizes.idle)
        idle = watch.spent()
        setting.say("publish to callback, nothing else to do")
        watch = Stopwatch()
        alone = [ear.publish(weir, [hit], [id]) for hit, id in zip(hits, ids, strict=True)]
        spent = watch.spent()
        steps = [commit.seconds for commit in weir.table.commits()[-len(hits) :]]
        check(weir, wanted)
        setting.say("documents that the job can take")
        rate = sustained(weir, ear, corners[-sizes.load :], sizes.longest / 2)
        setting.say("publish to callback, at half load")
        first = corners[sizes.published : -sizes.load]  # each of them is where a box begins that has not fired yet
        fresh = at_half_load(weir, ear, first[:: len(first) // sizes.published], first, rate, sizes.longest, "fresh")
        busy = at_half_load(weir, ear, hits, corners[-sizes.load :], rate, sizes.longest, "busy")
    measured.figures = [
        *own_figures(alone, steps, spent),
        Figure("documents a second, published and delivered all the time", FISHWEIR, rate, ""),
        *shown("at half load, publish to callback", FISHWEIR, busy),
        *shown("at half load, queries fire for the first time", FISHWEIR, fresh),
        Figure("idle, share of a core", FISHWEIR, idle.processor / idle.wall, ""),
        Figure("idle, of that the JVM", FISHWEIR, idle.java / idle.wall, ""),
        Figure("idle, of that Python workers", FISHWEIR, idle.workers / idle.wall, ""),
        *(figure for name, (_, times) in answered.items() for figure in shown("document to answer", name, times)),
    ]
    measured.targets = targets(sizes.queries, measured.figures)
    return measured


def own_figures(alone: Sequence[float], steps: Sequence[float], spent: Spent) -> list[Figure]:
    each = len(alone)
    return [
        *shown("publish to callback", FISHWEIR, alone),
        Figure("of that the micro-batch up to its commit, median", FISHWEIR, statistics.median(steps), "s"),
        Figure("processor time a document, all processes", FISHWEIR, spent.processor / each, "s"),
        Figure("of that the driver", FISHWEIR, (spent.processor - spent.workers - spent.java) / each, "s"),
        Figure("of that Python workers", FISHWEIR, spent.workers / each, "s"),
        Figure("of that the JVM", FISHWEIR, spent.java / each, "s"),
    ]


def shown(measured: str, who: str, times: Sequence[float]) -> list[Figure]:
    median, most = statistics.median(times), quantile(times, 0.99)
    return [Figure(f"{measured}, median", who, median, "s"), Figure(f"{measured}, p99", who, most, "s")]


def targets(queries: int, figures: Iterable[Figure]) -> list[Target]:
    value = {figure.measured: figure.value for figure in figures if figure.contestant == FISHWEIR}
    wanted = [
        (f"one document, {queries:,} actions: processor time", "processor time a document, all processes", 0.1),
        ("a micro-batch with one document", "of that the micro-batch up to its commit, median", 0.15),
        ("publish to callback: median", "publish to callback, median", 0.15),
        ("publish to callback: p99", "publish to callback, p99", 0.4),
        ("at half load: median", "at half load, publish to callback, median", 0.15),
        ("at half load: p99", "at half load, publish to callback, p99", 0.4),
        ("at half load, first results: median", "at half load, queries fire for the first time, median", 0.15),
        ("at half load, first results: p99", "at half load, queries fire for the first time, p99", 0.4),
    ]
    goals = [
        Target(f"{name}, at most {most} s", f"{value[key]:.3f} s", value[key] <= most) for name, key, most in wanted
    ]
    idle = value["idle, share of a core"]
    return [*goals, Target("idle: at most 2% of a core", f"{100 * idle:.1f}%", idle <= 0.02)]


def one_by_one(peer: Answer, documents: Sequence[Any]) -> tuple[set[tuple[str, int]], list[float]]:
    """The pairs that a peer finds, and the seconds per document."""
    found, times = set(), []
    for place, document in enumerate(documents):
        began = time.perf_counter()
        pairs = peer([document])
        times.append(time.perf_counter() - began)
        found |= {(query, place) for query, _ in pairs}
    return found, times


def check(weir: Weir, wanted: Mapping[str, set[tuple[str, str]]]) -> None:
    """Checks that the results of the single documents are those of each peer."""
    pairs = {(result.query, id) for result in weir.results() if (id := result.documents[0]).startswith("alone-")}
    for name, theirs in wanted.items():
        assert pairs == theirs, f"{len(pairs)} results, {name} has {len(theirs)} or different ones"


def sustained(weir: Weir, ear: Ear, documents: Sequence[Any], seconds: float) -> float:
    """Documents per second that are published and delivered while thousands are in flight. All documents are published
    once before that, so that each of their queries has been evaluated."""
    ear.publish(weir, documents, [f"full-{number}" for number in range(len(documents))])
    began, count = time.perf_counter(), 0
    while (spent := time.perf_counter() - began) < seconds or not count:
        first = count % max(1, len(documents) - PORTION)
        portion = documents[first : first + PORTION]
        ear.publish_ahead(weir, portion, [f"part-{count + number}" for number in range(len(portion))], UNDER_WAY)
        count += len(portion)
    ear.wait()
    spent = time.perf_counter() - began
    ear.times.clear()
    return count / spent


def at_half_load(
    weir: Weir, ear: Ear, hits: Sequence[Any], others: Sequence[Any], rate: float, longest: float, name: str
) -> list[float]:
    """The times of single documents while others arrive at half the rate that the job can sustain."""
    over, portion = threading.Event(), max(1, int(rate / 2 * OFTEN))

    def publish_others() -> None:
        due, first = time.perf_counter(), 0
        while not over.is_set():
            weir.publish(STREAM, others[first : first + portion])
            due, first = due + OFTEN, (first + portion) % max(1, len(others) - portion)
            over.wait(max(0.0, due - time.perf_counter()))

    thread = threading.Thread(target=publish_others, daemon=True)
    thread.start()
    times, ends = [], time.perf_counter() + longest
    try:
        for number, hit in enumerate(hits):
            times.append(ear.publish(weir, [hit], [f"{name}-{number}"]))
            if time.perf_counter() > ends:
                break
        return times
    finally:
        over.set()
        thread.join()


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


PART = Part("latency", "One document, from publish to a callback", measure)
