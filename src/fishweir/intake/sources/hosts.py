"""A rate limit per host: a burst of requests, then a fixed rate.

Each host has a token bucket of size BURST that is refilled with RATE tokens per second (GCRA: one number per host, the
theoretical arrival time). All methods run in the fetching thread.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

RATE, BURST, AT_ONCE = 2.0, 20, 4
"""Of one host: requests a second in the long run, requests that may come together, and that are open at a time."""


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
        """Takes the next turn at a host: the seconds until it comes."""
        host = self.of(name)
        wait = max(host.paid_until - BURST / RATE - now, 0.0)
        host.paid_until = max(host.paid_until, now) + 1 / RATE
        return wait


HOSTS = Hosts()
