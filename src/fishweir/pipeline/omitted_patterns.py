"""The return patterns that were omitted from documents of a micro-batch, for readers of its results.

In: the decision in a commit and the levels of its documents. Out: for a document and a query, the patterns missing from
its output. Patterns are omitted from queries with a preference, or from all queries if the stream allows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import origin_of
from fishweir.evaluate.witnesses.turns import WHOLE_RANGE, turn_at
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.records import dataclass
from fishweir.shedding.decision import BY_ELEMENT, LEFT_OUT, Level, StreamShed
from fishweir.shedding.reduced import Cut, cut_of
from fishweir.shedding.units import context_place


@dataclass(frozen=True)
class OmittedPatterns:
    """By stream, the decision and the documents with omitted patterns, ascending, with their levels."""

    sheds: Mapping[int, StreamShed] = field(default_factory=dict)
    documents: Mapping[int, tuple[Ints, Ints]] = field(default_factory=dict)
    _known: dict[tuple[int, int], tuple[Any, Cut | None]] = field(default_factory=dict, repr=False, compare=False)
    """Cuts by the identities of shape and level: hashing a shape for each result takes as long as its output."""

    def __bool__(self) -> bool:
        return bool(self.documents)

    def level(self, stream: int, number: int, preferred: bool, node: int | None = None) -> Level | None:
        """The level of a document, or of one of its elements, which says what its results lack."""
        shed = self.sheds.get(stream)
        if shed is None or not (preferred or shed.allowed) or stream not in self.documents:
            return None
        level = self._levels[stream].get(number)
        if level is None:
            return None
        if level == BY_ELEMENT:
            level = LEFT_OUT if node is None else turn_at(number, node, self._ends[stream])
        return shed.levels[level] if 0 <= level < len(shed.levels) else None

    @cached_property
    def _levels(self) -> Mapping[int, Mapping[int, int]]:
        """The levels by stream and document."""
        found = self.documents.items()
        return {stream: dict(zip(*(some.tolist() for some in both), strict=True)) for stream, both in found}

    @cached_property
    def _ends(self) -> Mapping[int, Ints]:
        """The ends of the turns of elements, by stream."""
        return {stream: np.array(shed.ends(WHOLE_RANGE), np.int64) for stream, shed in self.sheds.items()}

    def of(
        self, stream: int, number: int, preferred: bool, shape: Any, nodes: Sequence[int] | None = None
    ) -> Cut | None:
        """What is left of a query's output for a document and the nodes of a result; None if the output is complete."""
        shed = self.sheds.get(stream)
        place = context_place(shape) if shed is not None and shed.unit and nodes is not None else None
        node = None if place is None or nodes is None else nodes[place]
        level = self.level(stream, number, preferred, node)
        if level is None or not (level.returns or level.relaxed):
            return None
        known = self._known.get((id(shape), id(level)))
        if known is None:
            made = cut_of(shape, frozenset(level.returns), frozenset(level.relaxed))
            known = self._known[id(shape), id(level)] = shape, made
        return known[1]

    def holds(self, documents: Ints) -> bool:
        """Whether patterns were omitted from one of some documents."""
        lost = self.documents.items()
        return any(np.isin(documents, origin_of(stream, numbers)).any() for stream, (numbers, _) in lost)


NOTHING_OMITTED = OmittedPatterns()


def omitted_patterns_of(table: ResultsTable, commit: Commit) -> OmittedPatterns:
    """The omitted patterns of a micro-batch, or of the one that it completes."""
    if commit.completes >= 0:
        return _cuts(table, commit.completes)
    return _cuts(table, commit.batch) if commit.cut else NOTHING_OMITTED


@lru_cache(maxsize=64)
def _cuts(table: ResultsTable, batch: int) -> OmittedPatterns:
    commit = table.of_batch(batch)
    rows = table.shed(commit)
    streams, numbers, levels = (rows.column(name).to_numpy() for name in ("stream", "document", "level"))
    found = {}
    for id in map(int, commit.cut):
        own = np.flatnonzero((streams == id) & (levels != LEFT_OUT))
        own = own[np.argsort(numbers[own])]
        found[id] = numbers[own].astype(np.int64), levels[own].astype(np.int64)
    return OmittedPatterns({int(id): StreamShed.from_json(one) for id, one in commit.shedding.items()}, found)
