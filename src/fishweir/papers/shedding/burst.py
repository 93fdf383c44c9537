"""Measures a burst of three times the capacity, end to end: the real job with a delivery, a target and `make up`.

The capacity is measured first: documents per second whose results are delivered while more and more arrive. Waiting for
each round of documents would underestimate it, since micro-batches and deliveries overlap. Then three times as many
documents arrive, second by second, and afterwards half as many. The commits record what was left out. The experiment
measures how long each document waited for the delivery of its result. In the end nothing may be missing.

A second burst is on a stream whose documents must not be left out, since one of its queries has no preference. There,
return patterns are left out, and results that lacked some are delivered again, complete. Conditions are never left out
with `make up`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

import fishweir
from fishweir.engine.weir import Weir
from fishweir.papers.shedding.transactions import FIGURE_7, LARGE, Q1, transactions
from fishweir.pipeline.commits import Commit
from fishweir.pipeline.offsets import heads
from fishweir.shedding.decision import LEFT_OUT

TIMES, PATTERN_TIMES = 3.0, 1.5
"""Arrival rates in multiples of the capacity. Leaving out patterns alone saves less than leaving out documents."""
UNLIMITED = 1000.0
"""A target that is never missed: the speed is measured, and nothing is left out."""
TICK = 0.1
"""Seconds between two arrivals."""
Taken = tuple[str, float, float]
"""A document whose result was delivered, its arrival time, and its delivery time."""


@dataclass
class Burst:
    """The measurements of a burst."""

    times: float = TIMES
    """The arrival rate in multiples of the capacity."""
    capacity: float = 0.0
    """Documents per second."""
    latency: float = 0.0
    waiting: list[tuple[float, int]] = field(default_factory=list)
    """Number of documents whose results had been neither delivered nor left out, by seconds since the burst began."""
    waits: list[float] = field(default_factory=list)
    """Seconds from the arrival of a document to the delivery of its result, for the documents of the burst that were
    kept."""
    shed: int = 0
    cut: int = 0
    published: int = 0
    batches_to_recover: int = 0
    """Number of micro-batches after the end of the burst that still left something out."""
    missing: int = 0
    """Number of results that were missing, or lacked patterns, in the end."""
    deciding: float = 0.0
    """The share of the time of micro-batches that was spent on deciding what to leave out."""
    choosing: float = 0.0
    """The same for FastShed alone."""
    recording: float = 0.0
    """The same for recording decisions, so that a repeated micro-batch sheds the same."""

    @property
    def bound(self) -> float:
        """The greatest number of waiting documents, in multiples of the documents that arrive within the target
        latency."""
        arriving = self.times * self.capacity * self.latency
        return max((count for _, count in self.waiting), default=0) / arriving


@dataclass(frozen=True)
class Sizes:
    """Seconds of the burst, the target latency, and seconds for measuring the capacity with this many documents in
    flight. With fewer, the job would finish them before others arrive, and wait."""

    seconds: float = 10.0
    latency: float = 3.0
    measuring: float = 8.0
    ahead: int = 4_000


def burst(sizes: Sizes, opened: Callable[[Path], Weir] = fishweir.open, drop: bool = True) -> Burst:
    """Runs a burst. Without `drop`, documents must not be left out."""
    seconds, latency = sizes.seconds, sizes.latency
    found = Burst(TIMES if drop else PATTERN_TIMES, latency=latency)
    bodies = cycle(body.decode() for body in transactions(200, times=LARGE))
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as weir:
        taken: list[Taken] = []
        weir.action("keep", lambda result: taken.append((result.documents[0], result.timestamp, time.time())))
        weir.execute(_script(drop))
        with _running(weir, UNLIMITED):
            found.capacity = _capacity(weir, bodies, sizes, taken)
            assert weir.overload is not None
            weir.overload.latency = latency
            weir.overload.deciding = weir.overload.choosing = weir.overload.recording = 0.0
            before, began = weir.table.newest().batch, time.time()
            arrived = _arrive(weir, bodies, found.times * found.capacity, seconds, found, taken)
            found.times = arrived / seconds / found.capacity
            _arrive(weir, bodies, found.capacity / 2, max(seconds, 2 * latency), found, taken, seconds)
            weir.wait_idle()
        commits = [commit for commit in weir.table.commits(before) if commit.documents or commit.shed]
        _count(found, weir, commits, began + seconds)
        found.waits = _waits(weir, commits, taken, began, began + seconds)
        spent = sum(commit.seconds for commit in commits)
        found.deciding, found.choosing = weir.overload.deciding / spent, weir.overload.choosing / spent
        found.recording = weir.overload.recording / spent
        made_up = sum(sum(commit.shed.values()) for commit in commits)  # entries that are in the log twice
        whole = {result.documents[0] for result in weir.results("Q1") if not result.left_out}
        found.missing = sum(heads(weir.home).values()) - made_up - len(whole)
    return found


def _script(drop: bool) -> str:
    query = f"create query Q1 as {Q1} pref {FIGURE_7} do keep"
    stream = "create stream transactions {} make up within 1 hour"
    if drop:
        return f"{stream.format('shed allowed')}; {query}"
    plain = "create query plain as for $a in stream('transactions')/list/transaction where $a/id < 0 return $a/id"
    return f"{stream.format('')}; {query}; {plain}"


@contextmanager
def _running(weir: Weir, latency: float) -> Iterator[None]:
    weir.start(latency=latency)
    try:
        yield
    finally:
        weir.stop()


def _capacity(weir: Weir, bodies: Iterator[str], sizes: Sizes, taken: Sequence[Taken]) -> float:
    """Documents per second whose results are delivered while there is always more to do. The first round, in which the
    job starts and compiles, does not count. Deliveries come micro-batch by micro-batch, so the time ends with the
    last."""
    weir.publish("transactions", list(islice(bodies, sizes.ahead)))
    weir.wait_idle()
    before, began = len(taken), time.time()
    while time.time() - began < sizes.measuring:
        waiting = sum(heads(weir.home).values()) - len(taken)
        if waiting < sizes.ahead:
            weir.publish("transactions", list(islice(bodies, sizes.ahead - waiting)))
        time.sleep(TICK)
    weir.wait_idle()
    return (len(taken) - before) / (taken[-1][2] - began)


def _arrive(
    weir: Weir,
    bodies: Iterator[str],
    rate: float,
    seconds: float,
    found: Burst,
    taken: Sequence[Taken],
    after: float = 0.0,
) -> int:
    """Publishes at a rate and records the waiting documents. Returns the number published."""
    began, published = time.perf_counter(), 0
    while (passed := time.perf_counter() - began) < seconds:
        due = int(rate * passed) - published
        if due > 0:
            weir.publish("transactions", list(islice(bodies, due)))
            published += due
        shed = sum(sum(commit.shed.values()) for commit in weir.table.commits())
        ahead = sum(heads(weir.home).values()) - shed - len(taken)
        found.waiting.append((after + passed, max(0, ahead)))
        time.sleep(TICK)
    found.published += published
    return published


def _count(found: Burst, weir: Weir, commits: list[Commit], ended: float) -> None:
    for commit in commits:
        found.shed += sum(commit.shed.values())
        found.cut += sum(commit.cut.values())
        if commit.at > ended and (commit.shed or commit.cut):
            found.batches_to_recover += 1


def _waits(weir: Weir, commits: list[Commit], taken: Sequence[Taken], began: float, ended: float) -> list[float]:
    """The waits of the documents that arrived in the burst and were kept. Made-up results are late on purpose."""
    left_out: set[str] = set()
    for commit in commits:
        if commit.shed:
            rows = weir.table.shed(commit)
            numbers, levels = rows.column("document").to_pylist(), rows.column("level").to_pylist()
            left_out |= {f"transactions-{n}" for n, level in zip(numbers, levels, strict=True) if level == LEFT_OUT}
    first: dict[str, float] = {}
    for id, arrived, delivered in taken:
        if began <= arrived <= ended and id not in left_out:
            first.setdefault(id, delivered - arrived)
    return list(first.values())
