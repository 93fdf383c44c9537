"""The lateness of a stream's items: the observations, stored with the stream, and the allowance that follows from them.

The lateness of an item is its distance behind the *front* of its stream: the newest event time so far. Its delay is the
time between its event time and its arrival. A quantile sketch counts both: a histogram with logarithmic buckets, in
which recent items weigh more. An item whose event time is later than its arrival does not move the front.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from fishweir.records import dataclass

if TYPE_CHECKING:  # reading saved observations needs no arrays
    import numpy as np
    from numpy.typing import NDArray

Times: TypeAlias = "NDArray[np.float64]"

TOLERANCE = 60.0
"""Seconds by which clocks of sources may be fast. Items further ahead of their arrival do not move the front."""
GROWTH = 1.2
"""The growth factor of the buckets: quantiles are exact to 20%."""
HALVED_AT = 100_000
"""Items after which the weight of all previous items is halved."""
RECENT = 1_000
"""The greatest lateness among the last one to two thousand items counts, even if it is rare: a replay may have
begun.
"""
LONGEST = 1e12
"""Seconds above which lateness is not distinguished."""
ENOUGH = 20
"""The number of items needed to know a stream's lateness. Up to a multiple of it, the margin is wider."""
MARGIN = 1.5
PROMPT = 1.0
"""Seconds within which the items of a prompt stream arrive."""
LEVELS = (0.999, 0.99, 0.95, 0.8, 0.5, 0.0)
"""The share of items that the allowance covers. It is reduced if the state would exceed its limit."""


@dataclass(frozen=True)
class Sketch:
    """Counts by bucket: bucket 0 counts values below a second, bucket i values below GROWTH ** i."""

    counts: dict[int, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(self.counts.values())

    def added(self, other: Sketch) -> Sketch:
        counts = dict(self.counts)
        for bucket, count in other.counts.items():
            counts[bucket] = counts.get(bucket, 0) + count
        total = sum(counts.values())
        return Sketch(counts if total <= HALVED_AT else {bucket: count / 2 for bucket, count in counts.items()})

    def quantile(self, share: float) -> float:
        """The value that this share of the items does not exceed."""
        left = share * self.total
        for bucket in sorted(self.counts):
            left -= self.counts[bucket]
            if left <= 1e-9:
                return GROWTH**bucket
        return 0.0


def _sketch(counts: Any) -> Sketch:
    buckets = counts.nonzero()[0]
    return Sketch(dict(zip(buckets.tolist(), counts[buckets].tolist(), strict=True)))


@dataclass(frozen=True)
class Lateness:
    """Knowledge about a stream's times: observations of some items, or of all so far."""

    front: float = -math.inf
    arrived: float = -math.inf
    """The arrival time of the last item."""
    items: int = 0
    late: Sketch = field(default_factory=Sketch)
    delay: Sketch = field(default_factory=Sketch)
    greatest: float = 0.0
    """The greatest lateness of the items since the last full thousand, and that of the previous thousand."""
    before: float = 0.0
    since: int = 0
    ahead: int = 0
    """The number of items whose event time is later than their arrival."""
    missed: int = 0
    """The number of items that were later than the allowance: their join partners may be gone."""

    def added(self, other: Lateness) -> Lateness:
        """These observations combined with those of later items."""
        greatest, since, before = max(self.greatest, other.greatest), self.since + other.items, self.before
        if since >= RECENT:
            greatest, since, before = 0.0, 0, greatest
        return Lateness(
            max(self.front, other.front),
            max(self.arrived, other.arrived),
            self.items + other.items,
            self.late.added(other.late),
            self.delay.added(other.delay),
            greatest,
            before,
            since,
            self.ahead + other.ahead,
            self.missed + other.missed,
        )

    def allowance(self, level: int = 0) -> float:
        """The expected lateness of items, learned from earlier ones. Each level covers fewer items."""
        if level:
            return self.late.quantile(LEVELS[min(level, len(LEVELS) - 1)])
        if self.items < ENOUGH:
            return math.inf
        margin = MARGIN * (1 + ENOUGH / self.items)
        return margin * max(self.late.quantile(LEVELS[0]), self.greatest, self.before)

    @property
    def usual_delay(self) -> float:
        """The usual upper bound of the delay of an item."""
        return MARGIN * self.delay.quantile(LEVELS[0])

    @property
    def is_prompt(self) -> bool:
        """Whether all items so far arrived within a second of their event times."""
        return bool(self.items) and not self.ahead and set(self.delay.counts) <= {0}

    def to_json(self) -> dict[str, Any]:
        finite = {name: value for name, value in vars(self).items() if value != -math.inf}
        return finite | {"late": list(self.late.counts.items()), "delay": list(self.delay.counts.items())}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Lateness:
        known = cls(**{name: value for name, value in raw.items() if name not in ("late", "delay")})
        return replace(known, late=Sketch(dict(raw.get("late", ()))), delay=Sketch(dict(raw.get("delay", ()))))


def observe(times: Times, arrivals: Times, front: float, watermark: float) -> Lateness:
    """The observations of some items in arrival order, for a stream that had reached `front`. Items older than
    `watermark`, by which documents were dropped, are missed.
    """
    if not len(times):
        return Lateness()
    from fishweir.pipeline.lateness_kernels import observe_times  # late: reading what was learned needs no kernels

    reached, arrived, greatest, ahead, missed, (late, delay) = observe_times(
        times, arrivals, front, watermark, TOLERANCE, LONGEST, GROWTH
    )
    return Lateness(reached, arrived, len(times), _sketch(late), _sketch(delay), greatest, ahead=ahead, missed=missed)
