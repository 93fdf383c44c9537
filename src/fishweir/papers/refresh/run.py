"""Compares fetching feeds by need with fetching them at equal intervals, with the same number of requests.

The times of publication are real. Each feed shows its last k items, as feeds do. Both contestants see only what their
fetches return. The experiment measures the items that were missed because newer ones had displaced them, and the delay
from the publication of an item to its fetch. The first days are for learning and not counted. The decisions are those
of the engine (`intake/sources/refresh.py`); only the web is replayed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from fishweir.intake.sources.refresh import Rates, chosen, urgency
from fishweir.papers.experiment.closing import show_targets
from fishweir.papers.experiment.data import data_folder
from fishweir.papers.experiment.figures import Outcome, Target, about_run

NAME = "refresh"
HOUR, DAY = 3600.0, 86_400.0
WARM = 3 * DAY
EQUAL, BY_NEED = "all alike", "by need"
TICK = 60.0
"""Seconds between two decisions."""


@dataclass(frozen=True)
class Figure:
    """One run. `every` is the mean interval between two fetches of a feed."""

    contestant: str
    shown: int
    every_hours: float
    requests: int
    items: int
    missed: int
    mean_delay_hours: float
    seconds: float

    def point(self) -> tuple[str, float, float | None]:
        return f"{self.contestant}, {self.shown} shown", self.every_hours, self.missed


class Web:
    """Simulated feeds: the items that each shows at a time, and those that have been seen."""

    def __init__(self, times: list[Any], shown: int, start: float) -> None:
        self.times, self.shown, self.counted_from = times, shown, start + WARM
        self.seen = [int(np.searchsorted(own, start)) for own in times]
        self.requests = self.items = self.missed = 0
        self.delay = 0.0

    def fetch(self, feed: int, now: float) -> tuple[Any, int]:
        """The times of the items that a feed shows, and the number of new ones."""
        own, before = self.times[feed], self.seen[feed]
        end = int(np.searchsorted(own, now, side="right"))
        first = max(end - self.shown, 0)
        self.requests += 1
        if end > before:
            new = own[max(before, first) : end]
            new, lost = new[new >= self.counted_from], own[before : max(before, first)]
            self.items, self.delay = self.items + len(new), self.delay + float((now - new).sum())
            self.missed += int((lost >= self.counted_from).sum())
        self.seen[feed] = end
        return own[first:end], end - max(before, first) if end > before else 0


def equally(web: Web, every: float, start: float, stop: float) -> None:
    """Fetches one feed after the other, at equal intervals."""
    count = len(web.times)
    for request in range(int((stop - start) / every * count)):
        web.fetch(request % count, start + (request + 1) * every / count)


def by_need(web: Web, every: float, start: float, stop: float) -> None:
    """Fetches by the engine's decision, with the same number of requests."""
    count = len(web.times)
    rates, left, now, most = Rates(count), 0.0, start, int((stop - start) / every * count)
    while web.requests < most:
        now, left = now + TICK, left + TICK * count / every
        waited = np.minimum(now - rates.fetched, now - start + DAY)
        urgent = urgency(rates.rates(now), rates.shown, waited)
        for feed in chosen(urgent, waited, int(left))[: most - web.requests]:
            times, new = web.fetch(int(feed), now)
            rates.observe(int(feed), now, times, len(times), new)
            left -= 1


CONTESTANTS: dict[str, Callable[[Web, float, float, float], None]] = {EQUAL: equally, BY_NEED: by_need}


def main(out: Path, quick: bool = False) -> None:
    """Runs the whole experiment. `quick` uses small sizes for a smoke test."""
    run(out, quick, Console())


def run(out: Path, quick: bool, console: Console) -> Outcome:
    times, source = load_times(6 if quick else None)
    times = times[::4] if quick else times
    console.print(f"Data: {source}", markup=False, soft_wrap=True)
    outcome = Outcome(about_run(source, quick))
    cases = [(15, 6.0)] if quick else [(15, 1.0), (15, 3.0), (15, 6.0), (15, 12.0), (10, 6.0), (30, 6.0)]
    with console.status("") as status:
        for shown, hours in cases:
            for name in CONTESTANTS:
                status.update(f"{name}, {shown} items shown, every {hours:g} hours on average")
                outcome.figures.append(measure(name, times, shown, hours))
    outcome.targets = targets(outcome)
    outcome.write(out, NAME)
    show(outcome, console)
    console.print(f"Written: {out / NAME}.csv, .json", markup=False)
    return outcome


def load_times(days: float | None = None, seed: int = 5) -> tuple[list[Any], str]:
    """The sorted times of publication of each feed."""
    folder = data_folder("rss_items_2025")
    if folder is None:
        rng, length = np.random.default_rng(seed), days or 20
        rates = np.minimum(rng.zipf(1.5, 300) / 20, 150)
        times = [np.sort(rng.random(rng.poisson(rate * length)) * length * DAY) for rate in rates]
        source = f"generated: 300 feeds with rates by Zipf's law, {length:g} days"
    else:
        table = pq.read_table(folder / "items.parquet", columns=["ts", "channel_url"])
        when = table.column("ts").cast("timestamp[ms]").cast("int64").to_numpy() / 1e3
        _, feed = np.unique(table.column("channel_url").to_pylist(), return_inverse=True)
        if days is not None:
            feed, when = feed[when < when.min() + days * DAY], when[when < when.min() + days * DAY]
        times = [np.sort(when[feed == number]) for number in np.unique(feed)]
        source = f"{len(when):,} times of publication in {len(times)} feeds of rss_items_2025"
    return [own for own in times if len(own)], source


def measure(name: str, times: list[Any], shown: int, hours: float) -> Figure:
    start, stop = min(own[0] for own in times) + DAY, max(own[-1] for own in times)
    web, began = Web(times, shown, start), time.process_time()
    CONTESTANTS[name](web, hours * HOUR, start, stop)
    spent, delay = time.process_time() - began, web.delay / max(web.items, 1) / HOUR
    return Figure(name, shown, hours, web.requests, web.items, web.missed, delay, spent)


def targets(outcome: Outcome) -> list[Target]:
    goals = []
    for equal, need in zip(outcome.find(contestant=EQUAL), outcome.find(contestant=BY_NEED), strict=True):
        case = f"{need.shown} shown, every {need.every_hours:g} h"
        fewer = 1 - need.missed / max(equal.missed, 1)
        delay = need.mean_delay_hours / equal.mean_delay_hours
        assert need.requests == equal.requests
        goals.append(
            Target(
                f"{case}: 30% fewer items missed, or half the delay",
                f"{fewer:.0%} fewer missed, {delay:.2f} of the delay",
                fewer >= 0.3 or delay <= 0.5,
            )
        )
    return goals


def show(outcome: Outcome, console: Console) -> None:
    table = Table("shown", "mean interval", "fetched", "requests", "items missed", "mean delay", "ms per request")
    for f in outcome.figures:
        cost = f"{1000 * f.seconds / f.requests:.2f}"
        delay = f"{f.mean_delay_hours:.2f} h"
        cells = (str(f.shown), f"{f.every_hours:g} h", f.contestant, f"{f.requests:,}", f"{f.missed:,}", delay, cost)
        table.add_row(*cells)
    console.print(table)
    show_targets(outcome.targets, console)
