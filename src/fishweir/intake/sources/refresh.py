"""Chooses the feeds to fetch next under a request budget: those that publish many items, and those about to drop items.

RoSeS (section 2, acquisition) requires a refresh strategy for limited bandwidth that considers saturation: a feed
contains only its last k items, and items that drop out before it is fetched are lost. Here, a feed that publishes r
items per second and was fetched d seconds ago costs r d^2 / 2 seconds of waiting until it is fetched, and LOST seconds
for each lost item. Intervals d that minimize the sum of these costs for a given number of requests make d c'(d) - c(d)
equal for all feeds at the moment of their fetch (Lagrange), where c is the cost of an interval. With Poisson arrivals,
that is

    urgency = r d^2 / 2 + LOST k P(N > k)        N: items in d seconds

so the next request goes to the feed with the greatest urgency. `urgency` and `chosen` are pure; `Refresh` keeps the
state. Rates are learned from the timestamps of the items of a feed, or else from the number of new items in each fetch,
and are adjusted by the daily pattern of all feeds together.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

LOST = 86_400.0
"""A lost item costs as much as one that waits for a day."""
MEMORY = 4 * 86_400.0
"""Seconds after which the weight of an observed rate has dropped to 1/e."""
SHORTEST, LONGEST = 60.0, 86_400.0
"""The minimum number of seconds between two fetches of a feed, and the maximum if the budget allows."""
EACH = 6.0
"""Requests per hour and feed, if no budget is set."""
SETTING = "FISHWEIR_FEED_REQUESTS"
HOUR = 3_600.0


def urgency(rates: Array, shown: Array, waited: Array) -> Array:
    """The cost of not fetching feeds now; all arrays have one value per feed."""
    return rates * waited**2 / 2 + LOST * shown * overflow(rates * waited, shown)


def overflow(expected: Array, shown: Array) -> Array:
    """P(N > k) for a Poisson variable, by Wilson and Hilferty's approximation of the gamma distribution."""
    a = shown + 1.0
    z = 3 * np.sqrt(a) * (np.cbrt(expected / a) - 1 + 1 / (9 * a))
    return np.asarray(0.5 * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z**3))))


def chosen(urgent: Array, waited: Array, requests: int) -> Array:
    """The positions of the feeds to fetch now, the most urgent first."""
    may = np.flatnonzero(waited >= SHORTEST)
    order = np.argsort(-np.where(waited[may] >= LONGEST, np.inf, urgent[may]), kind="stable")
    return np.asarray(may[order[:requests]])


class Rates:
    """Observations of feeds, one position each: rates, numbers of items, and times of the last fetch."""

    def __init__(self, count: int = 0) -> None:
        self.items, self.seconds = np.zeros(count), np.zeros(count)
        self.shown, self.fetched = np.full(count, 10.0), np.full(count, -np.inf)
        self.by_hour = np.full(24, 1.0)
        """Items of all feeds by hour of the day, with decaying weights."""

    def add(self) -> int:
        for name, value in (("items", 0.0), ("seconds", 0.0), ("shown", 10.0), ("fetched", -np.inf)):
            setattr(self, name, np.append(getattr(self, name), value))
        return len(self.items) - 1

    def observe(self, feed: int, now: float, times: Sequence[float], shown: int, new: float) -> None:
        """Records a fetch: the timestamps of the feed's items, their number, and the number of new ones."""
        since = now - self.fetched[feed]
        spans = now - np.sort(np.asarray(times, dtype=float)) if len(times) else np.empty(0)
        spans = spans[(spans >= 0) & (spans < 90 * 86_400.0)]
        if not np.isfinite(since):
            since = float(spans[0]) if len(spans) > 1 else 0.0
            new = len(spans) * min(1.0, MEMORY / max(since, 1.0))
            since = min(since, MEMORY)
        elif new >= shown > 0 and len(spans):  # some are lost: the current items determine the rate
            new = new * since / max(float(spans[0]), 1.0) if spans[0] < since else new
        fade = float(np.exp(-since / MEMORY))
        self.items[feed] = self.items[feed] * fade + new
        self.seconds[feed] = self.seconds[feed] * fade + since
        self.shown[feed], self.fetched[feed] = max(shown, 1), now
        recent = spans[-int(new) :] if 0 < new < len(spans) else spans if new else spans[:0]
        hours = ((now - recent) % 86_400.0 // HOUR).astype(int)
        np.add.at(self.by_hour, hours, 1.0)
        if self.by_hour.sum() > 50_000:
            self.by_hour *= 0.5

    def rates(self, now: float) -> Array:
        """The expected items per second since each feed's last fetch: its rate, adjusted by the time of day."""
        own = (self.items + 0.5) / (self.seconds + 43_200.0)
        return own * self._daily(now)

    def _daily(self, now: float) -> Array:
        """The ratio of publications between each feed's last fetch and now to the average."""
        profile = (self.by_hour + 10) / (self.by_hour + 10).mean()
        total = np.concatenate([[0.0], np.cumsum(np.tile(profile, 2))])
        waited = np.minimum(now - np.where(np.isfinite(self.fetched), self.fetched, now - HOUR), 86_400.0)
        end = now % 86_400.0 / HOUR + 24
        start = np.maximum(end - waited / HOUR, 0.0)
        hours = np.arange(len(total))
        passed = np.interp(end, hours, total) - np.interp(start, hours, total)
        return np.asarray(np.where(waited > 60, passed / np.maximum(end - start, 1e-9), profile[int(end) % 24]))


class Refresh:
    """Grants requests to feeds within the budget. A feed that was never fetched needs no grant."""

    def __init__(self, per_hour: float | None = None) -> None:
        given = os.environ.get(SETTING)
        self.per_hour = float(given) if per_hour is None and given else per_hour
        self.rates = Rates()
        self._places: dict[str, int] = {}
        self._free: list[int] = []
        self._granted: set[int] = set()
        self._left, self._allotted = 0.0, float("-inf")

    def observe(self, name: str, now: float, times: Sequence[float | None], new: int) -> None:
        if name not in self._places:
            self._places[name] = self._free.pop() if self._free else self.rates.add()
        self.rates.observe(self._places[name], now, [t for t in times if t is not None], len(times), new)

    def forget(self, name: str) -> None:
        place = self._places.pop(name, None)
        if place is not None:
            self.rates.items[place] = self.rates.seconds[place] = 0.0
            self.rates.fetched[place] = -np.inf
            self._free.append(place)

    def granted(self, name: str, now: float) -> bool:
        """Whether a feed may be fetched now. A grant is for one fetch."""
        place = self._places.get(name)
        if place is None:
            return True
        self._allot(now)
        if place not in self._granted:
            return False
        self._granted.discard(place)
        return True

    def _allot(self, now: float) -> None:
        """Allots requests, at most once per second."""
        if now < self._allotted + 1.0:
            return
        count = len(self._places)
        rate = (EACH * count if self.per_hour is None else self.per_hour) / HOUR
        since = now - self._allotted if np.isfinite(self._allotted) else 0.0
        self._left, self._allotted = min(self._left + since * rate, float(count)), now
        requests = int(self._left)
        if not requests:
            return
        waited = np.where(np.isfinite(self.rates.fetched), now - self.rates.fetched, -1.0)
        urgent = urgency(self.rates.rates(now), self.rates.shown, np.maximum(waited, 0.0))
        granted = chosen(urgent, waited, requests)
        self._left -= len(granted)
        self._granted |= set(granted.tolist())
