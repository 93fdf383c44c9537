"""Part `streams`: what a micro-batch and an idle job cost with many streams, and with many `NOT FOLLOWED BY` queries.

One document is published at a time, to one of the streams.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fishweir.engine.weir import Weir
from fishweir.papers.experiment.figures import Target
from fishweir.papers.way.part import Measured, Part, Setting, home_folder, settle, wait_for
from fishweir.papers.way.processor import Stopwatch

MOST_SECONDS, MOST_IDLE = 0.1, 0.02
"""Processor time of a micro-batch with one document, and of an idle job as a share of a core."""
ABSENCE = (
    "create query $name as D//book->x1[.//author->x2=$who] NOT FOLLOWED BY{x2=x4, 100000} D//blog->x3[.//author->x4]"
)


@dataclass(frozen=True)
class Sizes:
    streams: tuple[int, ...]
    absences: tuple[int, ...]
    rounds: int
    idle: float
    """Seconds in which the job is idle."""


WHOLE, QUICK = Sizes((1, 100, 1_000), (1, 1_000, 100_000), 20, 20.0), Sizes((1, 20), (1, 20), 2, 0.5)


@dataclass(frozen=True)
class Figure:
    """`count` streams or queries."""

    of: str
    count: int
    processor_ms_a_batch: float
    wall_ms_a_batch: float
    idle_share: float

    def point(self) -> tuple[str, float, float | None]:
        return self.of, self.count, None


def streams(weir: Weir, count: int) -> tuple[str, Any]:
    """Streams of which one has a query; returns the stream to publish to, and a document."""
    weir.execute(";\n".join(f"create stream S{i} (x int)" for i in range(count)))
    weir.execute("create query q as select x from S0 where x > 3")
    return "S0", {"x": 5}


def absences(weir: Weir, count: int) -> tuple[str, Any]:
    """`NOT FOLLOWED BY` queries for different authors, of which one has written a book."""
    weir.execute("create stream D")
    weir.register_many(ABSENCE, [{"name": f"q{i}", "who": f"a{i}"} for i in range(count)])
    return "D", "<book><author>a0</author></book>"


def measure(setting: Setting) -> Measured:
    sizes: Sizes = setting.sizes_of("streams", WHOLE, QUICK)
    figures = []
    kinds = ("streams", streams, sizes.streams), ("NOT FOLLOWED BY", absences, sizes.absences)
    for name, declare, counts in kinds:
        for count in counts:
            setting.say(f"{name}, {count:,}")
            figures.append(_measured(setting, name, declare, count, sizes))
    return Measured(figures, targets(figures))


def _measured(
    setting: Setting, name: str, declare: Callable[[Weir, int], tuple[str, Any]], count: int, sizes: Sizes
) -> Figure:
    with home_folder() as folder, Weir(folder, setting.spark) as weir:
        stream, document = declare(weir, count)
        weir.start()
        weir.publish(stream, [document])
        weir.wait_idle()
        settle(weir)
        watch = Stopwatch()
        time.sleep(sizes.idle)
        idle, rounds = watch.spent(), []
        for _ in range(sizes.rounds):
            watch = Stopwatch()
            weir.publish(stream, [document])
            wait_for(weir)
            rounds.append(watch.spent())
    return Figure(
        name,
        count,
        statistics.median(one.processor for one in rounds) * 1e3,
        statistics.median(one.wall for one in rounds) * 1e3,
        idle.processor / idle.wall,
    )


def targets(figures: list[Figure]) -> list[Target]:
    goals = []
    for one in figures:
        with_them = f"{one.count:,} {one.of}"
        spent = one.processor_ms_a_batch / 1e3
        goals += [
            Target(f"{with_them}: a document takes at most {MOST_SECONDS} s", f"{spent:.3f} s", spent <= MOST_SECONDS),
            Target(f"{with_them}: idle at most 2% of a core", f"{one.idle_share:.1%}", one.idle_share <= MOST_IDLE),
        ]
    return goals


PART = Part("streams", "Many streams", measure)
