"""Measures delivery from committed results to targets: files, a web server, 100,000 subscribers, a million timers.

Results are committed first, so that only delivery is measured: collecting, reading, sending and recording. The web
server runs on the same machine in a separate process and stores what it acknowledges. Everything delivered is compared
with the committed results before a time is accepted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fishweir.papers.delivery.measures import (
    CALLS,
    FEED,
    FILES,
    HTTP,
    NAME,
    POSTS,
    SUBSCRIBED,
    TIMERS,
    many_timers,
    small_posts,
    to_callback,
    to_files,
    to_http,
    to_subscribers,
)
from fishweir.papers.experiment.closing import show_targets, warn_if_busy
from fishweir.papers.experiment.figures import Figure, Outcome, Target, about_run

PARTS: Mapping[str, tuple[Callable[[int], list[Figure]], int, int]] = {
    "files": (to_files, 200_000, 2_000),
    "callbacks": (to_callback, 200_000, 2_000),
    "http": (to_http, 20_000, 1_000),
    "posts": (small_posts, 5_000, 100),
    "subscribers": (to_subscribers, 100_000, 500),
    "timers": (many_timers, 1_000_000, 2_000),
}
"""Each part with its full size and its quick size."""
ONLY = tuple(PARTS)


def main(out: Path, quick: bool = False, only: Sequence[str] = ()) -> None:
    """Runs the whole experiment, or some parts. `quick` uses small sizes for a smoke test."""
    run(out, quick, Console(), only)


def run(out: Path, quick: bool, console: Console, only: Sequence[str] = ()) -> Outcome:
    outcome = Outcome(about_run("generated tuples", quick))
    with console.status("") as status:
        for name in only or ONLY:
            measure, size, small = PARTS[name]
            status.update(f"{name}: {small if quick else size:,}")
            outcome.figures += measure(small if quick else size)
            outcome.write(out, NAME)
    outcome.about["load_after"] = os.getloadavg()[0]
    outcome.targets = targets(outcome)
    outcome.write(out, NAME)
    show(outcome, console)
    console.print(f"Written: {out / NAME}.csv, .json", markup=False)
    return outcome


def targets(outcome: Outcome) -> list[Target]:
    """The targets of the parts that were run."""

    def at_least(name: str, case: str, wanted: int) -> Iterator[Target]:
        for one in outcome.find(case=case):
            rate = one.n / one.seconds
            yield Target(f"{wanted:,} {name}", f"{rate:,.0f}", rate >= wanted)

    found = [
        *at_least("results per second to files", FILES, 10_000),
        *at_least("results per second by `append`", FILES, 100_000),
        *at_least("results per second to callbacks", CALLS, 100_000),
        *at_least("results per second to web targets", HTTP, 1_000),
        *at_least("small POSTs per second", POSTS, 1_000),
        *at_least("subscriptions registered per second", SUBSCRIBED, 20_000),
    ]
    for feed in outcome.find(case=FEED):
        growth = float(feed.note.split("memory ")[1].split()[0])
        found.append(Target("subscribers with different intervals: constant memory", f"{growth:.2f}", growth < 1.1))
    if timers := outcome.find(case=TIMERS):
        ratio = timers[1].seconds / timers[0].seconds
        found.append(
            Target("a million timers: only due ones count", f"{ratio:.2f} times a round without them", ratio < 2)
        )
    return found


def show(outcome: Outcome, console: Console) -> None:
    table = Table("what", "number", "seconds", "per second", "processor seconds", "processor us each", "")
    for one in outcome.figures:
        rate, each = (
            (f"{one.n / one.seconds:,.0f}", f"{one.match_seconds / one.n * 1e6:,.0f}")
            if one.case != TIMERS
            else ("-", "-")
        )
        table.add_row(one.case, f"{one.n:,}", f"{one.seconds:.4f}", rate, f"{one.match_seconds:.4f}", each, one.note)
    console.print(table)
    show_targets(outcome.targets, console)
    warn_if_busy(outcome.about, console)
