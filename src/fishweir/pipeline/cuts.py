"""The return patterns that were omitted from documents of a micro-batch, for readers of its results.

In: the decision in a commit and the levels of its documents. Out: for a document and a query, the patterns missing from
its output. Patterns are omitted from queries with a preference, or from all queries if the stream allows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from fishweir.evaluate.arrays import Ints
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.shedding.decision import StreamShed
from fishweir.shedding.reduced import Cut, cut_of

NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Cuts:
    """By stream, the decision, and the documents with omitted patterns and their levels, ascending."""

    sheds: Mapping[int, StreamShed] = field(default_factory=dict)
    documents: Mapping[int, tuple[Ints, Ints]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.documents)

    def left_out(self, stream: int, number: int, preferred: bool) -> frozenset[str]:
        """The return patterns that are missing from a document's results."""
        shed = self.sheds.get(stream)
        if shed is None or not (preferred or shed.allowed) or stream not in self.documents:
            return NONE
        numbers, levels = self.documents[stream]
        at = int(np.searchsorted(numbers, number))
        if at == len(numbers) or numbers[at] != number:
            return NONE
        return frozenset(shed.levels[int(levels[at])].returns)

    def of(self, stream: int, number: int, preferred: bool, shape: Any) -> Cut | None:
        """The reduced output of a query for a document; None if it is complete."""
        returns = self.left_out(stream, number, preferred)
        return cut_of(shape, returns) if returns else None

    def holds(self, places: Ints) -> bool:
        """Whether one of some documents, by stream and number, lost something."""
        lost = self.documents.items()
        return any(np.isin(places[places[:, 0] == stream, 1], numbers).any() for stream, (numbers, _) in lost)


NO_CUTS = Cuts()


def cuts_of(table: ResultsTable, commit: Commit) -> Cuts:
    """Of a micro-batch, or of the one that it completes."""
    if commit.completes >= 0:
        return _cuts(table, commit.completes)
    return _cuts(table, commit.batch) if commit.cut else NO_CUTS


@lru_cache(maxsize=64)
def _cuts(table: ResultsTable, batch: int) -> Cuts:
    commit = table.of_batch(batch)
    rows = table.shed(commit)
    streams, numbers, levels = (rows.column(name).to_numpy() for name in ("stream", "document", "level"))
    found = {}
    for id in map(int, commit.cut):
        own = np.flatnonzero((streams == id) & (levels >= 0))
        own = own[np.argsort(numbers[own])]
        found[id] = numbers[own].astype(np.int64), levels[own].astype(np.int64)
    return Cuts({int(id): StreamShed.from_json(one) for id, one in commit.shedding.items()}, found)
