"""Retries: exponential backoff with jitter, and a circuit breaker per host.

A host that failed several times in a row gets no deliveries for a while; then a single delivery probes it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

INITIAL_BACKOFF, MAX_BACKOFF = 0.25, 3600.0
"""Seconds: the delay after the first failure, which doubles each time, and the maximum delay."""
GIVE_UP_AFTER, AT_LEAST = 3 * 86400.0, 10
"""A delivery becomes a dead letter after this age and this number of attempts."""
FAILURE_THRESHOLD = 5
"""Failures in a row that open the breaker of a host."""
PER_HOST = 8
"""Deliveries to one host at a time."""
PREFETCH_FACTOR = 32
"""How many times more deliveries are claimed than are in flight, for a responsive host. A claim costs the database
about the same for one delivery as for hundreds."""
SENDERS_FOR_FILES = 4
"""Senders that are reserved for local files."""


def backoff(attempts: int, after: float | None = None) -> float:
    """Seconds until the next attempt; `after` is the delay that the target requested."""
    grown = min(MAX_BACKOFF, INITIAL_BACKOFF * 2.0 ** min(attempts - 1, 30))
    return max(grown * random.uniform(0.8, 1.2), min(after or 0.0, 86400.0))


def is_exhausted(attempts: int, age: float) -> bool:
    return attempts >= AT_LEAST and age > GIVE_UP_AFTER


@dataclass
class _Host:
    failures: int = 0
    until: float = 0.0
    in_flight: int = 0
    answers: bool = False

    @property
    def at_once(self) -> int:
        """The maximum number of deliveries in flight; it shrinks with each consecutive failure."""
        return max(1, PER_HOST >> self.failures)

    @property
    def sending(self) -> int:
        return min(self.in_flight, self.at_once)


class CircuitBreaker:
    """The state of hosts; the empty name is the local machine, whose breaker never opens."""

    def __init__(self, senders: int) -> None:
        self.senders = senders
        self.hosts: dict[str, _Host] = {}
        self.busy: dict[str, _Host] = {}
        """The hosts with deliveries in flight."""

    def open_until(self, host: str, now: float) -> float | None:
        """The time until which a host gets no deliveries, or None."""
        state = self.hosts.get(host)
        return state.until if state is not None and state.until > now else None

    def has_room(self, host: str) -> bool:
        """Whether a host may get another delivery. Some senders are reserved for local files, and failing hosts get at
        most half of the senders. For a responsive host, more deliveries are claimed than are in flight.
        """
        if not host:
            return True
        state = self.hosts.get(host) or _Host()
        if state.sending < state.at_once:
            sending = sum(one.sending for one in self.busy.values())
            failing = sum(one.sending for one in self.busy.values() if one.failures)
            return sending < self.senders - SENDERS_FOR_FILES and not (state.failures and failing >= self.senders // 2)
        return state.answers and state.in_flight < PER_HOST * PREFETCH_FACTOR

    def full(self) -> list[str]:
        """The hosts without free capacity."""
        return [host for host in self.busy if not self.has_room(host)]

    def acquire(self, host: str) -> None:
        if host:
            state = self.busy[host] = self.hosts.setdefault(host, _Host())
            state.in_flight += 1

    def release(self, host: str) -> None:
        """Records that a delivery has ended, or was not started after all."""
        if host:
            state = self.hosts[host]
            state.in_flight -= 1
            if not state.in_flight:
                del self.busy[host]

    def record(self, host: str, good: bool, now: float) -> None:
        if not host:
            return
        self.release(host)
        state = self.hosts[host]
        state.answers = good
        if good:
            state.failures = 0
            if not state.in_flight:
                del self.hosts[host]
        elif state.until <= now:  # deliveries in flight when the breaker opened do not count
            state.failures += 1
            if state.failures >= FAILURE_THRESHOLD:
                state.until = now + backoff(state.failures - FAILURE_THRESHOLD + 3)
