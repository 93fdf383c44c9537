"""Results as Arrow columns: one line per result; values shared by several lines are constructed once.

In: a batch of results. Out: a record batch. Select lists are assembled from one text per document (columns.py),
bindings of patterns from the parts of each document (bound_columns.py), both for documents that are read together
(document_columns.py). Everything else is constructed one by one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fishweir.algebra.feeds import Selection
from fishweir.algebra.values import to_text
from fishweir.evaluate.arrays import Ints, distinct, expand
from fishweir.pipeline.block import Block
from fishweir.pipeline.bound_columns import (
    BINDINGS,
    BoundColumns,
    bindings_of,
    bound_once,
    has_columns,
    no_bindings,
    widths,
)
from fishweir.pipeline.columns import Column, column_list, parts_of, texts
from fishweir.pipeline.document_columns import taken_at
from fishweir.pipeline.outputs import Constructed
from fishweir.pipeline.result import QueryLike, Result
from fishweir.pipeline.result_batch import ResultBatch
from fishweir.pipeline.source_documents import values_of
from fishweir.pipeline.text_pieces import Piece, Texts, joined

SCHEMA = pa.schema([
    ("query", pa.string()), ("documents", pa.list_(pa.string())), ("timestamp", pa.float64()),
    ("bindings", BINDINGS), ("output", pa.string()),
])  # fmt: skip

LEFT_OUT = pa.field("left_out", pa.list_(pa.string()))
"""Present if patterns were omitted."""

Shown = tuple[pa.Array, pa.Array, Ints]
"""Outputs and bindings for some entries, and the number of them per entry."""


def to_record_batch(batch: ResultBatch) -> pa.RecordBatch:
    """A line for each result, with the columns of SCHEMA."""
    if not len(batch.entries):
        return pa.RecordBatch.from_pylist([], SCHEMA)
    _, firsts = batch.kinds
    makings, making_of = distinct(batch.made_of)
    entries, kinds = np.divmod(makings, len(firsts))
    starts, counts = np.zeros(len(makings), np.int64), np.ones(len(makings), np.int64)
    outputs, bindings, filled = [], [], 0
    for kind, query in enumerate(firsts):
        chosen = np.flatnonzero(kinds == kind)
        if len(chosen):
            output, bound, count = _shown(batch.block, query, entries[chosen])
            counts[chosen] = count
            starts[chosen] = filled + np.cumsum(count) - count
            filled += len(output)
            outputs.append(output)
            bindings.append(bound)
    pair, at = expand(starts[making_of], (starts + counts)[making_of])
    entry = batch.entries[pair]
    block = batch.block
    columns = [
        taken_at(batch.queries.names, batch.of[pair]),
        taken_at(_documents(block), entry),
        taken_at(block.rows.column("timestamp").combine_chunks(), block.at[entry]),
        taken_at(_concatenated(bindings), at) if any(len(b.keys) for b in bindings) else no_bindings(len(at)),
        taken_at(_concatenated(outputs), at),
    ]
    if not block.cuts:
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    cuts = [block.cut(e, firsts[k]) for e, k in zip(entries.tolist(), kinds.tolist(), strict=True)]
    lacking = pa.array([list(cut.left_out) if cut else None for cut in cuts], LEFT_OUT.type)
    columns.append(lacking.take(pa.array(making_of[pair])))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA.append(LEFT_OUT))


def _concatenated(arrays: list[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _shown(block: Block, query: QueryLike, entries: Ints) -> Shown:
    sides = None if block.has_cuts(entries) else block.sides(entries)
    found = None if sides is None else _in_columns(block, query.shape, entries, sides)
    return found or _one_by_one(block, query, entries)


def _in_columns(block: Block, shape: Any, entries: Ints, sides: list[Ints]) -> Shown | None:
    return _selected(block, shape, sides) or _items(block, shape, sides) or _bound(block, shape, entries, sides)


def _one_by_one(block: Block, query: QueryLike, entries: Ints) -> Shown:
    parts = (entries[some].tolist() for some in block.in_parts(entries))
    made = [block.made(entry, query, block.taken(entry)) for part in parts for entry in part]
    flat = [one for some in made for one in some]
    outputs = pa.array([_output(one) for one in flat], pa.string())
    return outputs, bindings_of([bound for bound, _ in flat]), np.array([len(some) for some in made], np.int64)


def _selected(block: Block, shape: Any, sides: list[Ints]) -> Shown | None:
    """The outputs of a select list; None if the shape shows something else."""
    streams = [block.columns.streams(side) for side in sides]
    if any(len(some) > 1 for some in streams):
        return None
    columns = column_list(shape, [block.log(stream).stream for (stream,) in streams])
    if columns is None:
        return None
    shown: list[Piece] = []
    for side, some in parts_of(columns):
        once, of = distinct(sides[side])
        shown += [", " if shown else "{", Texts(texts(some, _values(block, streams[side][0], once, some)), of)]
    return _only_outputs(joined([*shown, "}"], len(sides[0])))


def _values(block: Block, stream: int, documents: Ints, columns: list[Column]) -> Mapping[Any, pa.Array]:
    """The values of columns of a stream's tuples or documents."""
    keys = dict.fromkeys(key for _, _, key in columns)
    if block.log(stream).stream.is_tuples:
        return values_of(block.log(stream), block.columns.numbers(documents), [str(key) for key in keys])
    return {path: block.columns.first_values(documents, path) for path in keys if not isinstance(path, str)}


