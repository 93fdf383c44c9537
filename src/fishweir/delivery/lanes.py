"""Lanes: deliveries that were claimed and wait for a sender, by host.

More are claimed for a host that answers than are sent to it at a time, so that the next ones begin without the
dispatcher, which meanwhile writes down many outcomes by one transaction. Once a delivery fails, those that wait behind
it are given back: they were not tried.
"""

from __future__ import annotations

import queue
import threading
from collections import defaultdict, deque
from typing import NamedTuple

from fishweir.delivery.outbox import Delivery
from fishweir.delivery.retries import AHEAD, PER_HOST

Group = list[Delivery]

FEW = PER_HOST * AHEAD // 4
"""Groups that wait for a host, below which more are claimed."""


class Next(NamedTuple):
    """What comes after a group: another one for the same sender; where the group failed, those behind it, which are not
    sent; and whether more should be claimed, which is when few are left, and again when none is."""

    group: Group | None
    behind: list[Group]
    claim: bool


class Lanes:
    def __init__(self) -> None:
        self._ready: queue.SimpleQueue[Group | None] = queue.SimpleQueue()
        self._waiting: dict[str, deque[Group]] = defaultdict(deque)
        self._sending: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    @property
    def sending(self) -> int:
        """Groups that a sender has, or may take."""
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
        """The next group that may be sent; None for the end."""
        return self._ready.get()

    def end(self, senders: int) -> None:
        for _ in range(senders):
            self._ready.put(None)

    def done(self, host: str, good: bool) -> Next:
        """A group has been sent: what comes next."""
        with self._lock:
            waiting = self._waiting.get(host)
            if waiting and good:
                return Next(waiting.popleft(), [], len(waiting) in (0, FEW))
            self._sending[host] -= 1
            if not self._sending[host]:
                del self._sending[host]
            return Next(None, list(self._waiting.pop(host, ())), True)
