"""Overload: whether more waits than can be processed within the target latency, and which share of it can be kept.

In: how many entries wait, and how long recent micro-batches took for how many documents. Out: the share to keep, 1.0
for all. The time per document is the median of recent micro-batches. Small ones are not counted, since what a
micro-batch costs whatever it holds weighs on them, nor is the first one of a process, which compiles. Shedding begins
when what waits would take longer than the target, and ends when it would take less than half of it (hysteresis). In
between it keeps what fits into four fifths, what leaving out costs included.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from fishweir.errors import QueryError

BEGIN, AIM, END = 1.0, 0.8, 0.5
"""Parts of the target latency: shedding begins above the first, aims at the second and ends below the third."""
RECENT = 10
ENOUGH = 1_000
"""Micro-batches of fewer documents say how fast documents are processed only if they took longer than the target."""
LEAST = 0.01
"""The least share that is kept, so that the speed goes on being measured."""


@dataclass
class Overload:
    """Whether the job sheds now; one for each run of the job."""

    latency: float
    shedding: bool = False
    _costs: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _left_out: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    """What it cost to leave a document out."""
    _warm: bool = False

    def __post_init__(self) -> None:
        if not self.latency > 0:
            raise QueryError(f"the target latency is a number of seconds above 0, not {self.latency}")

    def took(self, documents: int, seconds: float, shed: int = 0) -> None:
        """A micro-batch evaluated so many documents, and left out so many."""
        if shed and self._costs:
            self._left_out.append(max(0.0, seconds - documents * median(self._costs)) / shed)
        elif self._warm and documents and (documents >= ENOUGH or seconds > self.latency):
            self._costs.append(seconds / documents)
        self._warm = True

    def room(self, otherwise: int) -> int:
        """How many documents fit into half of the target; `otherwise` where that is not known."""
        return int(self.latency * END / median(self._costs)) if self._costs else otherwise

    def share(self, waiting: int) -> float:
        """The share of what waits that is kept."""
        if not self._costs:
            return 1.0
        cost, free = median(self._costs), median(self._left_out or [0.0])
        self.shedding = waiting * cost > self.latency * (END if self.shedding else BEGIN)
        if not self.shedding:
            return 1.0
        fits = (AIM * self.latency / waiting - free) / max(cost - free, cost / 100)
        return max(LEAST, min(1.0, fits))
