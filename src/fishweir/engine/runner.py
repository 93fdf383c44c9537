"""The run: reads sources into logs, runs the job over the logs and delivers results, until it is stopped.

One thread loops: it polls the sources (each step is one segment, which the job can process at once), delivers committed
results, and checks whether everything is done. The job runs in parallel.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from fishweir.algebra.nodes import StreamDefinition
from fishweir.catalog.catalog import Catalog
from fishweir.delivery.service import DeliveryService
from fishweir.engine.make_up import MakeUp
from fishweir.engine.materialize import Materializer
from fishweir.errors import BacklogError
from fishweir.guard import Guard
from fishweir.intake import Fetching, Refresh, Source, StreamLog, open_source
from fishweir.intake.sources.changes import ChangesSource
from fishweir.pipeline.batch import Job, MicroBatches
from fishweir.pipeline.home import Home, open_log
from fishweir.pipeline.offsets import heads
from fishweir.pipeline.settings import AHEAD
from fishweir.pipeline.wakeup import wake_up
from fishweir.records import dataclass

EXPIRE_EVERY = 1.0
"""Seconds between checks of an idle job for expired queries; each micro-batch checks, too."""
POLL, LONGEST_POLL = 0.05, 0.4
"""Seconds between polls of the sources, increasing while nothing changes. A commit wakes the runner immediately."""
AT_REST = 1.0
"""The maximum if no stream has a source to poll: another process may declare one."""


@dataclass(frozen=True)
class Progress:
    """The values that a progress bar shows."""

    arrived: int
    evaluated: int
    delivered: int
    queries: int
    idle: bool


class Feeder(Protocol):
    """Appends a streaming DataFrame to the log of its stream."""

    query: Any

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def drained(self) -> bool: ...


class Runner:
    def __init__(
        self,
        home: Home,
        catalog: Catalog,
        batches: MicroBatches,
        job: Job,
        service: DeliveryService,
        feeders: dict[str, Feeder],
        stopped: threading.Event,
        materializer: Materializer,
        opened: Mapping[str, Source],
        make_up: MakeUp,
        clock: Callable[[], float] = time.time,
        guard: Guard = Guard(),
        expire: Callable[[], object] = lambda: None,
    ) -> None:
        self.home, self.catalog, self.batches, self.job = home, catalog, batches, job
        self.service, self.feeders, self.stopped = service, feeders, stopped
        self.materializer, self.opened, self.clock = materializer, opened, clock
        self.make_up = make_up
        self.guard, self.refresh = guard, Refresh()
        self.sources: dict[int, Source] = {}
        self._seen: set[int] = set()
        """The streams whose sources have been opened, if they have any."""
        self.troubles: dict[int, str] = {}
        batches.troubled = self.troubles
        self._woken = threading.Event()
        batches.on_commit = self._on_commit
        service.on_settled = self._on_settled
        self.thread = threading.get_ident()
        self.version = -1
        self.idle_rounds = self._waiting = 0
        self._until_idle = self._shows_progress = False
        self._counting = threading.Lock()
        self.expire, self._expired = expire, -math.inf

    def run(
        self, until_idle: bool, on_progress: Callable[[Progress], None] | None, timeout: float | None = None
    ) -> None:
        ends = math.inf if timeout is None else time.monotonic() + timeout
        self.thread, self._until_idle = threading.get_ident(), until_idle
        self._shows_progress = on_progress is not None
        self._open_sources()
        pause = POLL
        with self._ending():
            self.service.start()
            self.job.start()
            while not self.stopped.is_set() and time.monotonic() < ends:
                busy = self.step()
                is_needed = until_idle or self._shows_progress or self._waiting > 0
                idle = is_needed and not busy and self._caught_up()
                self.idle_rounds += idle
                if on_progress is not None:
                    on_progress(self._progress(idle))
                if idle and until_idle:
                    break
                waits = not busy and not any(source.working for source in self.sources.values())
                longest = LONGEST_POLL if self.sources else AT_REST
                pause = min(longest, 1.25 * pause) if waits else POLL  # commits wake it
                if not busy:
                    self._woken.wait(min(pause, ends - time.monotonic()))
                    self._woken.clear()

    def _ending(self) -> ExitStack:
        """Ends everything that a run has started, in reverse order, regardless of errors."""
        ending = ExitStack()
        ending.callback(self.service.stop)
        ending.callback(self.materializer.pending)
        ending.callback(self._end_sources)
        ending.callback(self.job.stop)
        return ending

    def _end_sources(self) -> None:
        for feeder in list(self.feeders.values()):
            feeder.stop()
        for source in self.sources.values():
            _close(source)

    def wait_idle(self, timeout: float) -> bool:
        """Waits, in another thread, until a complete round after the call found nothing left to do.

        The first idle round may have started before the call; the second has not.
        """
        enough, ends = self.idle_rounds + 2, time.monotonic() + timeout
        with self._counting:
            self._waiting += 1
        try:
            while self.idle_rounds < enough and time.monotonic() < ends:
                self._woken.set()
                if self.stopped.wait(0.02):
                    break
        finally:
            with self._counting:
                self._waiting -= 1
        return self.idle_rounds >= enough

    def reopen_sources(self) -> None:
        """Reopens all sources in the next round, and looks for expired queries."""
        self.sources, self.refresh, self.version, self._expired = {}, Refresh(), -1, -math.inf
        self._seen = set()
        self.troubles.clear()

    def fetch(self) -> None:
        """Makes the sources that fetch do so, and waits for them: the next step takes the fetched items."""
        self._open_sources()
        fetching = [source for source in self.sources.values() if isinstance(source, Fetching)]
        for source in fetching:
            source.begin(self.clock())
        for source in fetching:
            source.wait()

    def step(self) -> bool:
        """One round. Returns whether anything happened."""
        if time.monotonic() >= self._expired + EXPIRE_EVERY:
            self.expire()
            self._expired = time.monotonic()
        self._open_sources()
        self._start_feeders()
        moved, ahead = 0, self.ahead()
        for id, source in self.sources.items():
            if ahead + moved > AHEAD:
                break
            moved += next(source.poll(self.clock()), 0)
            self._watch(id, source)
        if moved:
            wake_up(self.home)
        evaluated = self.job.step()
        delivered = self._deliver()
        passed_on = self.materializer.pending()
        if not (moved or evaluated or passed_on) and not self.ahead():
            passed_on = self._rest()
        if passed_on:
            wake_up(self.home)
        return bool(passed_on or moved or evaluated or delivered)

    def _rest(self) -> int:
        """Called when no entries wait. Once no outputs wait either, shedding ends and shed entries are made up for;
        earlier, they would be shed again. Returns the number of these entries.
        """
        shedder = self.batches.shedder
        if shedder is not None:
            if shedder.behind():
                return 0
            shedder.rest()
        return self.make_up.pending()

    def _deliver(self) -> int:
        """Delivers in this thread, unless the threads of the delivery service are running."""
        return 0 if self.service.is_running else self.service.step()

    def _on_commit(self) -> None:
        """Called by the job in its own thread. Wakes the loop unless it has nothing to do with this commit. `stop` does
        not wake it, since a signal handler may call it while the loop begins to wait: the next commit does.
        """
        self.service.committed(self.batches.last)
        is_watched = self._until_idle or self._waiting or self._shows_progress or self.stopped.is_set()
        is_read = self.materializer.reads(self.batches.last) or self.batches.shedder is not None
        if is_watched or is_read or self.sources or self.feeders:
            self._woken.set()

    def _on_settled(self) -> None:
        """Called by the delivery service in its own threads."""
        if self._until_idle or self._waiting:
            self._woken.set()

    def _open_sources(self) -> None:
        """Opens the sources of newly declared streams, possibly declared by another process."""
        version = self.catalog.version()
        if version == self.version:
            return
        self.version = version
        living = self.catalog.streams().values()
        for id in self.sources.keys() - {id for id, _ in living}:
            _close(self.sources.pop(id))
            self.troubles.pop(id, None)
        for id, stream in living:
            source = self.opened.get(stream.name)
            if id not in self._seen:
                self._seen.add(id)
                self.home.add_stream(id, stream)
                source = source or self._open(stream, open_log(self.home.streams, id))
            if source is not None:
                self.sources.setdefault(id, source)

    def _open(self, stream: StreamDefinition, log: StreamLog) -> Source | None:
        if stream.changes_of is None:
            return open_source(stream, log, Path.cwd(), self.guard, self.refresh)
        rows, _ = self.catalog.streams()[stream.changes_of]
        return ChangesSource(stream, log, open_log(self.home.streams, rows))

    def _start_feeders(self) -> None:
        """Starts the feeders of newly attached DataFrames."""
        for feeder in list(self.feeders.values()):
            if feeder.query is None:
                feeder.start()

    def _watch(self, id: int, source: Source) -> None:
        """Records the errors of a source for `status`; the source itself has logged them."""
        if source.trouble:
            self.troubles[id] = source.trouble
        else:
            self.troubles.pop(id, None)

    def ahead(self) -> int:
        """The number of unevaluated entries."""
        return sum(heads(self.home).values()) - sum(self.batches.offsets.values())

    def make_room(self, stream: str, backlog: int, wait: float | None) -> None:
        """Waits, in another thread, while more than `backlog` entries are unevaluated."""
        ends = math.inf if wait is None else time.monotonic() + wait
        while self.ahead() > backlog and threading.get_ident() != self.thread and not self.stopped.is_set():
            if time.monotonic() >= ends:
                raise BacklogError(
                    f"stream {stream}: {self.ahead():,} entries are waiting to be evaluated; the limit is {backlog:,}"
                )
            self.stopped.wait(0.02)

    def _caught_up(self) -> bool:
        if not all(feeder.drained() for feeder in list(self.feeders.values())):
            return False
        if any(source.working for source in self.sources.values()) or self.batches.between.working:
            return False
        evaluated = all(self.batches.offsets.get(id, 0) >= head for id, head in heads(self.home).items())
        return evaluated and self.service.is_idle() and not self.materializer.waiting() and not self.make_up.waiting()

    def _progress(self, idle: bool) -> Progress:
        arrived, evaluated = sum(heads(self.home).values()), sum(self.batches.offsets.values())
        return Progress(arrived, evaluated, self.service.delivered, self.batches.queries, idle)


def _close(source: Source) -> None:
    if isinstance(source, Fetching):
        source.close()
