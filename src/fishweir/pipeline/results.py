"""Results as people take them: expanded to queries, with bindings and outputs, from table and log.

Nothing is constructed before somebody asks: a match row names a document and nodes, and the document
is read from its stream's log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from fishweir.algebra.clauses import has_several
from fishweir.algebra.construct import Bound, construct, element_text, select_columns, value_of
from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import Constant, Shape
from fishweir.algebra.normal import Template, to_normal
from fishweir.algebra.values import to_text
from fishweir.evaluate.arrays import Ints
from fishweir.pipeline.annotated import annotated_result, expand_annotated
from fishweir.pipeline.combined import combination, combined_result, expand_combined
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.expand import expand_rows
from fishweir.pipeline.home import Home
from fishweir.pipeline.joined import PAIR_COLUMNS, JoinedResult, expand_pairs, joined_results, pair_blocks
from fishweir.pipeline.taken import take_document

SCHEMA = pa.schema([
    ("query", pa.string()), ("documents", pa.list_(pa.string())), ("timestamp", pa.float64()),
    ("bindings", pa.map_(pa.string(), pa.struct([
        ("document", pa.string()), ("node", pa.string()), ("value", pa.string())]))),
    ("output", pa.string()),
])  # fmt: skip


class QueryLike(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> Shape | Selection: ...
    @property
    def constants(self) -> tuple[Constant, ...]: ...
    @property
    def added(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Result:
    """One result of one query; `bindings` by variable: document, node and value. For streams of published results,
    `since` is the version of the catalog when a join's earliest document arrived, `origin` a selection's document, and
    `place` the stream and the number under which that came."""

    query: str
    documents: list[str]
    timestamp: float
    bindings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    output: str | dict[str, Any] = ""
    since: int | None = field(default=None, repr=False, compare=False)
    origin: int | None = field(default=None, repr=False, compare=False)
    place: tuple[int, int] | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "documents": self.documents,
            "timestamp": self.timestamp,
            "bindings": {name: dict(bound) for name, bound in self.bindings.items()},
            "output": self.output,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, default=to_text)


@dataclass(frozen=True)
class ResultReader:
    """Makes results of match rows; `look_up` gives the queries by number, `dead` the ones dropped by a version."""

    home: Home
    look_up: Callable[[list[int]], Mapping[int, QueryLike]]
    dead: Callable[[int], Ints]

    def read(self, table: ResultsTable, commit: Commit, wanted: Ints | None = None) -> Iterator[tuple[int, Result]]:
        """The results of a micro-batch with the number of their query."""
        dead, seen = self.dead(commit.version), Seen()
        for block in table.blocks(commit):
            rows, numbers = expand_rows(block, self.home.plan, dead, wanted)
            if not len(rows):
                continue
            queries = self.look_up(np.unique(numbers).tolist())
            listed = block.to_pylist()
            makers: dict[tuple[int, Shape | Selection], Callable[[str], Result]] = {}
            for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
                query = queries[number]
                if not seen.add(number, listed[row]):
                    continue
                maker = makers.get((row, query.shape))
                if maker is None:
                    maker = makers[row, query.shape] = self._maker(listed[row], query.shape)
                yield number, maker(query.name)
        if any(name.startswith("pair") for name in commit.files):
            yield from self._joined(table, commit, dead, wanted)
        if any(name.startswith("many") for name in commit.files):
            yield from self._combined(table, commit, dead, wanted)
        if any(name.startswith("note") for name in commit.files):
            yield from self._annotated(table, commit, dead, wanted)

    def _annotated(
        self, table: ResultsTable, commit: Commit, dead: Ints, wanted: Ints | None
    ) -> Iterator[tuple[int, Result]]:
        """Queries of one shape want the same result of a row."""
        for block in table.annotated_blocks(commit):
            rows, numbers = expand_annotated(block, dead, wanted)
            if not len(rows):
                continue
            queries = self.look_up(np.unique(numbers).tolist())
            listed = block.to_pylist()
            made: dict[tuple[int, Shape | Selection], tuple[list[str], dict[str, dict[str, Any]], str]] = {}
            for at, number in zip(rows.tolist(), numbers.tolist(), strict=True):
                query, row = queries[number], listed[at]
                assert isinstance(query.shape, Selection)
                if (at, query.shape) not in made:
                    made[at, query.shape] = annotated_result(self.home, row, query.shape)
                documents, bindings, output = made[at, query.shape]
                yield number, Result(query.name, documents, row["timestamp"], bindings, output)

    def _joined(
        self, table: ResultsTable, commit: Commit, dead: Ints, wanted: Ints | None
    ) -> Iterator[tuple[int, Result]]:
        """A query sees a pair if it was there before the earlier arrived of its documents came; once, by however
        many of its conjunctions."""
        seen: set[tuple[int, ...]] = set()
        for block in pair_blocks(table.pairs(commit), table.sets, dead, wanted):
            rows, numbers = expand_pairs(block, table.sets, dead, wanted)
            if not len(rows):
                continue
            queries = self.look_up(np.unique(numbers).tolist())
            listed = block.to_pylist()
            made: dict[tuple[int, int], list[JoinedResult]] = {}
            for at, number in zip(rows.tolist(), numbers.tolist(), strict=True):
                query, row = queries[number], listed[at]
                if query.added > row["since"]:
                    continue
                if isinstance(query.shape, Shape) and has_several(query.shape):
                    pair = (number, *(row[name] for name in PAIR_COLUMNS))
                    if pair in seen:
                        continue
                    seen.add(pair)
                if (at, id(query.shape)) not in made:
                    made[at, id(query.shape)] = self._made(row, query)
                for documents, bindings, output in made[at, id(query.shape)]:
                    yield number, Result(query.name, documents, row["timestamp"], bindings, output, row["since"])

    def _combined(
        self, table: ResultsTable, commit: Commit, dead: Ints, wanted: Ints | None
    ) -> Iterator[tuple[int, Result]]:
        """The same of combinations of several documents."""
        seen: set[tuple[int, ...]] = set()
        for block in table.combined_blocks(commit):
            rows, numbers = expand_combined(block, dead, wanted)
            if not len(rows):
                continue
            queries = self.look_up(np.unique(numbers).tolist())
            listed = block.to_pylist()
            made: dict[tuple[int, int], tuple[list[str], dict[str, Any]]] = {}
            for at, number in zip(rows.tolist(), numbers.tolist(), strict=True):
                query, row = queries[number], listed[at]
                assert isinstance(query.shape, Shape)
                if query.added > row["since"]:
                    continue
                if has_several(query.shape):
                    one = (number, *combination(row))
                    if one in seen:
                        continue
                    seen.add(one)
                if (at, id(query.shape)) not in made:
                    made[at, id(query.shape)] = combined_result(self.home, row, query.shape)
                documents, output = made[at, id(query.shape)]
                yield number, Result(query.name, documents, row["timestamp"], {}, output)

    def _made(self, row: Mapping[str, Any], query: QueryLike) -> list[JoinedResult]:
        """What all queries of one shape want of a pair: their constants are decided by then."""
        left, right = (take_document(self.home, row[f"{s}_stream"], row[s]) for s in ("left", "right"))
        assert isinstance(query.shape, Shape)
        return list(joined_results(query.shape, query.constants, row, left, right))

    def _maker(self, row: Mapping[str, Any], shape: Shape | Selection) -> Callable[[str], Result]:
        """Queries of one shape want the same result of a row, each under its own name."""
        place = row["stream"], row["document"]
        document = take_document(self.home, *place)
        id, nodes, values, origin = document.id, document.nodes, document.values, document.origin
        if isinstance(shape, Selection):
            output = select_columns(shape.output, nodes[0], values) if shape.output else element_text(nodes[0])
            return lambda query: Result(query, [id], row["timestamp"], {}, output, origin=origin, place=place)
        template, variables = to_normal(shape).template, dict(to_normal(shape).variables)
        assert isinstance(template, Template), "a tree pattern has a template"
        element_of = dict(zip(template.outputs, row["nodes"], strict=True))
        bound: dict[str, Bound] = {}
        bindings = {}
        for name in shape.output_variables:
            node = variables[name]
            step, position = template.nodes[node].step, element_of[node]
            attribute = f"{{{step.namespace}}}{step.name}" if step.namespace else step.name
            bound[name] = (nodes[position], attribute if step.is_attribute else None)
            shown = f"{position}@{step.name}" if step.is_attribute else position
            if name[0] != "_":
                bindings[name] = {"document": id, "node": shown, "value": value_of(bound[name])}
        output = construct(shape.output, bound)
        return lambda query: Result(query, [id], row["timestamp"], bindings, output, origin=origin, place=place)


class Seen:
    """A query fires once for a binding, by however many of its conjunctions; rows come by document."""

    def __init__(self) -> None:
        self.document: tuple[int, int] | None = None
        self.known: set[tuple[int, tuple[int, ...]]] = set()

    def add(self, number: int, row: Mapping[str, Any]) -> bool:
        """Whether it is new."""
        document = (row["stream"], row["document"])
        if document != self.document:
            self.document, self.known = document, set()
        key = (number, tuple(row["nodes"]))
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
