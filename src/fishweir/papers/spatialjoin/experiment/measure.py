"""One measured point and its timing.

Times are processor times of the one working thread (for Spark, wall time), the least of several repetitions, since
other work on the machine can only add time. A contestant that would exceed its limit gets fewer tuples; its time per
tuple is then marked as extrapolated.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fishweir.papers.spatialjoin.experiment.contestants import Contestant
from fishweir.papers.spatialjoin.experiment.work import Floats, Work

FIRST = 8
REPETITIONS = 7


@dataclass(frozen=True)
class Point:
    """The measurement of one contestant at one work. `extrapolated` if fewer tuples than the experiment's were
    matched."""

    experiment: str
    work: str
    data: str
    queries: int
    attributes: int
    contestant: str
    build_seconds: float
    seconds_per_tuple: float
    matches_per_tuple: float
    tuples: int
    extrapolated: bool = False
    repetitions: int = 1
    rpred: float | None = None
    rskew: float | None = None
    ndc: int | None = None
    batch: int | None = None
    window: int | None = None
    ratio: float | None = None
    note: str = ""

    @property
    def microseconds(self) -> float:
        return 1e6 * self.seconds_per_tuple

    def point(self) -> tuple[str, float, float | None]:
        """The point. A join's batch and results depend on its speed, so they are omitted."""
        join = self.window is not None
        about = {
            "Rpred": self.rpred,
            "Rskew": self.rskew,
            "Ndc": self.ndc if self.note == "fixed" else None,
            "batch": None if join else self.batch,
        }
        words = (self.experiment, self.work, self.data, *(f"{k}={v:g}" for k, v in about.items() if v is not None))
        return ", ".join(words), self.queries, None if join else self.matches_per_tuple


@dataclass(frozen=True)
class Timed:
    seconds_per_tuple: float
    tuples: int
    repetitions: int


def time_label(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} µs"


def timed_build(make: Callable[[], Contestant]) -> tuple[Contestant, float]:
    """The contestant, and the wall seconds of registration."""
    began = time.perf_counter()
    contestant = make()
    return contestant, time.perf_counter() - began


def time_matching(contestant: Contestant, tuples: Floats, limit: float, whole: bool = False) -> Timed:
    """Times as many tuples as the limit's seconds allow, then as many repetitions; at least one of each.

    `whole`: all tuples in any case, for contestants for which a smaller batch would be another experiment.
    """
    contestant.match(tuples[:2])
    count, seconds = len(tuples) if whole else min(FIRST, len(tuples)), 0.0
    gc.collect()
    gc.disable()
    try:
        seconds = once(contestant, tuples[:count])
        while count < len(tuples) and seconds < limit / 4:
            grown = int(count * limit / 2 / max(seconds, 1e-6))
            count = min(len(tuples), grown, 8 * count)
            seconds = once(contestant, tuples[:count])
        best, repetitions, spent = seconds, 1, seconds
        while repetitions < REPETITIONS and spent + seconds < limit:
            seconds = once(contestant, tuples[:count])
            best, repetitions, spent = min(best, seconds), repetitions + 1, spent + seconds
    finally:
        gc.enable()
    return Timed(best / count, count, repetitions)


def measured_point(
    experiment: str,
    work: Work,
    contestant: Contestant,
    build_seconds: float,
    limit: float,
    whole: bool = False,
    **about: Any,
) -> Point:
    timed = time_matching(contestant, work.tuples, limit, whole)
    return Point(
        experiment,
        work.name,
        work.data,
        work.queries,
        work.attributes,
        contestant.name,
        build_seconds,
        timed.seconds_per_tuple,
        work.matches_per_tuple(),
        timed.tuples,
        timed.tuples < len(work.tuples),
        timed.repetitions,
        **about,
    )


def once(contestant: Contestant, tuples: Floats) -> float:
    """Matches batch after batch, discarding each batch's pairs before the next."""
    clock, total = type(contestant).clock, 0.0
    for start in range(0, len(tuples), contestant.batch):
        batch = tuples[start : start + contestant.batch]
        began = clock()
        found = contestant.match(batch)
        total += clock() - began
        del found
    return total
