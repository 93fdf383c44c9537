"""Support for tests of programs that use Fishweir: a weir without Spark, a settable clock, scripted sources.

    clock = Clock(0.0)
    with testing.open(tmp_path / "home", clock=clock) as weir:
        weir.execute("create stream R (x int); create query big as select x from R where x > 5")
        weir.publish("R", [{"x": 7}])
        weir.step()
        assert [result.output for result in weir.results("big")] == [{"x": 7}]

This is the same engine as in production: the same catalog, logs, plan, micro-batches, results and delivery. Only the
tasks of a micro-batch run in the calling thread instead of in Spark's workers. Both can open the same home.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fishweir.engine.runner import Runner
from fishweir.engine.weir import Weir as EngineWeir
from fishweir.evaluate.plan.rebuild import InlineRebuilder, Rebuilder
from fishweir.intake import StreamLog, documents_batch
from fishweir.pipeline.batch import InlineJob, Job, MicroBatches
from fishweir.pipeline.settings import DOCUMENTS_PER_BATCH, IDLE, STATE_LIMIT

__all__ = ["PAUSE", "STOP", "Clock", "Fail", "MarkedSource", "Weir", "open"]


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class Mark:
    """What a marked source does at a position between its items."""


PAUSE = Mark()
"""The source has nothing more in this round. The items after the mark are in a later micro-batch."""
STOP = Mark()
"""The source has nothing more until `resume` is called."""


@dataclass(frozen=True)
class Fail(Mark):
    """The source fails for one round, with this reason. The next round continues after the mark."""

    reason: str


class MarkedSource:
    """A source that returns its items in order, up to the next mark in each round."""

    def __init__(self, log: StreamLog, items: Sequence[Any]) -> None:
        self.log, self.items, self.position = log, list(items), 0
        self.trouble: str | None = None
        self.working = bool(self.items)

    def resume(self) -> None:
        """Continues after a STOP."""
        if self.position < len(self.items) and self.items[self.position] is STOP:
            self.position += 1
            self.working = True

    def poll(self, now: float) -> Iterator[int]:
        self.trouble = None
        start = self.position
        while self.position < len(self.items) and not isinstance(self.items[self.position], Mark):
            self.position += 1
        taken = self.items[start : self.position]
        if self.position < len(self.items) and self.items[self.position] is not STOP:
            mark = self.items[self.position]
            self.position += 1
            if isinstance(mark, Fail):
                self.trouble = f"stream {self.log.stream.name}: {mark.reason}"
        if taken:
            self.log.append(documents_batch(self.log.stream, taken, None, None, now))
            yield len(taken)
        self.working = self.position < len(self.items) and self.items[self.position] is not STOP


class Weir(EngineWeir):
    """A weir whose micro-batches run in the calling thread, each split into `parallelism` tasks."""

    parallelism = 1
    uses_threads = False
    _last_runner: tuple[Runner, tuple[Any, ...]] | None = None
    """The runner of the last step, and what it depends on."""

    def _prepare(self) -> None:
        """Does nothing: there is no Spark to start."""

    def _new_job(self, batches: MicroBatches) -> Job:
        return InlineJob(batches, self.parallelism)

    def _new_rebuilder(self) -> Rebuilder:
        return InlineRebuilder(self.home.plan, self.planning.strategies)

    def step(self) -> bool:
        """One round: takes what the sources have, runs one micro-batch, delivers. Returns whether anything happened.

        Feeds are fetched and parsed completely first, so that a step depends only on its input.
        """
        with self.home.job_lock():
            last, self._last_runner = self._last_runner, None
            if last and last[1] == self._state():
                runner = last[0]
            else:
                runner = self._new_runner(threading.Event(), self._new_rebuilder())
            runner.reopen_sources()
            runner.fetch()
            moved = runner.step()
            if self.overload is None:  # a shedder's measurements depend on the machine: each step has a new one
                self._last_runner = runner, self._state()
            return moved

    def _state(self) -> tuple[Any, ...]:
        """What a runner depends on. If it has changed since the last step, for example because another process has run
        the job, the next step needs a new runner.
        """
        return (
            self.table.newest(), self.catalog.generation(), self.overload, self.clock, self.parallelism,
            self.documents_per_batch, self.state_limit, self.idle_after,
        )  # fmt: skip

    def feed(self, stream: str, items: Sequence[Any]) -> MarkedSource:
        """Attaches a source with items and marks to a pushed stream."""
        _, log = self._log(stream)
        self.sources[stream] = source = MarkedSource(log, items)
        return source


def open(
    home: str | Path,
    clock: Clock | None = None,
    documents_per_batch: int = DOCUMENTS_PER_BATCH,
    parallelism: int = 1,
    strategies: Mapping[str, str] | None = None,
    state_limit: int = STATE_LIMIT,
    idle_after: float = IDLE,
    guard: bool | None = None,
    defaults: str = "",
) -> Weir:
    """Opens a home without Spark. Without a clock, the system clock is used."""
    weir = Weir(
        Path(home),
        documents_per_batch=documents_per_batch,
        clock=clock or time.time,
        strategies=strategies,
        state_limit=state_limit,
        idle_after=idle_after,
        guard=guard,
        defaults=defaults,
    )
    weir.parallelism = parallelism
    return weir
