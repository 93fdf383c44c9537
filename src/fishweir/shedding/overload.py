"""Detects overload: whether the waiting entries exceed the target latency, and how much time is available for them.

In: the number of waiting entries, the times and numbers of documents of recent micro-batches, and the time spent on
constructing outputs for deliveries and published streams. Out: a budget in seconds, None if everything fits. The time
per document is the median of recent micro-batches. Small micro-batches are ignored, since their fixed cost dominates,
and so is the first one of a process, which compiles.

Shedding starts when the backlog would take longer than half of the target, and ends when it would take less than one
fifth (hysteresis). In between, the budget is two fifths, including the cost of leaving documents out: a document waits
for the micro-batch before its own, and then for its own, which together take four fifths.

Evaluated documents cannot be shed any more, so those that wait for their outputs reduce the budget. While there are
any, a micro-batch gets at least the time that passes until the next one, adjusted by the distance of the backlog from
two fifths of the target. Short micro-batches thus shed evenly, instead of alternating between everything and nothing.

The cost model predicts how much an output costs without some patterns. The saving that is measured is smaller, since
part of the cost of a result does not depend on its patterns, so predictions are corrected by the ratio of the two.
"""

from __future__ import annotations

from collections import deque
from dataclasses import field
from statistics import median

from fishweir.errors import QueryError
from fishweir.records import dataclass

BEGIN, AIM, END = 0.5, 0.4, 0.2
"""Shares of the target latency: shedding starts above the first, aims at the second and ends below the third."""
RECENT = 10
ENOUGH = 1_000
"""Micro-batches with fewer documents are used to estimate the speed only if they took longer than the target."""
FEWEST, SHORTEST = 100, 0.05
"""Outputs of fewer documents that also took fewer seconds are not used to estimate the cost per output: each delivery
has a fixed cost.
"""
REALIZED = 0.75
"""The usual share of the predicted savings of outputs that is realized, until it has been measured."""
CUT = 0.95
"""The predicted share of the cost of outputs below which savings are measured."""
LEAST = 0.01
"""The minimum share that is kept, so that the speed is still measured."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds for the waiting entries, and the cost of a document: in a micro-batch, for constructing its outputs, and
    if it is left out.
    """

    seconds: float
    matching: float
    constructing: float = 0.0
    leaving_out: float = 0.0
    realized: float = 1.0
    """The share of the predicted savings of outputs that is realized."""

    @property
    def whole(self) -> float:
        return self.matching + self.constructing

    def cost(self, matching: float, constructing: float) -> float:
        """The cost of a document without some patterns, for the predicted shares of the two costs."""
        return matching * self.matching + remaining(constructing, self.realized) * self.constructing


def remaining(part: float, realized: float) -> float:
    """The remaining share of a cost, if `part` was predicted and this share of the savings is realized."""
    return 1 - realized * (1 - part)


@dataclass
class Overload:
    """Whether the job is shedding; one object per run of the job."""

    latency: float
    shedding: bool = False
    deciding: float = 0.0
    """Processor time of all decisions in seconds, since other threads may hold the interpreter in the meantime."""
    choosing: float = 0.0
    """The part of it in which FastShed chose; the rest is weighing patterns and preferences."""
    recording: float = 0.0
    """Seconds spent on recording decisions."""
    _costs: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _left_out: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    """The cost of leaving out a document."""
    _constructing: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _publishing: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _realized: deque[float] = field(default_factory=lambda: deque([REALIZED] * (RECENT // 2), RECENT))
    """Measured by predicted savings of outputs without some patterns, at first the usual ratio: the first measurements
    come only after everything has been delivered that was evaluated before, and a single one may be wrong."""
    _warm: bool = False

    def __post_init__(self) -> None:
        if not self.latency > 0:
            raise QueryError(f"the target latency must be a number of seconds above 0, not {self.latency}")

    def took(self, documents: int, seconds: float, shed: int = 0, part: float = 1.0) -> None:
        """Records a micro-batch; `shed` documents were left out, and `part` of the patterns' cost was spent."""
        if shed and self._costs:
            self._left_out.append(max(0.0, seconds - documents * part * median(self._costs)) / shed)
        elif self._warm and documents and (documents >= ENOUGH or seconds > self.latency):
            self._costs.append(seconds / documents / part)
        self._warm = True

    def constructed(self, documents: int, seconds: float, part: float = 1.0, published: bool = False) -> None:
        """Records the time for constructing the outputs of some documents, for deliveries or for published streams.
        Without the patterns that were left out, `part` of the cost was predicted.
        """
        if documents < FEWEST and (documents == 0 or seconds < SHORTEST):
            return
        costs = self._publishing if published else self._constructing
        measured = seconds / documents
        if part < CUT and costs:
            whole = median(costs)
            self._realized.append(min(1.0, max(0.0, 1 - measured / whole) / (1 - part)))
            if measured > whole:  # everything has become slower
                costs.append(measured)
        elif part > 0:
            costs.append(measured / part)

    @property
    def realized(self) -> float:
        """The share of the predicted savings of outputs that is realized."""
        return median(self._realized)

    def room(self, otherwise: int) -> int:
        """The number of documents that take two fifths of the target; `otherwise` if that is unknown."""
        return int(self.latency * AIM / (median(self._costs) + self._per_output)) if self._costs else otherwise

    def budget(self, waiting: int, constructing: float = 0, passed: float = 0.0) -> Budget | None:
        """The time for the waiting entries, while `constructing` more documents wait only for their outputs. `passed`
        is the number of seconds since the last decision: the same time is expected to pass until the next one.
        """
        if not self._costs:
            return None
        matching, output = median(self._costs), self._per_output
        busy = waiting * (matching + output) + constructing * output
        self.shedding = busy > self.latency * (END if self.shedding else BEGIN)
        if not self.shedding:
            return None
        room = AIM * self.latency - constructing * output
        until_next = min(passed, self.latency) * (1 + room / (AIM * self.latency)) if constructing else 0.0
        seconds = max(0.0, room, until_next)
        leaving_out = min(median(self._left_out or [0.0]), matching)
        return Budget(seconds, matching, output, leaving_out, self.realized)

    @property
    def _per_output(self) -> float:
        return median(self._constructing or [0.0]) + median(self._publishing or [0.0])
