"""Overload: whether more waits than can be processed within the target latency, and how much time there is for it.

In: how many entries wait, how long recent micro-batches took for how many documents, and how long the outputs took that
were constructed for deliveries and published streams. Out: a budget of seconds, None where all fits. The time per
document is the median of recent micro-batches. Small ones are not counted, since what a micro-batch costs whatever it
holds weighs on them, nor is the first one of a process, which compiles. Shedding begins when what waits would take
longer than four fifths of the target, and ends when it would take less than two fifths (hysteresis). In between three
fifths are the budget, what leaving out costs included: the rest of the target is for micro-batches and deliveries
themselves. Where outputs wait already, a micro-batch gets at least the time that passes until the next one, more or
less by how far what waits is from three fifths. So short micro-batches shed evenly, not all or nothing in turns.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from fishweir.errors import QueryError

BEGIN, AIM, END = 0.8, 0.6, 0.4
"""Parts of the target latency: shedding begins above the first, aims at the second and ends below the third."""
RECENT = 10
ENOUGH = 1_000
"""Micro-batches of fewer documents say how fast documents are processed only if they took longer than the target."""
FEWEST, SHORTEST = 100, 0.05
"""Outputs of fewer documents, made in fewer seconds, do not say what one costs: each delivery has a cost of its own."""
LEAST = 0.01
"""The least share that is kept, so that the speed goes on being measured."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds for what waits, and what a document costs: in a micro-batch, in constructing its outputs, and if it is
    left out."""

    seconds: float
    matching: float
    constructing: float = 0.0
    leaving_out: float = 0.0

    @property
    def whole(self) -> float:
        return self.matching + self.constructing


@dataclass
class Overload:
    """Whether the job sheds now; one for each run of the job."""

    latency: float
    shedding: bool = False
    deciding: float = 0.0
    """Seconds of processor time that all decisions took: other threads may have the interpreter meanwhile."""
    recording: float = 0.0
    """Seconds that writing them down took."""
    _costs: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _left_out: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    """What it cost to leave a document out."""
    _constructing: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _publishing: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _warm: bool = False

    def __post_init__(self) -> None:
        if not self.latency > 0:
            raise QueryError(f"the target latency is a number of seconds above 0, not {self.latency}")

    def took(self, documents: int, seconds: float, shed: int = 0, part: float = 1.0) -> None:
        """A micro-batch evaluated so many documents, and left out so many; `part` of the patterns' cost was spent."""
        if shed and self._costs:
            self._left_out.append(max(0.0, seconds - documents * part * median(self._costs)) / shed)
        elif self._warm and documents and (documents >= ENOUGH or seconds > self.latency):
            self._costs.append(seconds / documents / part)
        self._warm = True

    def constructed(self, documents: int, seconds: float, part: float = 1.0, published: bool = False) -> None:
        """Outputs of so many documents took so long, for deliveries or for published streams; `part` of them was
        constructed."""
        made = documents * part
        if made >= FEWEST or (made > 0 and seconds >= SHORTEST):
            (self._publishing if published else self._constructing).append(seconds / made)

    def room(self, otherwise: int) -> int:
        """How many documents fit into half of the target; `otherwise` where that is not known."""
        return int(self.latency * END / (median(self._costs) + self._per_output)) if self._costs else otherwise

    def budget(self, waiting: int, constructing: float = 0, passed: float = 0.0) -> Budget | None:
        """The time for what waits, while so many more documents wait for their outputs only. `passed` are the seconds
        since the last decision: as much passes until the next one."""
        if not self._costs:
            return None
        matching, output = median(self._costs), self._per_output
        busy = waiting * (matching + output) + constructing * output
        self.shedding = busy > self.latency * (END if self.shedding else BEGIN)
        if not self.shedding:
            return None
        room = AIM * self.latency - constructing * output
        meanwhile = min(passed, self.latency) * (1 + room / self.latency) if constructing else 0.0
        seconds = max(0.0, room, meanwhile)
        return Budget(seconds, matching, output, min(median(self._left_out or [0.0]), matching))

    @property
    def _per_output(self) -> float:
        return median(self._constructing or [0.0]) + median(self._publishing or [0.0])
