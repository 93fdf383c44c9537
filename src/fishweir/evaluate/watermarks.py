"""Watermarks: the event time that each stream has reached, for stages that retain documents.

A stream's watermark is the event time it has reached minus the lateness allowed for its items: no item within that
allowance will be older. It is minus infinity until the stream's lateness is known. A document is needed by a join until
the watermarks of the streams it waits for have passed its window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from fishweir.algebra.nodes import Source


@dataclass(frozen=True)
class Watermarks:
    """For all streams: what queries call them, their watermarks, and which are idle."""

    sources: Mapping[int, tuple[Source, ...]]
    reached: Mapping[int, float] = field(default_factory=dict)
    learned: Mapping[int, float] = field(default_factory=dict)
    """How late items are allowed to be in the streams for which nobody declared it. Streams that are joined allow each
    other what either of them needs: where old items are replayed into one, those of the other are on their way."""
    idle: Mapping[int, float] = field(default_factory=dict)
    """Idle streams, with the time before which their next item is not expected."""

    @classmethod
    def at(cls, time: float, sources: Mapping[int, tuple[Source, ...]]) -> Watermarks:
        """All streams with the same watermark."""
        return cls(sources, dict.fromkeys(sources, time))

    @cached_property
    def _streams(self) -> dict[Source, list[int]]:
        found: dict[Source, list[int]] = {}
        for stream, sources in self.sources.items():
            for source in sources:
                found.setdefault(source, []).append(stream)
        return found

    def streams(self, source: Source) -> list[int]:
        """The streams that a source stands for: one by name, or all that conform to a DTD."""
        return self._streams.get(source, [])

    def least(self, source: Source, seen_from: int) -> float:
        """The watermark of the slowest stream of a source, for documents of a stream; infinity if there is none."""
        late, own = self.learned.get(seen_from, 0.0), self._own(seen_from)
        return min((self._of(stream, own, late) for stream in self.streams(source)), default=math.inf)

    def seen(self) -> dict[int, float]:
        """The watermark of each stream as seen from the stream furthest ahead."""
        ahead = max((self._own(stream) for stream in self.sources), default=-math.inf)
        return {stream: self._of(stream, ahead) for stream in self.sources}

    def _own(self, stream: int) -> float:
        return self.reached.get(stream, -math.inf)

    def _of(self, stream: int, others: float, late: float = 0.0) -> float:
        """An idle stream keeps step with others, but not beyond what its next item may be."""
        own = self._own(stream)
        if stream in self.learned and late > self.learned[stream]:
            own -= late - self.learned[stream]
        return max(own, min(others, self.idle[stream])) if stream in self.idle else own
