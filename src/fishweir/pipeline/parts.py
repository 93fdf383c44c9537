"""The number of tasks of a micro-batch, depending on the amount of work.

A task maps the plan, writes files and reports, which takes some milliseconds regardless of its entries. A task must
therefore have enough work, estimated from the recent processor time per entry. Several tasks may also take longer than
one: if there is state, they read from files what the others have found, and the driver waits for them twice. One and
several are therefore compared by the time that the driver waited for micro-batches of similar size. The results do not
depend on the number of tasks.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
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
"""The driver must wait for several tasks for less than this share of the time of one, since they take more processor
time."""
TRIAL = 0.2
"""The estimated processor seconds up to which a single task is tried, to compare it with several."""
SURE = 3
"""The number of micro-batches of either kind that are compared: the first one also loads the plan, or the state."""
KNOWN = 300
"""The number of micro-batches after which an estimate that was not renewed is forgotten: the plan may have changed."""


class Parts:
    def __init__(self) -> None:
        self.used = Estimate()
        """Processor seconds per entry."""
        self._waited: dict[int, tuple[Estimate, Estimate]] = defaultdict(lambda: (Estimate(), Estimate()))
        """The seconds that the driver waits for one task, and for several, by the magnitude of the micro-batch."""

    def count(self, entries: int, most: int) -> int:
        worth = most if math.isinf(self.used.seconds) else int(entries * self.used.seconds / WORTH)
        parts = max(1, min(most, entries // FEWEST, worth))
        one, several = self._waited[entries.bit_length()]
        if parts == 1 or several.measured < SURE:
            return parts
        if one.measured < SURE:
            pays_off = entries * self.used.seconds > TRIAL
        else:
            pays_off = several.seconds < GAIN * one.seconds
        return parts if pays_off else 1

    def took(self, entries: int, seconds: float, waited: float, parts: int) -> None:
        """Takes note of the processor seconds of the tasks of a micro-batch, and the seconds that the driver waited."""
        if entries:
            self.used.add(seconds / entries)
            one, several = self._waited[entries.bit_length()]
            taken, other = (one, several) if parts == 1 else (several, one)
            taken.add(waited / entries)
            other.age()


class Estimate:
    """An estimated time per entry, infinite before the first measurement."""

    def __init__(self) -> None:
        self.seconds, self.measured, self._unused = math.inf, 0, 0

    def add(self, seconds: float) -> None:
        self.seconds, self.measured, self._unused = min(SLOWLY * self.seconds, seconds), self.measured + 1, 0

    def age(self) -> None:
        """Called when the estimate was not needed for a micro-batch."""
        self._unused += 1
        if self._unused > KNOWN:
            self.seconds, self.measured, self._unused = math.inf, 0, 0


@dataclass(frozen=True)
class TimedCall:
    """A call whose summary contains its processor time."""

    call: Callable[[], Summary]

    def __call__(self) -> Summary:
        began = time.thread_time()
        summary = self.call()
        summary.seconds = time.thread_time() - began
        return summary
