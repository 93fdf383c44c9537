"""A block: the results of some rows, independent of the queries, together with their documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.intake.log import StreamLog
from fishweir.pipeline.document_columns import DocumentColumns
from fishweir.pipeline.expand import Entries
from fishweir.pipeline.home import Home, open_log
from fishweir.pipeline.omitted_patterns import NOTHING_OMITTED, OmittedPatterns
from fishweir.pipeline.outputs import Constructed, ResultDocuments, constructed, is_bound_when_read
from fishweir.pipeline.pruned import Prunings
from fishweir.pipeline.result import QueryLike
from fishweir.pipeline.row_lists import first_of
from fishweir.pipeline.source_documents import SourceDocument, taken_of
from fishweir.shedding.reduced import Cut

DocumentKey = tuple[int, int]
"""Stream and number of a document."""


class Block:
    """Some entries: results of rows, independent of the queries."""

    def __init__(
        self, home: Home, rows: pa.Table, entries: Entries, some: slice, cuts: OmittedPatterns = NOTHING_OMITTED
    ) -> None:
        self.home, self.cuts = home, cuts
        used, self.at = np.unique(entries.rows[some], return_inverse=True)
        self.rows = rows.take(pa.array(used)) if len(used) < len(rows) else rows
        self.others = entries.others[some]
        self.last = entries.documents[some]
        self._logs: dict[int, StreamLog] = {}
        self.each = self.rows.column("each").to_numpy().astype(np.bool_)
        since = self.rows.column("since").combine_chunks().fill_null(np.iinfo(np.int64).max)
        self.since = since.to_numpy(zero_copy_only=False)

    def log(self, stream: int) -> StreamLog:
        if stream not in self._logs:
            self._logs[stream] = open_log(self.home.streams, stream)
        return self._logs[stream]

    @cached_property
    def alone(self) -> NDArray[np.bool_]:
        """By row, whether a result shows only its own document: a selection, or an item with its annotation."""
        found = self.rows.column("others").is_null().to_numpy() | self.rows.column("joins").is_valid().to_numpy()
        return np.asarray(found, np.bool_)

    @cached_property
    def own(self) -> Ints:
        """By row, stream and number of the row's own document."""
        streams, numbers = (self.rows.column(name).to_numpy() for name in ("stream", "document"))
        return np.stack([streams.astype(np.int64), numbers], axis=1)

    @cached_property
    def other_streams(self) -> Ints:
        """By row, the stream of the first other document."""
        return first_of(self.rows, "other_streams")

    @cached_property
    def newer_first(self) -> NDArray[np.bool_]:
        """By row, whether the document of the second side is the earlier one."""
        found = pc.equal(pc.list_element(self.rows.column("order").combine_chunks(), 0), 1).fill_null(False)
        return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)

    def sides(self, entries: Ints) -> list[Ints] | None:
        """For each side, stream and number of each entry's document; None if the entries have different sides."""
        rows = self.at[entries]
        own = self.own[rows]
        if self.alone[rows].all():
            return [own]
        if not self.each[rows].all():
            return None
        is_second = (self.rows.column("side").to_numpy()[rows] == 1)[:, None]
        other = np.stack([self.other_streams[rows], self.others[entries]], axis=1)
        return [np.where(is_second, other, own), np.where(is_second, own, other)]

    def listed(self, column: str) -> list[Any]:
        """A column of the rows as Python objects."""
        if column not in self._lists:
            self._lists[column] = self.rows.column(column).to_pylist()
        return self._lists[column]

    @cached_property
    def _lists(self) -> dict[str, list[Any]]:
        return {}

    def places(self, entry: int) -> list[DocumentKey]:
        """Stream and number of the document of each side, followed by those of the collected documents."""
        at = int(self.at[entry])
        own = (self.listed("stream")[at], self.listed("document")[at])
        if self.each[at]:
            other = (self.listed("other_streams")[at][0], int(self.others[entry]))
            return [other, own] if self.listed("side")[at] else [own, other]
        return [own, *zip(self.listed("other_streams")[at] or (), self.listed("others")[at] or (), strict=True)]

    def key(self, entry: int, shape: Any) -> tuple[Any, ...]:
        """The key that equal results share. A pair has the same key from either side."""
        nodes = self.listed("nodes")[int(self.at[entry])]
        return *self.places(entry), None if nodes is None or is_bound_when_read(shape) else tuple(nodes)

    def taken(self, entry: int) -> list[SourceDocument]:
        return [self.documents[place] for place in self.places(entry)]

    @cached_property
    def columns(self) -> DocumentColumns:
        """All documents of the block's results, in columns."""
        return DocumentColumns(self.log, self._all_places)

    @cached_property
    def _all_places(self) -> Ints:
        own = self.own[self.at]
        each = self.each[self.at]
        others = np.stack([self.other_streams[self.at], self.others], axis=1)[each]
        together = [place for at in np.flatnonzero(~self.each & self._has_others) for place in self._together(int(at))]
        return np.concatenate([own, others, np.array(together, np.int64).reshape(-1, 2)])

    @cached_property
    def documents(self) -> dict[DocumentKey, SourceDocument]:
        """All documents of the block's results, one by one."""
        found = self._all_places
        documents: dict[DocumentKey, SourceDocument] = {}
        for stream in np.unique(found[:, 0]).tolist():
            numbers = np.unique(found[found[:, 0] == stream, 1])
            taken = taken_of(self.log(stream), stream, numbers)
            documents |= {(stream, number): one for number, one in zip(numbers.tolist(), taken, strict=True)}
        return documents

    @cached_property
    def _has_others(self) -> NDArray[np.bool_]:
        return np.asarray(self.rows.column("others").is_valid().to_numpy(), np.bool_)

    def _together(self, at: int) -> list[DocumentKey]:
        """The other documents of a row that all belong to one result."""
        return list(zip(self.listed("other_streams")[at] or (), self.listed("others")[at] or (), strict=True))

    def shown(self, entry: int, taken: Sequence[SourceDocument]) -> tuple[list[str], int | None]:
        """The ids of the documents ordered by time, and the origin if there is only one document."""
        at = int(self.at[entry])
        sides = taken[:1] if self.listed("joins")[at] is not None else taken
        ids = [sides[side].id for side in self.listed("order")[at] or range(len(sides))]
        return ids, sides[0].origin if len(sides) == 1 else None

    def made(
        self,
        entry: int,
        query: QueryLike,
        taken: list[SourceDocument],
        bound: Sequence[int] | None = None,
        prunings: Prunings | None = None,
    ) -> list[Constructed]:
        """The results of a query for the entry. `bound` contains its nodes if they are known although the row has none.
        `prunings` is given if nothing else of the documents is shown.
        """
        at = int(self.at[entry])
        nodes = self.listed("nodes")[at]
        collected: list[tuple[int, SourceDocument]] = []
        if (joins := self.listed("joins")[at]) is not None:
            taken, collected = taken[:1], list(zip(joins, taken[1:], strict=True))
        known = bound if nodes is None else nodes
        several = self._several.get(self.places(entry)[0], ()) if prunings is not None else ()
        found = ResultDocuments(taken, known, collected, self.cut(entry, query), prunings, several)
        return constructed(query.shape, query.constants, found)

    @cached_property
    def _several(self) -> Mapping[DocumentKey, list[int]]:
        """For each document with several rows, the nodes that the rows name."""
        _, inverse, counts = np.unique(self.own, axis=0, return_inverse=True, return_counts=True)
        found: dict[DocumentKey, list[int]] = {}
        for at in np.flatnonzero(counts[inverse] > 1).tolist():
            stream, number = self.own[at].tolist()
            found.setdefault((stream, number), []).extend(self.listed("nodes")[at] or ())
        return found

    def cut(self, entry: int, query: QueryLike) -> Cut | None:
        """What is left of a query's output for the entry; None if the output is complete."""
        if not self.cuts:
            return None
        at = int(self.at[entry])
        stream, number = self.listed("stream")[at], self.listed("document")[at]
        return self.cuts.of(stream, number, query.preferred, query.shape, self.listed("nodes")[at])

    def has_cuts(self, entries: Ints) -> bool:
        """Whether patterns were omitted from a document of some entries."""
        return bool(self.cuts) and self.cuts.holds(self.own[self.at[entries]])
