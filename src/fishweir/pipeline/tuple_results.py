"""Select lists over single tuples, for all results of a batch at once: reads columns instead of documents.

In: a batch of results. Out: the results in order; None if they show something else. Such results are constructed one by
one (result_batch.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from fishweir.evaluate.arrays import Ints, distinct
from fishweir.evaluate.group import origin_of
from fishweir.intake.log import StreamLog
from fishweir.pipeline.columns import Column, column_list
from fishweir.pipeline.document_columns import STREAM
from fishweir.pipeline.result import Result, results_of
from fishweir.pipeline.source_documents import fields_of, ids_of, values_of

if TYPE_CHECKING:
    from fishweir.pipeline.result_batch import ResultBatch

AT_ONCE = 4096
"""The number of results that are constructed together."""


def tuple_results(batch: ResultBatch) -> Iterator[Result] | None:
    block, (kind_of, firsts) = batch.block, batch.kinds
    rows, kinds = block.at[batch.entries], kind_of[batch.of]
    own = block.own[rows]
    if block.cuts or not len(rows) or not block.alone[rows].all():
        return None
    stream, *more = distinct(own >> STREAM)[0].tolist()
    if more:
        return None
    log = block.log(stream)
    lists = {kind: column_list(firsts[kind].shape, [log.stream]) for kind in np.unique(kinds).tolist()}
    columns = {kind: some for kind, some in lists.items() if some is not None}
    if not log.stream.is_tuples or len(columns) < len(lists):
        return None
    numbers, of = distinct(own & (1 << STREAM) - 1)
    shown = _shown(log, stream, numbers)
    if shown is None:
        return None
    keys = sorted({str(key) for some in columns.values() for _, _, key in some})
    values = {key: column.to_pylist() for key, column in values_of(log, numbers, keys).items()}
    outputs = {kind: _outputs(some, values) for kind, some in columns.items()}
    return _made(batch, of, kinds, outputs, (*shown, numbers.tolist(), stream))


def _outputs(columns: Sequence[Column], values: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """The output of a select list for each tuple."""
    names = [name for name, _, _ in columns]
    rows = zip(*(values[str(key)] for _, _, key in columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _made(
    batch: ResultBatch,
    of: Ints,
    kinds: Ints,
    outputs: Mapping[int, list[dict[str, Any]]],
    documents: tuple[list[str], list[int], list[int], int],
) -> Iterator[Result]:
    """The results. Queries that show the same of a document share its output."""
    ids, origins, numbers, stream = documents
    given = [([id], origin, (stream, number)) for id, origin, number in zip(ids, origins, numbers, strict=True)]
    bindings: list[dict[str, Any]] = [{} for _ in ids]
    times, since = (batch.block.listed(name) for name in ("timestamp", "since"))
    names = batch.queries.listed_names
    for start in range(0, len(of), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        at, rows = of[some].tolist(), batch.block.at[batch.entries[some]].tolist()
        shown = (
            map(outputs[int(kinds[start])].__getitem__, at)
            if len(outputs) == 1
            else [outputs[kind][place] for kind, place in zip(kinds[some].tolist(), at, strict=True)]
        )
        lists, origin, places = zip(*map(given.__getitem__, at), strict=True)
        yield from results_of(
            names[batch.of[some]].tolist(), lists, map(times.__getitem__, rows), map(bindings.__getitem__, at), shown,
            map(since.__getitem__, rows), origin, places, repeat(()),
        )  # fmt: skip


def _shown(log: StreamLog, stream: int, numbers: Ints) -> tuple[list[str], list[int]] | None:
    """Ids and origins of documents; None if one of them is not a tuple of its stream."""
    found = fields_of(log, numbers, [name for name in ("origin", "problem") if name in log.schema.names])
    if "problem" in found.column_names and found.column("problem").null_count < len(found):
        return None
    given = found.column("origin").to_pylist() if "origin" in found.column_names else [None] * len(numbers)
    own = zip(numbers.tolist(), given, strict=True)
    origins = [origin_of(stream, number) if origin is None else origin for number, origin in own]
    return ids_of(log, numbers).to_pylist(), origins
