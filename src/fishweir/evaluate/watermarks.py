"""Watermarks: the progress of each stream in event time, for stages that retain documents.

A stream's watermark is the newest event time so far minus the lateness allowed for its items. No item within that
allowance is older. The watermark is minus infinity until the stream's lateness is known. A join needs a document until
the watermarks of the streams that it waits for have passed the document's window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from fishweir.algebra.nodes import Source


@dataclass(frozen=True)
class Watermarks:
    """For all streams: the names by which queries refer to them, their watermarks, and which of them are idle."""

    sources: Mapping[int, tuple[Source, ...]]
    reached: Mapping[int, float] = field(default_factory=dict)
    learned: Mapping[int, float] = field(default_factory=dict)
    """The allowed lateness of streams without a declared one. Joined streams share the larger of their allowances: if
    old items are replayed into one of them, the matching items of the other are still to come."""
    idle: Mapping[int, float] = field(default_factory=dict)
    """Idle streams, each with the time before which no further item is expected."""

    @classmethod
    def at(cls, time: float, sources: Mapping[int, tuple[Source, ...]]) -> Watermarks:
        """The same watermark for all streams."""
        return cls(sources, dict.fromkeys(sources, time))

    @cached_property
    def _streams(self) -> dict[Source, list[int]]:
        found: dict[Source, list[int]] = {}
        for stream, sources in self.sources.items():
            for source in sources:
                found.setdefault(source, []).append(stream)
        return found

    def streams(self, source: Source) -> list[int]:
        """The streams that a source refers to: one stream by name, or all that conform to a DTD."""
        return self._streams.get(source, [])

    def least(self, source: Source, seen_from: int) -> float:
        """The watermark of the slowest stream of a source, as seen from a stream; infinity if there is none."""
        late, own = self.learned.get(seen_from, 0.0), self._own(seen_from)
        return min((self._of(stream, own, late) for stream in self.streams(source)), default=math.inf)

    def seen(self) -> dict[int, float]:
        """The watermark of each stream, as used by the stream that is furthest ahead."""
        ahead = max((self._own(stream) for stream in self.sources), default=-math.inf)
        return {stream: self._of(stream, ahead) for stream in self.sources}

    def _own(self, stream: int) -> float:
        return self.reached.get(stream, -math.inf)

    def _of(self, stream: int, others: float, late: float = 0.0) -> float:
        """A stream's watermark. An idle stream keeps up with the others, up to the time of its next expected item."""
        own = self._own(stream)
        if stream in self.learned and late > self.learned[stream]:
            own -= late - self.learned[stream]
        return max(own, min(others, self.idle[stream])) if stream in self.idle else own
