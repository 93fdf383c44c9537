"""`NOT FOLLOWED BY`: documents that wait for the end of their window, and those whose window ended without a match.

In: the documents of the first block as micro-batches find them, and the documents that have a match. Out: those that
can no longer have one, once the streams of the second block have passed the end of their window. The cursor of the log
that they are appended to records the progress: a micro-batch and a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import Shape, Source, Unless
from fishweir.evaluate.arrays import Ints
from fishweir.pipeline.expand import Expansion, entries_of

DocumentKey = tuple[int, int]
"""Stream and number of a document."""


@dataclass
class Absences:
    """The waiting documents of one query. `decided` is a micro-batch and a time: of the documents up to that
    micro-batch, those whose window ended before that time no longer wait.
    """

    unless: Unless
    sources: tuple[Source, ...]
    """The sources of the documents that must not follow."""
    matches: frozenset[int]
    """The numbers of the query that finds the matches."""
    decided: tuple[int, float]
    ends: dict[DocumentKey, tuple[float, int]] = field(default_factory=dict)
    """The end of each document's window, and the micro-batch that found the document."""

    def add(self, batch: int, found: Iterable[tuple[DocumentKey, float]], matched: Iterable[DocumentKey]) -> None:
        """Adds the findings of one micro-batch: documents with their times, and documents with a match."""
        for place, time in found:
            end = time + self.unless.seconds
            if batch > self.decided[0] or end >= self.decided[1]:
                self.ends[place] = end, batch
        for place in matched:
            self.ends.pop(place, None)

    def due(self, reached: float) -> list[tuple[float, DocumentKey]]:
        """The documents whose window ended before a time, ordered by that end. They wait until `decide` is called."""
        return sorted((end, place) for place, (end, _) in self.ends.items() if end < reached)

    def decide(self, batch: int, reached: float) -> None:
        self.decided = batch, reached
        self.ends = {place: kept for place, kept in self.ends.items() if kept[0] >= reached}

    def oldest(self) -> int | None:
        """The first micro-batch that found a still waiting document."""
        return min((batch for _, batch in self.ends.values()), default=None)


def second_sources(matches: Shape | Selection) -> tuple[Source, ...]:
    assert isinstance(matches, Shape), "matches are found by a join"
    return (matches.blocks[1].source,)


def first_documents(rows: pa.Table, expansion: Expansion, wanted: Ints) -> Iterator[tuple[DocumentKey, float]]:
    """The documents of the first side in the results of some queries, with the times of the results."""
    at, _ = expansion.queries(rows, wanted)
    chosen = rows.take(pa.array(np.unique(at)))
    entries = entries_of(chosen)
    columns = ("stream", "document", "side", "each", "timestamp", "other_streams")
    listed = chosen.select(columns).to_pylist()
    for row, other in zip(entries.rows.tolist(), entries.others.tolist(), strict=True):
        one = listed[row]
        is_other = one["each"] and one["side"]
        place = (one["other_streams"][0], other) if is_other else (one["stream"], one["document"])
        yield place, one["timestamp"]
