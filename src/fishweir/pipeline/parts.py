"""The number of tasks of a micro-batch, depending on the amount of work.

A task maps the plan, writes files and reports, which takes some milliseconds regardless of its entries. A task must
therefore have enough work, estimated from the recent time per entry. Several tasks may also take more time together
than one: if there is state, each reads from files what the others have found. One and several are therefore compared by
what they took. The results do not depend on the number of tasks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from fishweir.pipeline.summary import Summary
from fishweir.records import dataclass

FEWEST = 32
"""The minimum number of entries of a task."""
WORTH = 0.02
"""The minimum processor time of a task in seconds."""
SLOWLY = 1.25
"""The factor by which the estimated time per entry may grow per micro-batch. It may drop at once: small micro-batches
say little, since most of their cost is fixed.
"""
GAIN = 0.8
"""Several tasks must take less than this share of the time of one."""
TRIAL = 0.2
"""The estimated processor seconds up to which a single task is tried, to compare it with several."""
SURE = 3
"""The number of micro-batches with several tasks that are compared: the first one also loads the plan."""
KNOWN = 300
"""The number of micro-batches after which an estimate that was not renewed is forgotten: the plan may have changed."""


class Parts:
    def __init__(self) -> None:
        self.one, self.several = Estimate(), Estimate()

    def count(self, entries: int, most: int) -> int:
        one, several = self.one.each, self.several.each
        least = min(one, several)
        worth = most if math.isinf(least) else int(entries * least / WORTH)
        parts = max(1, min(most, entries // FEWEST, worth))
        if parts == 1 or self.several.measured < SURE:
            return parts
        pays_off = entries * several > TRIAL if math.isinf(one) else several / parts < GAIN * one
        return parts if pays_off else 1

    def took(self, entries: int, seconds: float, parts: int) -> None:
        if entries:
            used, other = (self.one, self.several) if parts == 1 else (self.several, self.one)
            used.add(seconds / entries)
            other.age()


class Estimate:
    """The estimated processor seconds per entry, infinite before the first measurement."""

    def __init__(self) -> None:
        self.each, self.measured, self._unused = math.inf, 0, 0

    def add(self, each: float) -> None:
        self.each, self.measured, self._unused = min(SLOWLY * self.each, each), self.measured + 1, 0

    def age(self) -> None:
        """Called when the estimate was not needed for a micro-batch."""
        self._unused += 1
        if self._unused > KNOWN:
            self.each, self.measured, self._unused = math.inf, 0, 0


@dataclass(frozen=True)
class TimedCall:
    """A call whose summary contains its processor time."""

    call: Callable[[], Summary]

    def __call__(self) -> Summary:
        began = time.thread_time()
        summary = self.call()
        summary.seconds = time.thread_time() - began
        return summary
