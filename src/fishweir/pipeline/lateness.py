"""How late a stream's items are: what is observed of it, kept with the stream, and the allowance that follows.

Lateness is how far an item lies behind the *front* of its stream: the newest event time so far. The delay of an item is
how long after its event time it arrives. Both are counted in a sketch of quantiles: a histogram with logarithmic
buckets, in which recent items weigh more. An item whose time lies ahead of its arrival does not move the front.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # who only reads what was learned needs no arrays
    import numpy as np
    from numpy.typing import NDArray

Times: TypeAlias = "NDArray[np.float64]"

TOLERANCE = 60.0
"""Seconds by which clocks of sources may be fast: what lies further ahead of its arrival does not move the front."""
GROWTH = 1.2
"""The width of a bucket: quantiles are exact to 20%."""
HALVED_AT = 100_000
"""Items after which the weight of all so far is halved."""
RECENT = 1_000
"""The greatest lateness among the last one to two thousand items counts, however rare it is: a replay has begun."""
LONGEST = 1e12
"""Seconds beyond which lateness is not told apart."""
ENOUGH = 20
"""Items before which nothing is known of a stream's lateness; up to some times as many the margin is wider."""
MARGIN = 1.5
PROMPT = 1.0
"""Seconds within which the items of a prompt stream arrive."""
LEVELS = (0.999, 0.99, 0.95, 0.8, 0.5, 0.0)
"""The share of items that the allowance covers: less where the state would become larger than its limit."""


@dataclass(frozen=True)
class Sketch:
    """Counts by bucket: number 0 holds what is below a second, number i what is below GROWTH ** i."""

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
        """What this share of the items does not exceed."""
        left = share * self.total
        for bucket in sorted(self.counts):
            left -= self.counts[bucket]
            if left <= 1e-9:
                return GROWTH**bucket
        return 0.0


def sketch_of(seconds: Times) -> Sketch:
    import numpy as np

    buckets = np.where(seconds < 1, 0, 1 + np.floor(np.log(np.maximum(seconds, 1)) / math.log(GROWTH)))
    found, counts = np.unique(buckets.astype(np.int64), return_counts=True)
    return Sketch(dict(zip(found.tolist(), counts.tolist(), strict=True)))


@dataclass(frozen=True)
class Lateness:
    """What is known of a stream's times: observed of some items, or of all so far."""

    front: float = -math.inf
    arrived: float = -math.inf
    """When the last item came."""
    items: int = 0
    late: Sketch = field(default_factory=Sketch)
    delay: Sketch = field(default_factory=Sketch)
    greatest: float = 0.0
    """The greatest lateness of the items since the last full thousand, and that of the thousand before."""
    before: float = 0.0
    since: int = 0
    ahead: int = 0
    """Items whose time lies ahead of their arrival."""
    missed: int = 0
    """Items that came later than the allowance: what they would have joined may be gone."""

    def added(self, other: Lateness) -> Lateness:
        """With what was observed of the items after these."""
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
        """How late items are expected to be, learned from those that came. Each level covers fewer of them."""
        if level:
            return self.late.quantile(LEVELS[min(level, len(LEVELS) - 1)])
        if self.items < ENOUGH:
            return math.inf
        margin = MARGIN * (1 + ENOUGH / self.items)
        return margin * max(self.late.quantile(LEVELS[0]), self.greatest, self.before)

    @property
    def usual_delay(self) -> float:
        """How long after its time an item may arrive."""
        return MARGIN * self.delay.quantile(LEVELS[0])

    @property
    def is_prompt(self) -> bool:
        """Whether all items so far arrived within a second of their times."""
        return bool(self.items) and not self.ahead and set(self.delay.counts) <= {0}

    def to_json(self) -> dict[str, Any]:
        finite = {name: value for name, value in vars(self).items() if value != -math.inf}
        return finite | {"late": list(self.late.counts.items()), "delay": list(self.delay.counts.items())}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Lateness:
        known = cls(**{name: value for name, value in raw.items() if name not in ("late", "delay")})
        return replace(known, late=Sketch(dict(raw.get("late", ()))), delay=Sketch(dict(raw.get("delay", ()))))


def observe(times: Times, arrivals: Times, front: float, watermark: float) -> Lateness:
    """What some items, in the order they came, say of their stream, which had reached `front`; those older than the
    `watermark` that documents were dropped by are missed."""
    if not len(times):
        return Lateness()
    import numpy as np

    ahead = times > arrivals + TOLERANCE
    reached = np.maximum.accumulate(np.maximum(np.where(ahead, -np.inf, times), front))
    good = np.flatnonzero(~ahead)
    late = np.minimum(reached[good] - times[good], LONGEST)
    return Lateness(
        float(reached[-1]),
        float(arrivals.max()),
        len(times),
        sketch_of(late),
        sketch_of(np.minimum(arrivals[good] - times[good], LONGEST)),
        float(late.max(initial=0.0)),
        ahead=len(times) - len(good),
        missed=int((times < watermark).sum()),
    )
