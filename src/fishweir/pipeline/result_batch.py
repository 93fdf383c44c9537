"""Some results in columns: a line for each result, what lines have in common once.

In: result rows of one micro-batch, expanded to entries and to (entry, query) pairs. Out: an Arrow batch, or `Result`
objects one by one. What queries of one shape show of an entry is *made* once and taken for all of them; a select list
over tuples is put together from one text a document.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fishweir.algebra.values import to_text
from fishweir.evaluate.arrays import Ints, expand
from fishweir.intake.log import StreamLog
from fishweir.pipeline.columns import Column, column_list, parts_of, texts
from fishweir.pipeline.expand import Entries, first_of
from fishweir.pipeline.home import Home, open_log
from fishweir.pipeline.outputs import Constructed, ResultDocuments, constructed, is_bound_when_read, several
from fishweir.pipeline.result import QueryLike, Result
from fishweir.pipeline.taken import TakenDocument, ids_of, taken_from, values_of

SCHEMA = pa.schema([
    ("query", pa.string()), ("documents", pa.list_(pa.string())), ("timestamp", pa.float64()),
    ("bindings", pa.map_(pa.string(), pa.struct([
        ("document", pa.string()), ("node", pa.string()), ("value", pa.string())]))),
    ("output", pa.string()),
])  # fmt: skip

KEPT = 4096
"""What is shown of so many entries is remembered while results are made one by one."""

_READ = ["stream", "document", "side", "other_streams", "each", "joins", "order", "timestamp", "since", "nodes"]


class Block:
    """Some entries, whoever wants them."""

    def __init__(self, home: Home, rows: pa.Table, entries: Entries, some: slice) -> None:
        self.home = home
        used, self.at = np.unique(entries.rows[some], return_inverse=True)
        self.rows = rows.take(pa.array(used))
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
        """By row, whether a result shows its own document only: a selection, or an item with its annotation."""
        found = self.rows.column("others").is_null().to_numpy() | self.rows.column("joins").is_valid().to_numpy()
        return np.asarray(found, np.bool_)

    @cached_property
    def other_streams(self) -> Ints:
        """By row, the stream of the first other document."""
        return first_of(self.rows, "other_streams")

    @cached_property
    def listed(self) -> list[dict[str, Any]]:
        return self.rows.select(_READ).to_pylist()

    @cached_property
    def together(self) -> dict[int, list[int]]:
        """By row, the others that all belong to one result."""
        chosen = np.flatnonzero(~self.each)
        lists = self.rows.column("others").take(pa.array(chosen)).to_pylist()
        return dict(zip(chosen.tolist(), (one or [] for one in lists), strict=True))

    def places(self, entry: int) -> list[tuple[int, int]]:
        """Stream and number of the document of each side, and behind them of those that were collected."""
        at = int(self.at[entry])
        row = self.listed[at]
        own = (row["stream"], row["document"])
        if row["each"]:
            other = (row["other_streams"][0], int(self.others[entry]))
            return [other, own] if row["side"] else [own, other]
        return [own, *zip(row["other_streams"] or (), self.together[at], strict=True)]

    def key(self, entry: int, shape: Any) -> tuple[Any, ...]:
        """What is the same of equal results: a pair is the same from either side."""
        nodes = self.listed[int(self.at[entry])]["nodes"]
        return *self.places(entry), None if nodes is None or is_bound_when_read(shape) else tuple(nodes)

    def taken(self, entry: int) -> list[TakenDocument]:
        return [taken_from(self.log(stream), stream, number) for stream, number in self.places(entry)]

    def shown(self, entry: int, taken: Sequence[TakenDocument]) -> tuple[list[str], int | None]:
        """The ids of the documents by time, and the origin of a single one."""
        row = self.listed[int(self.at[entry])]
        sides = taken[:1] if row["joins"] is not None else taken
        ids = [sides[side].id for side in row["order"] or range(len(sides))]
        return ids, sides[0].origin if len(sides) == 1 else None

    def made(self, entry: int, query: QueryLike, taken: list[TakenDocument]) -> list[Constructed]:
        """What a query shows of the entry."""
        row = self.listed[int(self.at[entry])]
        collected: list[tuple[int, TakenDocument]] = []
        if row["joins"] is not None:
            taken, collected = taken[:1], list(zip(row["joins"], taken[1:], strict=True))
        return constructed(query.shape, query.constants, ResultDocuments(taken, row["nodes"], collected))


@dataclass(frozen=True)
class ResultBatch:
    """Pairs of an entry and a query, in order; each is one result, or several of a join that is bound when read."""

    block: Block
    entries: Ints
    queries: Sequence[QueryLike]
    of: Ints
    """The place of each pair's query in `queries`."""
    numbers: Ints
    """By place in `queries`, its number."""

    def results(self) -> Iterator[tuple[int, Result]]:
        """Each result with the number of its query."""
        block, made = self.block, _Makings(self)
        entries, of, numbers, at = (a.tolist() for a in (self.entries, self.of, self.numbers, self.block.at))
        for entry, place, making in zip(entries, of, self._made_of.tolist(), strict=True):
            query, row = self.queries[place], block.listed[at[entry]]
            documents, origin, outputs = made.of(making, entry, query)
            where = row["stream"], row["document"]
            for bindings, output in outputs:
                yield (
                    numbers[place],
                    Result(query.name, documents, row["timestamp"], bindings, output, row["since"], origin, where),
                )

    @cached_property
    def _kinds(self) -> tuple[Ints, list[QueryLike]]:
        """Which queries show the same of an entry: the kind of each, and a query of each kind."""
        known: dict[tuple[int, ...], int] = {}
        firsts: list[QueryLike] = []
        kinds = np.empty(len(self.queries), np.int64)
        for place, query in enumerate(self.queries):
            bound = (id(query.constants),) if is_bound_when_read(query.shape) else ()
            kinds[place] = known.setdefault((id(query.shape), *bound), len(known))
            if kinds[place] == len(firsts):
                firsts.append(query)
        return kinds, firsts

    @cached_property
    def _made_of(self) -> Ints:
        """Of each pair a number that is equal where the same is shown."""
        kinds, firsts = self._kinds
        return self.entries * len(firsts) + kinds[self.of]

    def those(self, wanted: Callable[[QueryLike], bool]) -> ResultBatch:
        """The results of some of its queries."""
        keep = np.array([wanted(query) for query in self.queries], np.bool_)[self.of]
        return (
            self
            if keep.all()
            else ResultBatch(self.block, self.entries[keep], self.queries, self.of[keep], self.numbers)
        )

    def to_arrow(self) -> pa.RecordBatch:
        """A line for each result, with the columns of SCHEMA."""
        if not len(self.entries):
            return pa.RecordBatch.from_pylist([], SCHEMA)
        _, firsts = self._kinds
        makings, making_of = np.unique(self._made_of, return_inverse=True)
        entries, kinds = np.divmod(makings, len(firsts))
        starts, counts = np.zeros(len(makings), np.int64), np.ones(len(makings), np.int64)
        outputs, bindings, filled = [], [], 0
        for kind, query in enumerate(firsts):
            chosen = np.flatnonzero(kinds == kind)
            output, bound, count = self._shown(query, entries[chosen])
            counts[chosen] = count
            starts[chosen] = filled + np.cumsum(count) - count
            filled += len(output)
            outputs.append(output)
            bindings.append(bound)
        pair, at = expand(starts[making_of], starts[making_of] + counts[making_of])
        entry = self.entries[pair]
        names = pa.array([query.name for query in self.queries], pa.string())
        columns = [
            names.take(pa.array(self.of[pair])),
            self._documents.take(pa.array(entry)),
            self.block.rows.column("timestamp").combine_chunks().take(pa.array(self.block.at[entry])),
            pa.concat_arrays(bindings).take(pa.array(at)),
            pa.concat_arrays(outputs).take(pa.array(at)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    def _shown(self, query: QueryLike, entries: Ints) -> tuple[pa.Array, pa.Array, Ints]:
        """Outputs and bindings of what a query shows of some entries, and how many each gives."""
        kind = SCHEMA.field("bindings").type
        by_columns = self._selected(query.shape, entries)
        if by_columns is not None:
            none = pa.array([[]], kind).take(pa.array(np.zeros(len(entries), np.int64)))
            return by_columns, none, np.ones(len(entries), np.int64)
        made = [self.block.made(entry, query, self.block.taken(entry)) for entry in entries.tolist()]
        flat = [one for some in made for one in some]
        outputs, bound = ([show(one) for one in flat] for show in (_output, _bindings))
        return pa.array(outputs, pa.string()), pa.array(bound, kind), np.array([len(some) for some in made], np.int64)

    def _selected(self, shape: Any, entries: Ints) -> pa.Array | None:
        """The outputs of a select list over tuples; None where that is not what the shape shows."""
        sides = self._sides(entries)
        if sides is None:
            return None
        columns = column_list(shape, [self.block.log(stream).stream for stream, _ in sides])
        if columns is None:
            return None
        shown: list[Any] = []
        for side, some in parts_of(columns):
            stream, numbers = sides[side]
            distinct, of = np.unique(numbers, return_inverse=True)
            values = values_of(self.block.log(stream), distinct, [key for _, _, key in some])
            shown += [", ", pa.array(texts(some, values), pa.string()).take(pa.array(of))]
        return pc.binary_join_element_wise("{", *shown[1:], "}", "")

    def _sides(self, entries: Ints) -> list[tuple[int, Ints]] | None:
        """For each side its stream and the numbers of its documents; None where entries differ in that."""
        block, rows = self.block, self.block.at[entries]
        streams, numbers, sides = (block.rows.column(name).to_numpy()[rows] for name in ("stream", "document", "side"))
        if block.alone[rows].all():
            return [(int(streams[0]), numbers)] if (streams == streams[0]).all() else None
        if not block.each[rows].all():
            return None
        others = block.other_streams[rows]
        found = []
        for is_own in (sides == 0, sides == 1):
            stream = np.where(is_own, streams, others)
            if (stream != stream[0]).any():
                return None
            found.append((int(stream[0]), np.where(is_own, numbers, block.others[entries])))
        return found

    @cached_property
    def _documents(self) -> pa.ListArray:
        """The ids of the documents of each entry of the block, by time."""
        sides, offsets = self._by_time()
        ids = np.empty(len(sides), object)
        for stream in np.unique(sides[:, 0]).tolist():
            chosen = np.flatnonzero(sides[:, 0] == stream)
            distinct, of = np.unique(sides[chosen, 1], return_inverse=True)
            ids[chosen] = np.array(ids_of(self.block.log(stream), distinct), object)[of]
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(ids, pa.string()))

    def _by_time(self) -> tuple[Ints, Ints]:
        """Stream and number of the documents of all entries, by time, and where those of each entry begin."""
        block = self.block
        streams, numbers, side = (block.rows.column(name).to_numpy() for name in ("stream", "document", "side"))
        alone, each = block.alone[block.at], block.each[block.at]
        rest = {entry: _in_order(block, entry) for entry in np.flatnonzero(~alone & ~each).tolist()}
        lengths = np.where(each, 2, 1)
        lengths[list(rest)] = [len(some) for some in rest.values()]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        found = np.empty((offsets[-1], 2), np.int64)
        own = np.stack([streams[block.at].astype(np.int64), numbers[block.at]], axis=1)
        found[offsets[:-1][alone]] = own[alone]
        newer_first = pc.equal(pc.list_element(block.rows.column("order").combine_chunks(), 0), 1).fill_null(False)
        own_first = ((side == 0) ^ newer_first.to_numpy(zero_copy_only=False))[block.at][each]
        other = np.stack([block.other_streams[block.at], block.others], axis=1)[each]
        found[offsets[:-1][each] + ~own_first] = own[each]
        found[offsets[:-1][each] + own_first] = other
        for entry, some in rest.items():
            found[offsets[entry] : offsets[entry + 1]] = some
        return found, offsets


def _in_order(block: Block, entry: int) -> list[tuple[int, int]]:
    places, order = block.places(entry), block.listed[int(block.at[entry])]["order"]
    return [places[side] for side in order] if order else places


def _output(made: Constructed) -> str:
    return made[1] if isinstance(made[1], str) else json.dumps(made[1], default=to_text)


def _bindings(made: Constructed) -> list[tuple[str, dict[str, Any]]]:
    return [(name, {**bound, "node": str(bound["node"])}) for name, bound in made[0].items()]


def to_table(results: Iterable[Result]) -> pa.Table:
    """Results that somebody has one by one, with the columns of SCHEMA."""
    listed = list(results)
    made: list[Constructed] = [({n: dict(b) for n, b in one.bindings.items()}, one.output) for one in listed]
    columns = [
        [one.query for one in listed], [one.documents for one in listed], [one.timestamp for one in listed],
        list(map(_bindings, made)), list(map(_output, made)),
    ]  # fmt: skip
    return pa.table([pa.array(column, kind.type) for column, kind in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


class _Makings:
    """What is shown of entries, made when it is first asked for; the last ones are kept."""

    def __init__(self, batch: ResultBatch) -> None:
        self.block = batch.block
        self.kept: dict[int, tuple[list[str], int | None, list[Constructed]]] = {}
        self.lists: dict[tuple[int, ...], list[Column] | None] = {}

    def of(self, making: int, entry: int, query: QueryLike) -> tuple[list[str], int | None, list[Constructed]]:
        if making not in self.kept:
            if len(self.kept) == KEPT:
                self.kept.clear()
            taken = self.block.taken(entry)
            columns = self._columns(entry, query)
            made = (
                self.block.made(entry, query, taken)
                if columns is None or any(one.values is None for one in taken)
                else [({}, {name: taken[side].values[key] for name, side, key in columns})]  # type: ignore[index]
            )
            self.kept[making] = *self.block.shown(entry, taken), made
        return self.kept[making]

    def _columns(self, entry: int, query: QueryLike) -> list[Column] | None:
        streams = tuple(stream for stream, _ in self.block.places(entry))
        key = (id(query.shape), *streams)
        if key not in self.lists:
            self.lists[key] = column_list(query.shape, [self.block.log(stream).stream for stream in streams])
        return self.lists[key]


class Once:
    """Results that came by one alternative of a query and must not come by another; entries come by document."""

    def __init__(self) -> None:
        self.documents: list[int] | None = None
        self.known: set[tuple[Any, ...]] = set()

    def new(self, batch: ResultBatch) -> ResultBatch:
        """The pairs that have not come before."""
        often = np.array([several(query.shape) for query in batch.queries], np.bool_)
        if not often.any():
            return batch
        keep = ~often[batch.of]
        for pair in np.flatnonzero(~keep).tolist():
            place, entry = int(batch.of[pair]), int(batch.entries[pair])
            documents = batch.block.last[entry].tolist()
            if documents != self.documents:
                self.documents, self.known = documents, set()
            key = (int(batch.numbers[place]), *batch.block.key(entry, batch.queries[place].shape))
            keep[pair] = key not in self.known
            self.known.add(key)
        return ResultBatch(batch.block, batch.entries[keep], batch.queries, batch.of[keep], batch.numbers)


def pairs_of(block: Block, at: Ints, numbers: Ints, look_up: Mapping[int, QueryLike]) -> ResultBatch:
    """The pairs of a block's entries with the queries of their rows: with those that were registered in time."""
    distinct, of = np.unique(numbers, return_inverse=True)
    queries = [look_up[number] for number in distinct.tolist()]
    bounds = np.searchsorted(at, np.arange(len(block.rows) + 1))
    entries, positions = expand(bounds[block.at], bounds[block.at + 1])
    of = of[positions]
    added = np.array([query.added for query in queries], np.int64)
    seen = added[of] <= block.since[block.at[entries]] if len(of) else np.zeros(0, np.bool_)
    return ResultBatch(block, entries[seen], queries, of[seen], distinct)
