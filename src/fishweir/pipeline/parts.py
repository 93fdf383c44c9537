"""The number of tasks of a micro-batch, depending on the amount of work.

A task maps the plan, writes files and reports, which takes some milliseconds regardless of its entries. A task must
therefore have enough work, estimated from the recent time per entry. The results do not depend on the number of tasks.
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


class Parts:
    def __init__(self) -> None:
        self.each = math.inf
        """Estimated seconds per entry. Before the first measurement, the number of tasks is not limited by it."""

    def count(self, entries: int, most: int) -> int:
        worth = most if math.isinf(self.each) else int(entries * self.each / WORTH)
        return max(1, min(most, entries // FEWEST, worth))

    def took(self, entries: int, seconds: float) -> None:
        if entries:
            self.each = min(SLOWLY * self.each, seconds / entries)


@dataclass(frozen=True)
class TimedCall:
    """A call whose summary contains its processor time."""

    call: Callable[[], Summary]

    def __call__(self) -> Summary:
        began = time.thread_time()
        summary = self.call()
        summary.seconds = time.thread_time() - began
        return summary
