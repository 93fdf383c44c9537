"""Queues of claimed deliveries that are waiting for a sender, by host.

For a responsive host, more deliveries are claimed than are in flight, so that the next ones start without the
dispatcher, which in the meantime records many outcomes in one transaction. When a delivery fails, those queued after it
are released untried.
"""

from __future__ import annotations

import queue
import threading
from collections import defaultdict, deque
from typing import NamedTuple

from fishweir.delivery.outbox import Delivery
from fishweir.delivery.retries import PER_HOST, PREFETCH_FACTOR

Group = list[Delivery]

FEW = PER_HOST * PREFETCH_FACTOR // 4
"""The number of waiting groups of a host below which more are claimed."""


class Next(NamedTuple):
    """The next step after a group: another group for the same sender; if the group failed, the groups queued after it,
    which are not sent; and whether more should be claimed, which is the case when few are left, and again when none is.
    """

    group: Group | None
    behind: list[Group]
    claim: bool


class HostQueues:
    def __init__(self) -> None:
        self._ready: queue.SimpleQueue[Group | None] = queue.SimpleQueue()
        self._waiting: dict[str, deque[Group]] = defaultdict(deque)
        self._sending: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    @property
    def sending(self) -> int:
        """The number of groups that a sender has or may take."""
        with self._lock:
            return sum(self._sending.values())

    def put(self, group: Group) -> None:
        host = group[0].host
        with self._lock:
            if host and self._sending[host] >= PER_HOST:
                self._waiting[host].append(group)
                return
            self._sending[host] += 1
        self._ready.put(group)

    def take(self) -> Group | None:
        """The next group to send; None to stop."""
        return self._ready.get()

    def end(self, senders: int) -> None:
        for _ in range(senders):
            self._ready.put(None)

    def done(self, host: str, good: bool) -> Next:
        """Called when a group has been sent. Returns what comes next."""
        with self._lock:
            waiting = self._waiting.get(host)
            if waiting and good:
                return Next(waiting.popleft(), [], len(waiting) in (0, FEW))
            self._sending[host] -= 1
            if not self._sending[host]:
                del self._sending[host]
            return Next(None, list(self._waiting.pop(host, ())), True)
