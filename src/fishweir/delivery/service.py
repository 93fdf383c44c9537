"""The delivery service: collects committed results, fires timers and sends what is due, in the background.

It has three kinds of daemon threads: the collector (adds commits and due timers to the outbox), the dispatcher (claims
due deliveries, records outcomes), and at most `MAX_SENDERS` senders. A hanging target occupies one sender, a host at
most a few, and the job is never blocked. `step` does the same once, in order, in the calling thread, for tests.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from fishweir.catalog.database import Database
from fishweir.delivery.collector import Collector
from fishweir.delivery.contents import Contents
from fishweir.delivery.direct import Direct
from fishweir.delivery.host_queues import HostQueues
from fishweir.delivery.outbox import DUE_TARGETS_PER_CLAIM, Delivery, Outbox, Outcome
from fishweir.delivery.outputs.registry import Outputs
from fishweir.delivery.retries import CircuitBreaker
from fishweir.delivery.routing import Routing
from fishweir.delivery.sending import Sender, Sent
from fishweir.delivery.sending_files import grouped, send_group
from fishweir.delivery.timers import Timers
from fishweir.errors import CannotWrite, HomeError
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.results import ResultReader

logger = logging.getLogger("fishweir.delivery")

MAX_SENDERS = 128
MAX_CLAIMED = 4096
"""The maximum number of deliveries that are claimed and not settled yet. All senders together may prefetch as many, so
that unresponsive hosts leave room for others."""
SKIP_FULL_HOSTS_EVERY = 0.2
"""Seconds between searches for due targets that skip the hosts without free capacity."""
POLL_INTERVAL = 1.0
"""Seconds between polls, independent of the clock and of other processes."""
CLAIM_INTERVAL = 0.05
"""Seconds between claims while there is enough to send. Outcomes are recorded immediately: what was acknowledged must
not be sent again after a crash."""
ENOUGH = 64
"""Deliveries in flight above which the next claim waits longer. Senders ask for more when few are left."""
IDLE_AFTER_ATTEMPTS = 6
"""The number of attempts after which a failing delivery no longer prevents idleness."""
IDLE_RETRY_WINDOW = 10.0


class DeliveryService:
    def __init__(
        self,
        database: Database,
        table: ResultsTable,
        reader: ResultReader,
        outputs: Outputs,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.clock = clock
        routing = Routing(database, table, reader)
        contents = Contents(table, reader, routing)
        self.outbox, self.breaker = Outbox(database), CircuitBreaker(MAX_SENDERS)
        self.timers = Timers(database)
        self.sender = Sender(self.outbox, contents, outputs, clock)
        self.delivered = 0
        self.on_settled: Callable[[], None] = lambda: None
        """Called when the last delivery in flight has ended, or commits have been collected."""
        self._busy: set[int] = set()
        self._queues = HostQueues()
        self._done: queue.SimpleQueue[Sent] = queue.SimpleQueue()
        self._collect, self._dispatch, self._stopped = threading.Event(), threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._senders = 0
        self._more = True
        """Set when there may be something to claim, or room for it."""
        self._polling = threading.Lock()
        self._moving = threading.Lock()
        """Held while deliveries move between the outbox and the senders."""
        self._skipped_full_hosts_at = 0.0
        direct = Direct(self.outbox, outputs, self._busy, self._moving)
        self.collector = Collector(database, table, routing, contents, direct)
        self._quiet_since = time.monotonic()
        self._damage: HomeError | None = None
        """The reason why results can no longer be read."""
        self.outbox.restart(clock())

    # In the calling thread

    def step(self) -> int:
        """Collects, fires and sends everything that is due, and returns the number of delivered results."""
        before = self.delivered
        self.collector.catch_up()
        try:
            self._poll()
        finally:
            if started := self.collector.started():
                self._settle([self.sender.send(delivery) for delivery in started])
        while claimed := self._claim():
            groups = grouped(self.sender, claimed)
            self._settle([sent for group in groups for sent in send_group(self.sender, group)])
        return self.delivered - before

    # In separate threads

    @property
    def is_running(self) -> bool:
        return bool(self._threads)

    def start(self) -> None:
        self._stopped.clear()
        self._damage = None
        self.collector.catch_up()
        self._record()  # deliveries that ended too late for the previous run and are due again
        self.outbox.restart(self.clock())
        for loop in (self._collect_loop, self._dispatch_loop):
            thread = threading.Thread(target=loop, name=f"fishweir{loop.__name__}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def committed(self, commit: Commit) -> None:
        """Called by the job after each commit. Wakes the collector only if it may find something to deliver."""
        if self._polling.acquire(blocking=False):
            try:
                if self.collector.skip(commit):
                    return
            finally:
                self._polling.release()
        self.wake()

    def wake(self) -> None:
        """Signals a new commit."""
        self._collect.set()

    def stop(self, patience: float = 5.0) -> None:
        """Ends the threads. Deliveries in flight get some time; the next run resends those that do not end in time."""
        self._collect_last()
        ends = time.monotonic() + patience
        while self._busy and time.monotonic() < ends:
            self._dispatch.set()
            time.sleep(0.01)
        self._stopped.set()
        self._collect.set()
        self._dispatch.set()
        for thread in self._threads:
            thread.join()  # it ends after its current step; otherwise it would continue in the next run
        self._guarded(self._record)
        while self._busy and time.monotonic() < ends:  # the last step may have claimed more
            time.sleep(0.01)
            self._guarded(self._record)
        self._queues.end(self._senders)
        self._queues = HostQueues()
        self._threads, self._senders = [], 0

    def _collect_last(self) -> None:
        """Adds all commits so far to the outbox before the threads end."""
        if self._threads and self._damage is None:
            self._guarded(self._poll_and_start)

    def is_idle(self) -> bool:
        """Whether nothing waits: no commit, no timer, no delivery that is in flight or due, and none that failed only a
        few times and will be retried soon.
        """
        if self._damage is not None:
            raise self._damage
        if self._is_busy(now := self.clock()):
            self._quiet_since = time.monotonic()
            return False
        patient = time.monotonic() - self._quiet_since < IDLE_RETRY_WINDOW
        return not (patient and self.outbox.has_early_retry(now, IDLE_RETRY_WINDOW, IDLE_AFTER_ATTEMPTS))

    def _is_busy(self, now: float) -> bool:
        """Checks in the direction in which results move (commits, timers, outbox, senders), so that results that move
        during the check are not missed.
        """
        if self._busy or self.collector.waiting():
            return True
        if not self.collector.has_subscribers:
            return False
        timer = self.timers.next()
        if timer is not None and timer <= now:
            return True
        with self._moving:
            due = self.outbox.next_due()
            return bool(self._busy or self.outbox.gathering or (due is not None and due <= now))

    def _poll(self, start: Callable[[], None] = lambda: None) -> None:
        with self._polling:
            self._poll_once(start)

    def _poll_once(self, start: Callable[[], None]) -> None:
        now, before = self.clock(), self.collector.batch
        self.outbox.release(now)
        self.collector.collect(now, start)
        if self.collector.has_subscribers:
            self.timers.fire(now)
        if self.collector.batch != before:
            self.on_settled()

    def _poll_and_start(self) -> None:
        try:
            self._poll(self._start_deliveries)
        finally:
            self._start_deliveries()

    def _start_deliveries(self) -> None:
        """Starts the deliveries of the commits that have been collected."""
        for delivery in self.collector.started():
            self._submit([delivery])
        if self.collector.has_subscribers:
            self._more = True
            self._dispatch.set()

    def _collect_loop(self) -> None:
        while not self._stopped.is_set():
            self._guarded(self._poll_and_start)
            self._wait(self._collect, self._next_timer)

    def _dispatch_loop(self) -> None:
        claimed_at = -math.inf
        while not self._stopped.is_set():
            self._guarded(self._record)
            enough = len(self._busy) >= ENOUGH
            if self._more or time.monotonic() >= claimed_at + CLAIM_INTERVAL * (4 if enough else 1):
                claimed_at, self._more = time.monotonic(), False
                claimed = self._guarded(self._claim) or []
                for group in grouped(self.sender, claimed):
                    self._submit(group)
                if (
                    len(claimed) >= DUE_TARGETS_PER_CLAIM
                ):  # there may be more; claiming one at a time costs as much as claiming many
                    self._more = True
                    continue
            self._wait(self._dispatch, self.outbox.next_due, CLAIM_INTERVAL)

    def _wait(self, event: threading.Event, due: Callable[[], float | None], least: float = 0.02) -> None:
        """Waits until the event is set, or something is due."""
        at = self._guarded(due)
        seconds = POLL_INTERVAL if at is None else min(max(at - self.clock(), least), POLL_INTERVAL)
        event.wait(seconds)
        event.clear()

    def _next_timer(self) -> float | None:
        return self.timers.next() if self.collector.has_subscribers else None

    def _guarded(self, act: Callable[[], Any]) -> Any:
        """Runs a step of a thread. If the database is locked beyond its timeout, the threads continue. Damage stops the
        job.
        """
        try:
            return act()
        except Exception as error:
            if isinstance(error, HomeError) and not isinstance(error, CannotWrite):
                self._damage = error
            else:
                logger.exception("delivery continues after an error")
            self._stopped.wait(0.5)
            return None

    def _claim(self) -> list[Delivery]:
        with self._moving:
            return self._claim_due()

    def _claim_due(self) -> list[Delivery]:
        most = MAX_CLAIMED - len(self._busy)
        if most <= 0 or not self.collector.has_subscribers:
            return []
        now = self.clock()
        room: dict[str, int] = {}

        def may(host: str) -> float | None:
            until = self.breaker.open_until(host, now)
            if until is not None:
                return until
            if not self.breaker.has_room(host):
                return 0.0
            self.breaker.acquire(host)
            room[host] = room.get(host, 0) + 1
            return None

        claimed = self.outbox.claim(now, most, may, self._busy)
        if (
            not claimed
            and time.monotonic() > self._skipped_full_hosts_at + SKIP_FULL_HOSTS_EVERY
            and (full := self.breaker.full())
        ):
            self._skipped_full_hosts_at = time.monotonic()
            claimed = self.outbox.claim(now, most, may, self._busy, full)
        for delivery in claimed:
            room[delivery.host] -= 1
        for host, left in room.items():
            for _ in range(left):  # due, but delayed for another reason
                self.breaker.release(host)
        self._busy |= {delivery.target for delivery in claimed}
        return claimed

    def _submit(self, group: list[Delivery]) -> None:
        self._queues.put(group)
        with self._moving:  # the collector moves deliveries, too
            if self._senders >= min(MAX_SENDERS, self._queues.sending):
                return
            self._senders += 1
        sending = threading.Thread(target=self._send_loop, args=(self._queues,), name="fishweir_sending", daemon=True)
        sending.start()

    def _send_loop(self, queues: HostQueues) -> None:
        group = queues.take()
        while group is not None:
            done = send_group(self.sender, group)
            for sent in done:
                self._done.put(sent)
            following = queues.done(group[0].host, all(outcome.error is None for outcome, _ in done))
            for delivery in (delivery for waiting in following.behind for delivery in waiting):
                self._done.put((Outcome(delivery, tried=False), 0))
            if following.claim:
                self._more = True
            self._dispatch.set()
            group = following.group or queues.take()

    def _record(self) -> None:
        done = []
        while not self._done.empty():
            done.append(self._done.get())
        try:
            if done:
                self._settle(done)
        except BaseException:  # the database was locked for too long
            for sent in done:
                self._done.put(sent)
            raise

    def _settle(self, done: list[Sent]) -> None:
        with self._moving:
            self._settle_all(done)

    def _settle_all(self, done: list[Sent]) -> None:
        now = self.clock()
        self.outbox.settle([outcome for outcome, _ in done], now)
        for outcome, count in done:
            self._busy.discard(outcome.delivery.target)
            if outcome.tried:
                self.breaker.record(outcome.delivery.host, outcome.error is None, now)
            else:
                self.breaker.release(outcome.delivery.host)
            self.delivered += count
        if not self._busy:
            self.on_settled()
