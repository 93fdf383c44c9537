"""The number of tasks of a micro-batch, depending on the amount of work.

A task maps the plan, writes files and reports, which takes some milliseconds whatever it evaluates. So its entries must
be worth it, by what entries took lately. Results do not depend on the cut.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from fishweir.pipeline.summary import Summary

FEWEST = 32
"""Entries that may be worth a task of their own."""
WORTH = 0.02
"""Seconds of the processor that are."""
SLOWLY = 1.25
"""By how much more an entry may be thought to take than before; less is believed at once, as small micro-batches, which
are mostly fixed cost, say little."""


class Parts:
    def __init__(self) -> None:
        self.each = math.inf
        """Seconds of an entry; before anything was measured, every part is worth it."""

    def count(self, entries: int, most: int) -> int:
        worth = most if math.isinf(self.each) else int(entries * self.each / WORTH)
        return max(1, min(most, entries // FEWEST, worth))

    def took(self, entries: int, seconds: float) -> None:
        if entries:
            self.each = min(SLOWLY * self.each, seconds / entries)


@dataclass(frozen=True)
class Timed:
    """A call whose summary says what it took."""

    call: Callable[[], Summary]

    def __call__(self) -> Summary:
        began = time.thread_time()
        summary = self.call()
        summary.seconds = time.thread_time() - began
        return summary
