"""A block: the results of some rows, independent of the queries, together with their documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, distinct, expand
from fishweir.evaluate.group import origin_of
from fishweir.intake.log import StreamLog
from fishweir.pipeline.document_columns import DocumentColumns
from fishweir.pipeline.expand import Entries
from fishweir.pipeline.home import Home, open_log
from fishweir.pipeline.omitted_patterns import NOTHING_OMITTED, OmittedPatterns
from fishweir.pipeline.outputs import Constructed, ResultDocuments, constructed, is_bound_when_read
from fishweir.pipeline.pruned import Prunings
from fishweir.pipeline.result import QueryLike
from fishweir.pipeline.row_lists import first_of, flat_of, lengths_of, since_of, values_of
from fishweir.pipeline.source_documents import SourceDocument
from fishweir.shedding.reduced import Cut

HELD = 4096
"""The number of results whose documents are held in memory as objects."""


class _Logs:
    """The logs of streams. Not a method of the block: its documents would refer back to it, and Python would free the
    arrays of both much later, so that each block needed new memory."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._known: dict[int, StreamLog] = {}

    def __call__(self, stream: int) -> StreamLog:
        if stream not in self._known:
            self._known[stream] = open_log(self._home.streams, stream)
        return self._known[stream]


class Block:
    """Some entries: results of rows, independent of the queries."""

    def __init__(
        self, home: Home, rows: pa.Table, entries: Entries, some: slice, cuts: OmittedPatterns = NOTHING_OMITTED
    ) -> None:
        self.home, self.cuts = home, cuts
        used, self.at = distinct(entries.rows[some])
        self.rows = rows.take(pa.array(used)) if len(used) < len(rows) else rows
        self.others = entries.others[some]
        self.last = entries.documents[some]
        self.log = _Logs(home)
        self.each = self.rows.column("each").to_numpy().astype(np.bool_)
        self.since = since_of(self.rows)

    @cached_property
    def alone(self) -> NDArray[np.bool_]:
        """By row, whether a result shows only its own document: a selection, or an item with its annotation."""
        found = self.rows.column("others").is_null().to_numpy() | self.rows.column("joins").is_valid().to_numpy()
        return np.asarray(found, np.bool_)

    @cached_property
    def own(self) -> Ints:
        """By row, the row's own document."""
        streams, numbers = (self.rows.column(name).to_numpy() for name in ("stream", "document"))
        return np.asarray(origin_of(streams.astype(np.int64), numbers), np.int64)

    @cached_property
    def newer_first(self) -> NDArray[np.bool_]:
        """By row, whether the document of the second side is the earlier one."""
        return first_of(self.rows, "order") == 1

    @cached_property
    def columns(self) -> DocumentColumns:
        """All documents of the block's results, in columns."""
        return DocumentColumns(self.log, np.concatenate([self.own, self._other, self._together[1]]))

    @cached_property
    def _other(self) -> Ints:
        """The other document of each entry that has one."""
        chosen = np.flatnonzero(self.each[self.at])
        if not len(chosen):
            return chosen
        streams = first_of(self.rows, "other_streams")[self.at[chosen]]
        return np.asarray(origin_of(streams, self.others[chosen]), np.int64)

    @cached_property
    def _together(self) -> tuple[Ints, Ints]:
        """The other documents of rows whose other documents belong to one result, and where those of each row begin."""
        lengths = np.where(self.each, 0, lengths_of(self.rows, "others"))
        starts = np.append(0, np.cumsum(lengths))
        if not starts[-1]:
            return starts, np.empty(0, np.int64)
        row, numbers = flat_of(self.rows, "others")
        chosen = ~self.each[row]
        streams = values_of(self.rows.filter(pa.array(~self.each)), "other_streams")
        return starts, np.asarray(origin_of(streams, numbers[chosen]), np.int64)

    @cached_property
    def _own_at(self) -> Ints:
        """By row, the position of its own document in `columns`."""
        return self.columns.index[: len(self.own)]

    @cached_property
    def _other_at(self) -> Ints:
        """By entry, the position of its other document in `columns`, if it has one."""
        found = np.full(len(self.at), -1, np.int64)
        found[self.each[self.at]] = self.columns.index[len(self.own) : len(self.own) + len(self._other)]
        return found

    @cached_property
    def _together_at(self) -> Ints:
        return self.columns.index[len(self.own) + len(self._other) :]

    def sides(self, entries: Ints) -> list[Ints] | None:
        """For each side, the positions of the entries' documents in `columns`; None if entries have different sides."""
        rows = self.at[entries]
        own = self._own_at[rows]
        if self.alone[rows].all():
            return [own]
        each = self.each[rows]
        if each.all():
            is_second = self.rows.column("side").to_numpy()[rows] == 1
            other = self._other_at[entries]
            return [np.where(is_second, other, own), np.where(is_second, own, other)]
        starts, counts = self._together[0][rows], np.diff(self._together[0])[rows]
        if each.any() or self.alone[rows].any() or (counts != counts[0]).any():
            return None
        return [own, *(self._together_at[starts + place] for place in range(int(counts[0])))]

    def by_time(self) -> tuple[Ints, Ints]:
        """The documents of all entries, ordered by time, as positions in `columns`, and where those of each entry
        begin.
        """
        alone, each = self.alone[self.at], self.each[self.at]
        own = self._own_at[self.at]
        if alone.all():
            return own, np.arange(len(own) + 1)
        rest = np.flatnonzero(~alone & ~each)
        lengths = np.where(each, 2, 1)
        lengths[rest] += np.diff(self._together[0])[self.at[rest]]
        offsets = np.append(0, np.cumsum(lengths))
        found = np.empty(offsets[-1], np.int64)
        found[offsets[:-1][alone]] = own[alone]
        if each.any():
            side = self.rows.column("side").to_numpy()
            own_first = ((side == 0) ^ self.newer_first)[self.at][each]
            found[offsets[:-1][each] + ~own_first] = own[each]
            found[offsets[:-1][each] + own_first] = self._other_at[each]
        entry, place = expand(np.zeros(len(rest), np.int64), lengths[rest])
        side, at = self._in_order(self.at[rest][entry], place), self._together[0][self.at[rest]][entry]
        other = self._together_at[at + np.maximum(side, 1) - 1]
        found[offsets[rest][entry] + place] = np.where(side == 0, own[rest][entry], other)
        return found, offsets

    def _in_order(self, rows: Ints, places: Ints) -> Ints:
        """The sides of some rows at places in the order by time."""
        starts = np.append(0, np.cumsum(lengths_of(self.rows, "order")))
        is_ordered = starts[rows + 1] > starts[rows]
        found = places.copy()
        found[is_ordered] = values_of(self.rows, "order")[(starts[rows] + places)[is_ordered]]
        return found

    def listed(self, column: str) -> list[Any]:
        """A column of the rows as Python objects."""
        if column not in self._lists:
            self._lists[column] = self.rows.column(column).to_pylist()
        return self._lists[column]

    @cached_property
    def _lists(self) -> dict[str, list[Any]]:
        return {}

    def places(self, entry: int) -> list[int]:
        """The document of each side, followed by the collected documents, as positions in `columns`."""
        at = int(self.at[entry])
        own = int(self._own_at[at])
        if self.each[at]:
            other = int(self._other_at[entry])
            return [other, own] if self.listed("side")[at] else [own, other]
        return [own, *self._together_at[self._together[0][at] : self._together[0][at + 1]].tolist()]

    def key(self, entry: int, shape: Any) -> tuple[Any, ...]:
        """The key that equal results share. A pair has the same key from either side."""
        nodes = self.listed("nodes")[int(self.at[entry])]
        documents = self.columns.keys[self.places(entry)].tolist()
        return *documents, None if nodes is None or is_bound_when_read(shape) else tuple(nodes)

    def in_parts(self, entries: Ints) -> Iterator[slice]:
        """Ranges of some entries. The documents of a range are read together, before it is used."""
        for start in range(0, len(entries), HELD):
            some = slice(start, min(start + HELD, len(entries)))
            rows = self.at[entries[some]]
            starts = self._together[0]
            together = self._together_at[expand(starts[rows], starts[rows + 1])[1]]
            others = self._other_at[entries[some]]
            self.columns.hold(np.concatenate([self._own_at[rows], others[others >= 0], together]))
            yield some

    def taken(self, entry: int) -> list[SourceDocument]:
        return self.columns.taken(self.places(entry))

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
    def _several(self) -> Mapping[int, list[int]]:
        """For each document with several rows, the nodes that the rows name."""
        found: dict[int, list[int]] = {}
        for at in np.flatnonzero(np.bincount(self._own_at)[self._own_at] > 1).tolist():
            found.setdefault(int(self._own_at[at]), []).extend(self.listed("nodes")[at] or ())
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
        return bool(self.cuts) and self.cuts.holds(np.unique(self.own[self.at[entries]]))
