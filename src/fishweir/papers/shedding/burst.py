"""A burst of three times the capacity, end to end: the job as users run it, with a delivery, a target and `make up`.

First the capacity is measured: documents a second, from publishing them until all results are delivered. Then three
times as many arrive, second by second, and afterwards half as many. Of each micro-batch its commit says how long the
oldest of its documents waited, and what was left out. In the end nothing may be missing.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

import fishweir
from fishweir.engine.weir import Weir
from fishweir.papers.shedding.transactions import FIGURE_7, Q1, transactions
from fishweir.pipeline.commits import Commit
from fishweir.pipeline.home import open_log
from fishweir.pipeline.offsets import heads

TIMES = 3
UNLIMITED = 1000.0
"""A target that is never missed: the speed is measured, and nothing is left out."""
TICK = 0.1
"""Seconds between two arrivals."""


@dataclass
class Burst:
    """What a burst did."""

    capacity: float = 0.0
    """Documents a second."""
    latency: float = 0.0
    waiting: list[tuple[float, int]] = field(default_factory=list)
    """Documents that had not been evaluated, by seconds since the burst began."""
    waits: list[float] = field(default_factory=list)
    """Seconds from the arrival of a micro-batch's oldest document to its commit, in the burst."""
    shed: int = 0
    cut: int = 0
    published: int = 0
    batches_to_recover: int = 0
    """Micro-batches behind the end of the burst that still left something out."""
    missing: int = 0
    """Results that were never there, in the end."""

    @property
    def bound(self) -> float:
        """The most that waited, in target latencies of the rate at which documents arrived."""
        arriving = TIMES * self.capacity * self.latency
        return max((count for _, count in self.waiting), default=0) / arriving


def burst(seconds: float, latency: float, warm: int, opened: Callable[[Path], Weir] = fishweir.open) -> Burst:
    """Runs one, with so many documents to measure the capacity with."""
    found = Burst(latency=latency)
    bodies = cycle(body.decode() for body in transactions(200))
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as weir:
        taken: list[object] = []
        weir.action("keep", taken.append)
        weir.execute(f"""
            create stream transactions shed allowed make up within 1 hour;
            create query Q1 as {Q1} pref {FIGURE_7} do keep
        """)
        with _running(weir, UNLIMITED):
            found.capacity = _capacity(weir, bodies, warm, taken)
            assert weir.overload is not None
            weir.overload.latency = latency
            before, began = weir.table.newest().batch, time.time()
            _arrive(weir, bodies, TIMES * found.capacity, seconds, found)
            _arrive(weir, bodies, found.capacity / 2, max(seconds, 2 * latency), found)
            weir.wait_idle()
        commits = [commit for commit in weir.table.commits(before) if commit.documents]
        _count(found, weir, commits, began, began + seconds)
        made_up = sum(sum(commit.shed.values()) for commit in commits)  # entries that are in the log twice
        found.missing = (
            sum(heads(weir.home).values())
            - made_up
            - len({result.documents[0] for result in weir.results("Q1") if not result.left_out})
        )
    return found


@contextmanager
def _running(weir: Weir, latency: float) -> Iterator[None]:
    weir.start(latency=latency)
    try:
        yield
    finally:
        weir.stop()


def _capacity(weir: Weir, bodies: Iterator[str], warm: int, taken: list[object]) -> float:
    """Documents a second, deliveries included, of the fastest of some rounds; the first compiles."""
    best = 0.0
    for _ in range(3):
        weir.publish("transactions", list(islice(bodies, warm)))
        began, enough = time.perf_counter(), len(taken) + warm
        while len(taken) < enough:
            time.sleep(TICK / 10)
        best = max(best, warm / (time.perf_counter() - began))
        weir.wait_idle()
    return best


def _arrive(weir: Weir, bodies: Iterator[str], rate: float, seconds: float, found: Burst) -> None:
    """Publishes at a rate, and notes what waits."""
    began, published = time.perf_counter(), 0
    while (passed := time.perf_counter() - began) < seconds:
        due = int(rate * passed) - published
        if due > 0:
            weir.publish("transactions", list(islice(bodies, due)))
            published += due
        done = weir.table.offsets()
        ahead = sum(head - done.get(id, 0) for id, head in heads(weir.home).items())
        found.waiting.append((passed, ahead))
        time.sleep(TICK)
    found.published += published


def _count(found: Burst, weir: Weir, commits: list[Commit], began: float, ended: float) -> None:
    (id,) = weir.home.stream_ids()
    log, after = open_log(weir.home.streams, id), 0
    for commit in commits:
        done = commit.at + commit.seconds
        upto = commit.offsets.get(str(id), after)
        first = max(after + 1, upto - commit.documents - sum(commit.shed.values()) + 1)
        if began <= commit.at <= ended:
            found.waits.append(done - log.entry(first).arrival)
        found.shed += sum(commit.shed.values())
        found.cut += sum(commit.cut.values())
        if commit.at > ended and (commit.shed or commit.cut):
            found.batches_to_recover += 1
        after = upto
