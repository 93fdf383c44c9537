"""The report of a task to the driver."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field

from fishweir.evaluate.statistics import PathStatistics
from fishweir.evaluate.witnesses.counters import StreamCounters
from fishweir.pipeline.fired_index import Index, merged
from fishweir.pipeline.lateness import Lateness
from fishweir.pipeline.states import StateFile

HOST = platform.node()


@dataclass
class Summary:
    documents: int = 0
    matches: int = 0
    aside: int = 0
    files: dict[str, str] = field(default_factory=dict)
    """Result files with their seals."""
    offsets: dict[str, int] = field(default_factory=dict)
    statistics: dict[str, PathStatistics] = field(default_factory=dict)
    states: dict[str, StateFile] = field(default_factory=dict)
    """State files by name."""
    walked: dict[str, StreamCounters] = field(default_factory=dict)
    """Counters of the walk by stream."""
    lateness: dict[str, Lateness] = field(default_factory=dict)
    """Lateness of each stream that joins read."""
    shed: dict[str, int] = field(default_factory=dict)
    """By stream, the number of entries that were left out."""
    cut: dict[str, int] = field(default_factory=dict)
    """By stream, the number of entries with omitted patterns."""
    elements: dict[str, int] = field(default_factory=dict)
    """By stream, the number of topmost elements that were left out of its entries."""
    host: str = HOST
    hosts: dict[str, str] = field(default_factory=dict)
    """In a sum of summaries, the host that wrote each file."""
    seconds: float = 0.0
    """Processor time."""
    fired: Index | None = field(default_factory=dict)
    """The queries that may have rows in the files."""

    @property
    def state_files(self) -> list[StateFile]:
        return [self.states[name] for name in sorted(self.states)]

    def add(self, other: Summary) -> None:
        self.documents += other.documents
        self.seconds += other.seconds
        self.matches += other.matches
        self.aside += other.aside
        self.files |= other.files
        self.fired = merged(self.fired, other.fired)
        self.states |= other.states
        self.hosts |= other.hosts or dict.fromkeys((*other.files, *other.states), other.host)
        for stream, upto in other.offsets.items():
            self.offsets[stream] = max(upto, self.offsets.get(stream, 0))
        for own, others in ((self.shed, other.shed), (self.cut, other.cut), (self.elements, other.elements)):
            for stream, count in others.items():
                own[stream] = own.get(stream, 0) + count
        for stream, observed in other.lateness.items():
            before = self.lateness.get(stream)
            self.lateness[stream] = observed if before is None else before.added(observed)
        for stream, walked in other.walked.items():
            if stream in self.walked:
                self.walked[stream].add(walked)
            else:
                self.walked[stream] = walked
        for key, counted in other.statistics.items():
            self.statistics[key] = self.statistics.get(key, PathStatistics()).merge(counted)
