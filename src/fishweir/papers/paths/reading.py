"""`fishweir bench reading`: measures reading a document for many paths, and the savings of skipping parts of it.

In: generated news documents of NITF's shape and path queries as YFilter's generator draws them; documents of ten equal
parts. Both ways of reading are first checked to find the same nodes. They are then measured in turns on one thread, in
processor seconds: documents that are checked and read in one pass, against trees that libxml2 builds and writes out.
Then paths are suspended part by part, as in shedding.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path as FilePath
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from fishweir.algebra.documents import parse_document
from fishweir.evaluate.witnesses.automaton.automaton import PathAutomaton
from fishweir.evaluate.witnesses.automaton.batch import Batch
from fishweir.evaluate.witnesses.automaton.checking import are_ordinary
from fishweir.evaluate.witnesses.automaton.xpath import parse_xpath
from fishweir.evaluate.witnesses.shared_paths import FoundTables, SharedPaths
from fishweir.evaluate.witnesses.turns import Turns
from fishweir.papers.experiment.closing import show_targets, warn_if_busy
from fishweir.papers.experiment.contestants import Disagreement
from fishweir.papers.experiment.figures import Outcome, Target, about_run, pin_threads
from fishweir.papers.paths.news import PARTS, news, parted, paths_below
from fishweir.papers.paths.queries import Draw

NAME = "reading"
ROUNDS = 7
ONE_PASS, LIBXML2 = "one pass", "libxml2 first"
SKIPPED, MOST = 0.8, 0.4
"""Skipping the first share of the elements must reduce the time to at most the second share."""


@dataclass(frozen=True)
class Point:
    """Microseconds of processor time per document."""

    part: str
    n: float
    contestant: str
    microseconds: float
    ratio: float

    def point(self) -> tuple[str, float, float | None]:
        return f"{self.part}, {self.contestant}", self.n, self.ratio


def main(out: FilePath, quick: bool = False) -> None:
    run(out, quick, Console())


def run(out: FilePath, quick: bool, console: Console) -> Outcome:
    pin_threads()
    outcome = Outcome(about_run("generated news documents of NITF's shape", quick))
    bodies = [news(seed) for seed in range(30 if quick else 300)]
    for n in (100,) if quick else (100, 1_000, 10_000):
        outcome.figures += read_for(bodies, n)
    outcome.figures += skipping([parted(seed) for seed in range(20 if quick else 100)])
    outcome.about["load_after"] = os.getloadavg()[0]
    outcome.targets = targets(outcome)
    outcome.write(out, NAME)
    show(outcome, console)
    return outcome


def read_for(bodies: Sequence[bytes], n: int) -> list[Point]:
    """Measures both ways of reading, for n paths."""
    automaton = PathAutomaton()
    for text in islice(Draw([parse_document(body) for body in bodies[:50]], {}, "plain"), n):
        automaton.add(parse_xpath(text, {}))

    def one_pass() -> Batch:
        assert are_ordinary(bodies).all()
        return automaton.run(bodies)

    def libxml2_first() -> Batch:
        return automaton.run([parse_document(body) for body in bodies])

    _check(one_pass(), libxml2_first())
    fast, slow = (1e6 * best / len(bodies) for best in in_turns(one_pass, libxml2_first))
    return [Point("reading", n, ONE_PASS, fast, fast / slow), Point("reading", n, LIBXML2, slow, 1.0)]


def _check(one: Batch, other: Batch) -> None:
    for left, right in zip(one.expand(), other.expand(), strict=True):
        if not np.array_equal(left, right):
            raise Disagreement("the bytes of a document and its tree give different nodes")


def skipping(bodies: Sequence[bytes]) -> list[Point]:
    """Time by the share of the elements that only suspended paths need, relative to reading all of them."""
    shared = SharedPaths()
    shared.hold({"": {path: True for part in range(PARTS) for path in paths_below(part)}})

    def reader(parts: int) -> Callable[[], FoundTables]:
        suspended = frozenset(path for part in range(parts) for path in paths_below(part))
        return lambda: _walked(shared, bodies, Turns((1,), (suspended,)))

    ways = [reader(parts) for parts in range(0, PARTS, 2)]
    shares = [(found := way().counters()).skipped / found.elements for way in ways]
    times = in_turns(*ways)
    return [
        Point("skipping", round(share, 2), ONE_PASS, 1e6 * time / len(bodies), time / times[0])
        for share, time in zip(shares, times, strict=True)
    ]


def _walked(shared: SharedPaths, bodies: Sequence[bytes], turns: Turns) -> FoundTables:
    """Reads documents as a worker does, from the bodies to the path tables that queries read. Skipped parts are still
    checked."""
    assert are_ordinary(bodies).all()
    walk = shared.start(turns)
    for i, body in enumerate(bodies):
        walk.add(i, body)
    found = walk.tables()
    for path in found:  # builds the table
        assert len(found[path])
    return found


def in_turns(*ways: Callable[[], object]) -> list[float]:
    """The processor seconds of each function, called in turns. The fastest call counts: other work can only add
    time."""
    best = [float("inf")] * len(ways)
    for _ in range(ROUNDS):
        for i, way in enumerate(ways):
            began = process_time()
            way()
            best[i] = min(best[i], process_time() - began)
    return best


def targets(outcome: Outcome) -> list[Target]:
    ratios = [point.ratio for point in outcome.find(part="reading", contestant=ONE_PASS)]
    (share, ratio) = max((point.n, point.ratio) for point in outcome.find(part="skipping"))
    return [
        Target("one pass is faster than libxml2 first", f"at most {max(ratios):.0%} of its time", max(ratios) < 1),
        Target(
            f"skipping {SKIPPED:.0%} of the elements takes at most {MOST:.0%} of the time",
            f"{share:.0%} skipped: {ratio:.0%} of the time",
            ratio <= MOST,
        ),
    ]


def show(outcome: Outcome, console: Console) -> None:
    table = Table("part", "paths, or share skipped", "contestant", "µs per document", "ratio")
    for point in outcome.figures:
        table.add_row(point.part, f"{point.n:,g}", point.contestant, f"{point.microseconds:,.1f}", f"{point.ratio:.2f}")
    console.print(table)
    show_targets(outcome.targets, console)
    warn_if_busy(outcome.about, console)
