"""Results as people take them: expanded to queries, with bindings and outputs, from table and log.

Nothing is constructed before somebody asks: a result row names documents and nodes, and a document is read from its
stream's log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fishweir.algebra.values import to_text
from fishweir.evaluate.arrays import Ints
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.expand import Entries, Expansion, entries_of, result_times
from fishweir.pipeline.home import Home
from fishweir.pipeline.outputs import Constructed, ResultDocuments, constructed, is_bound_when_read, several
from fishweir.pipeline.result import QueryLike, Result
from fishweir.pipeline.taken import TakenDocument, take_document

SCHEMA = pa.schema([
    ("query", pa.string()), ("documents", pa.list_(pa.string())), ("timestamp", pa.float64()),
    ("bindings", pa.map_(pa.string(), pa.struct([
        ("document", pa.string()), ("node", pa.string()), ("value", pa.string())]))),
    ("output", pa.string()),
])  # fmt: skip


ENTRIES_AT_ONCE = 2_000
"""Results that are expanded to queries together: sets may be large."""


@dataclass(frozen=True)
class ResultReader:
    """Makes results of result rows; `look_up` gives the queries by number, `dead` the ones dropped by a version."""

    home: Home
    look_up: Callable[[list[int]], Mapping[int, QueryLike]]
    dead: Callable[[int], Ints]

    def read(self, table: ResultsTable, commit: Commit, wanted: Ints | None = None) -> Iterator[tuple[int, Result]]:
        """The results of a micro-batch with the number of their query. A query sees a result if it was registered
        before the earliest of its documents arrived; once, by however many of its alternatives."""
        rows, expansion = table.rows(commit), self.expansion(table, commit)
        if wanted is not None:
            rows = rows.take(pa.array(np.unique(expansion.queries(rows, wanted)[0])))
        entries = entries_of(rows)
        seen = Once()
        for start in range(0, len(entries), ENTRIES_AT_ONCE):
            block = _Block(self.home, rows, entries, slice(start, start + ENTRIES_AT_ONCE))
            at, numbers = expansion.queries(block.rows, wanted)
            queries = self.look_up(np.unique(numbers).tolist())
            bounds = np.searchsorted(at, np.arange(len(block.rows) + 1)).tolist()
            numbers_of = numbers.tolist()
            for entry, row in enumerate(block.at):
                for number in numbers_of[bounds[row] : bounds[row + 1]]:
                    query = queries[number]
                    if query.added <= block.since(row) and seen.add(number, query.shape, block, entry):
                        yield from ((number, result) for result in block.results(entry, query))

    def fired(self, table: ResultsTable, commit: Commit, wanted: Ints | None = None) -> Ints:
        """The queries that may have results in a micro-batch, all or of those wanted."""
        return np.unique(self.expansion(table, commit).queries(table.rows(commit), wanted)[1])

    def times(self, table: ResultsTable, commit: Commit, query: QueryLike, number: int) -> Any:
        """The timestamps of one query's results in a micro-batch."""
        if is_bound_when_read(query.shape):
            read = self.read(table, commit, np.array([number]))
            return np.array([result.timestamp for _, result in read], np.float64)
        rows = table.rows(commit)
        row, _ = self.expansion(table, commit).queries(rows, np.array([number]))
        since = rows.column("since").combine_chunks().fill_null(np.iinfo(np.int64).max)
        row = row[since.to_numpy(zero_copy_only=False)[row] >= query.added]
        return result_times(rows.take(pa.array(np.unique(row))), several(query.shape))

    def expansion(self, table: ResultsTable, commit: Commit) -> Expansion:
        return Expansion(self.home.plan, table.sets, self.dead(commit.version))


