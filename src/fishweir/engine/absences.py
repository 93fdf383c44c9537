"""`NOT FOLLOWED BY`: documents that wait for the end of their window, and those whose window ended without a match.

In: the documents of the first block as micro-batches find them, and the documents that have a match. Out: those that
can no longer have one, once the streams of the second block have passed the end of their window. The cursor of the log
that they are appended to records the progress: a micro-batch and a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from fishweir.algebra.nodes import Source, Unless
from fishweir.evaluate.arrays import Ints, distinct, expand
from fishweir.pipeline.expand import Expansion, entries_of
from fishweir.pipeline.row_lists import first_of

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
    """The end of each document's window, and the micro-batch that found the document, in the order of micro-batches."""
    next_end: float = math.inf
    """A time before which no window ends."""

    def add(self, batch: int, found: Iterable[tuple[DocumentKey, float]], matched: Iterable[DocumentKey]) -> None:
        """Adds the findings of one micro-batch: documents with their times, and documents with a match."""
        for place, time in found:
            end = time + self.unless.seconds
            if batch > self.decided[0] or end >= self.decided[1]:
                self.ends.pop(place, None)
                self.ends[place] = end, batch
                self.next_end = min(self.next_end, end)
        for place in matched:
            self.ends.pop(place, None)

    def due(self, reached: float) -> list[tuple[float, DocumentKey]]:
        """The documents whose window ended before a time, ordered by that end. They wait until `decide` is called."""
        if self.next_end >= reached:
            return []
        self.next_end = min((end for end, _ in self.ends.values()), default=math.inf)
        return sorted((end, place) for place, (end, _) in self.ends.items() if end < reached)

    def decide(self, batch: int, reached: float) -> None:
        self.decided = batch, reached
        self.ends = {place: kept for place, kept in self.ends.items() if kept[0] >= reached}

    def oldest(self) -> int | None:
        """The first micro-batch that found a still waiting document."""
        return next((batch for _, batch in self.ends.values()), None)


def first_documents(rows: pa.Table, expansion: Expansion, wanted: Ints) -> dict[int, list[tuple[DocumentKey, float]]]:
    """For each of the wanted queries with results, the documents of the first side, with the times of the results."""
    at, numbers = expansion.queries(rows, wanted)
    used, of = distinct(at)
    chosen = rows.take(pa.array(used)).combine_chunks()
    entries = entries_of(chosen)
    order = np.argsort(entries.rows, kind="stable")
    bounds = np.searchsorted(entries.rows[order], np.arange(len(used) + 1))
    pair, position = expand(bounds[of], bounds[of + 1])
    entry = order[position]
    row, other = entries.rows[entry], entries.others[entry]
    stream, document, side, each, time = (
        chosen.column(name).to_numpy()[row] for name in ("stream", "document", "side", "each", "timestamp")
    )
    is_other = each.astype(np.bool_) & (side == 1)
    streams = np.where(is_other, first_of(chosen, "other_streams")[row], stream)
    documents = np.where(is_other, other, document)
    found: dict[int, list[tuple[DocumentKey, float]]] = {}
    columns = (numbers[pair], streams, documents, time)
    for number, *key, moment in zip(*(column.tolist() for column in columns), strict=True):
        found.setdefault(number, []).append(((key[0], key[1]), moment))
    return found
