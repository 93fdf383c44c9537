"""Queues of claimed deliveries that are waiting for a sender, by host.

For a responsive host, more deliveries are claimed than are in flight, so that the next ones start without the
dispatcher, which in the meantime records many outcomes in one transaction. When a delivery fails, those queued behind
it are released untried.
"""

from __future__ import annotations

import queue
import threading
from collections import defaultdict, deque

from fishweir.delivery.outbox import Delivery
from fishweir.delivery.retries import PER_HOST

Group = list[Delivery]


class Lanes:
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

    def done(self, host: str, good: bool) -> tuple[list[Group], bool]:
        """Called when a group has been sent. Returns the groups queued behind it if it failed, and whether so few are
        left that more should be claimed."""
        with self._lock:
            waiting = self._waiting.get(host)
            if waiting and good:
                self._ready.put(waiting.popleft())
                return [], len(waiting) < PER_HOST
            self._sending[host] -= 1
            if not self._sending[host]:
                del self._sending[host]
            return list(self._waiting.pop(host, ())), True
