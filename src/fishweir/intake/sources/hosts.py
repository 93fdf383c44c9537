"""A rate limit per host: a burst of requests, then a fixed rate.

Each host has a token bucket of size BURST that is refilled with RATE tokens per second (GCRA: one number per host, the
theoretical arrival time). All methods run in the fetching thread.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

RATE, BURST, AT_ONCE = 2.0, 20, 4
"""Per host: requests per second in the long run, the maximum burst, and the maximum number of concurrent requests."""


@dataclass
class Host:
    paid_until: float = float("-inf")
    open: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


class Hosts:
    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}

    def of(self, name: str) -> Host:
        return self._hosts.setdefault(name, Host())

    def turn(self, name: str, now: float) -> float:
        """Reserves the next request to a host and returns the seconds until it may be sent."""
        host = self.of(name)
        wait = max(host.paid_until - BURST / RATE - now, 0.0)
        host.paid_until = max(host.paid_until, now) + 1 / RATE
        return wait


HOSTS = Hosts()
