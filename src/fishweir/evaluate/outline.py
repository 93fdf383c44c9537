"""The outline of a state: how many documents of each stream it has, and from which time to which.

Until when documents are retained mostly depends on nothing else. A task that writes a state reports its outline, so the
driver need not read the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fishweir.records import dataclass


class Span(NamedTuple):
    """The documents of one stream: their number, and the times of the oldest and the newest."""

    documents: int
    oldest: float
    newest: float

    def count_since(self, time: float) -> float:
        """The number of documents from a time on: exact if these are all or none, otherwise an estimate above 0."""
        if time <= self.oldest:
            return self.documents
        if time > self.newest:
            return 0
        return max(1.0, self.documents * (self.newest - time) / (self.newest - self.oldest))


@dataclass(frozen=True)
class Outline:
    spans: Mapping[int, Span]

    def __len__(self) -> int:
        return sum(span.documents for span in self.spans.values())

    def count_since(self, stream: int, time: float) -> float:
        """About how many documents of a stream are from a time on."""
        return self.spans[stream].count_since(time)