def _items(block: Block, shape: Any, sides: list[Ints]) -> Shown | None:
    """Items as they are; None if the shape shows something else."""
    if not isinstance(shape, Selection) or shape.output or shape.joins:
        return None
    return _only_outputs(block.columns.markup(sides[0], np.zeros(len(sides[0]), np.int64)))


def _only_outputs(outputs: pa.StringArray) -> Shown:
    return outputs, no_bindings(len(outputs)), np.ones(len(outputs), np.int64)


def _bound(block: Block, shape: Any, entries: Ints, sides: list[Ints]) -> Shown | None:
    """Bindings and outputs of patterns; None if the shape shows something else."""
    if not has_columns(shape) or len(sides) != len(shape.blocks):
        return None
    nodes = _nodes(block, shape, entries, sides)
    if nodes is None:
        return None
    columns = BoundColumns(shape, block.columns, sides, nodes)
    outputs = columns.outputs()
    return None if outputs is None else (outputs, columns.bindings(), np.ones(len(entries), np.int64))


def _nodes(block: Block, shape: Any, entries: Ints, sides: list[Ints]) -> Ints | None:
    """The nodes of each result: those in its row, or those that its documents bind exactly once."""
    lists = block.rows.column("nodes").combine_chunks()
    width, rows = sum(widths(shape)), block.at[entries]
    given = lists.is_valid().to_numpy(zero_copy_only=False)[rows]
    if not given.any():
        return bound_once(shape, block.columns, sides) if shape.windows else None
    chosen = taken_at(lists, rows[given])
    offsets, flat = chosen.offsets.to_numpy(), chosen.flatten().to_numpy()
    if (np.diff(offsets) < width).any():
        return None
    starts = offsets[:-1] - offsets[0]
    found = np.empty((len(entries), width), np.int64)
    found[given] = flat[starts[:, None] + np.arange(width)]
    if not given.all():
        rest = np.flatnonzero(~given)
        found[rest] = bound_once(shape, block.columns, [side[rest] for side in sides])
    return found


def _documents(block: Block) -> pa.ListArray:
    """The ids of the documents of each entry of the block, ordered by time."""
    documents, offsets = block.by_time()
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), taken_at(block.columns.ids, documents))


def _output(made: Constructed) -> str:
    return made[1] if isinstance(made[1], str) else json.dumps(made[1], default=to_text)


def to_table(results: Iterable[Result]) -> pa.Table:
    """Results that were constructed one by one, with the columns of SCHEMA."""
    listed = list(results)
    columns = [
        pa.array([one.query for one in listed], pa.string()),
        pa.array([one.documents for one in listed], SCHEMA.field("documents").type),
        pa.array([one.timestamp for one in listed], pa.float64()),
        bindings_of([one.bindings for one in listed]),
        pa.array([_output(({}, one.output)) for one in listed], pa.string()),
    ]
    return pa.table(columns, schema=SCHEMA)