class _Block:
    """Some results whoever wants them; what queries of one shape want of a result is made once."""

    def __init__(self, home: Home, rows: pa.Table, entries: Entries, some: slice) -> None:
        self.home = home
        used, at = np.unique(entries.rows[some], return_inverse=True)
        self.rows, self.at = rows.take(pa.array(used)), at.tolist()
        self.others, self.documents = entries.others[some].tolist(), entries.documents[some].tolist()
        self._listed = self.rows.drop_columns(["others"]).to_pylist()
        together = np.flatnonzero(~self.rows.column("each").to_numpy().astype(np.bool_))
        lists = self.rows.column("others").take(pa.array(together)).to_pylist()
        self._together = dict(zip(together.tolist(), lists, strict=True))
        self._made: dict[tuple[int, ...], tuple[list[str], int | None, list[Constructed]]] = {}

    def since(self, row: int) -> float:
        since = self._listed[row]["since"]
        return float("inf") if since is None else since

    def key(self, entry: int, shape: Any) -> tuple[Any, ...]:
        """What is the same of equal results."""
        row = self._listed[self.at[entry]]
        nodes = None if row["nodes"] is None or is_bound_when_read(shape) else tuple(row["nodes"])
        own = (row["stream"], row["document"])
        if not row["each"]:
            others = self._together[self.at[entry]] or ()
            return own, tuple(zip(row["other_streams"] or (), others, strict=True)), nodes
        other = (row["other_streams"][0], self.others[entry])
        return (other, own, nodes) if row["side"] else (own, other, nodes)  # a pair is the same from either side

    def results(self, entry: int, query: QueryLike) -> Iterator[Result]:
        row = self._listed[self.at[entry]]
        key = (entry, id(query.shape), *((id(query.constants),) if is_bound_when_read(query.shape) else ()))
        if key not in self._made:
            self._made[key] = self._construct(entry, row, query)
        documents, origin, made = self._made[key]
        for bindings, output in made:
            place = row["stream"], row["document"]
            yield Result(query.name, documents, row["timestamp"], bindings, output, row["since"], origin, place)

    def _construct(
        self, entry: int, row: Mapping[str, Any], query: QueryLike
    ) -> tuple[list[str], int | None, list[Constructed]]:
        documents, collected = self._documents(entry, row)
        made = constructed(query.shape, query.constants, ResultDocuments(documents, row["nodes"], collected))
        order = row["order"] or range(len(documents))
        origin = documents[0].origin if len(documents) == 1 else None
        return [documents[side].id for side in order], origin, made

    def _documents(
        self, entry: int, row: Mapping[str, Any]
    ) -> tuple[list[TakenDocument], list[tuple[int, TakenDocument]]]:
        """A document for each side, and those collected."""
        own = self._take(row["stream"], row["document"])
        if row["each"]:
            other = self._take(row["other_streams"][0], self.others[entry])
            return ([other, own] if row["side"] else [own, other]), []
        others = self._together[self.at[entry]] or ()
        taken = [self._take(*place) for place in zip(row["other_streams"] or (), others, strict=True)]
        if row["joins"] is not None:
            return [own], list(zip(row["joins"], taken, strict=True))
        return [own, *taken], []

    def _take(self, stream: int, number: int) -> TakenDocument:
        return take_document(self.home, stream, number)


class Once:
    """Results that came by one alternative of a query and must not come by another; entries come by document."""

    def __init__(self) -> None:
        self.documents: list[int] | None = None
        self.known: set[tuple[Any, ...]] = set()

    def add(self, number: int, shape: Any, block: _Block, entry: int) -> bool:
        """Whether it is new."""
        if not several(shape):
            return True
        if block.documents[entry] != self.documents:
            self.documents, self.known = block.documents[entry], set()
        key = (number, *block.key(entry, shape))
        if key in self.known:
            return False
        self.known.add(key)
        return True


class Results:
    """The results of one query or of all, in the order of the micro-batches; read when iterated."""

    def __init__(self, source: Callable[[], Iterable[Result]], to_frame: Callable[[pa.Table], Any]) -> None:
        self._source, self._to_frame = source, to_frame

    def __iter__(self) -> Iterator[Result]:
        return iter(self._source())

    def to_arrow(self) -> pa.Table:
        return pa.Table.from_batches(self._batches(), SCHEMA)

    def to_spark(self) -> Any:
        """A Spark DataFrame with the columns of `to_arrow`."""
        return self._to_frame(self.to_arrow())

    def _batches(self, size: int = 10_000) -> Iterator[pa.RecordBatch]:
        rows: list[dict[str, Any]] = []
        for result in self:
            bindings = [(k, {**b, "node": str(b["node"])}) for k, b in result.bindings.items()]
            output = result.output if isinstance(result.output, str) else json.dumps(result.output, default=to_text)
            rows.append({**result.to_dict(), "bindings": bindings, "output": output})
            if len(rows) == size:
                yield pa.RecordBatch.from_pylist(rows, SCHEMA)
                rows = []
        yield pa.RecordBatch.from_pylist(rows, SCHEMA)
