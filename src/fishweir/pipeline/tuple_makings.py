"""Outputs of select lists over single tuples, for all results of a batch together: reads columns, not documents.

In: a batch of results. Out: by making (result_batch.py) the ids of the documents, the origin and the outputs; nothing
where results show something else, which is then made one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import origin_of
from fishweir.intake.log import StreamLog
from fishweir.pipeline.columns import column_list
from fishweir.pipeline.outputs import Constructed
from fishweir.pipeline.taken import entries_of, ids_of, values_of

if TYPE_CHECKING:
    from fishweir.pipeline.result_batch import ResultBatch

Made = tuple[list[str], int | None, list[Constructed]]


def tuple_makings(batch: ResultBatch) -> dict[int, Made]:
    block, (_, firsts) = batch.block, batch.kinds
    makings = np.unique(batch.made_of)
    entries, kinds = np.divmod(makings, len(firsts))
    own = block.own[block.at[entries]]
    if block.cuts or not len(makings) or not block.alone[block.at[entries]].all() or (own[:, 0] != own[0, 0]).any():
        return {}
    stream = int(own[0, 0])
    log = block.log(stream)
    lists = {kind: column_list(firsts[kind].shape, [log.stream]) for kind in np.unique(kinds).tolist()}
    columns = {kind: some for kind, some in lists.items() if some is not None}
    if not log.stream.is_tuples or len(columns) < len(lists):
        return {}
    numbers, of = np.unique(own[:, 1], return_inverse=True)
    shown = _shown(log, stream, numbers)
    if shown is None:
        return {}
    ids, origins = shown
    keys = sorted({str(key) for some in columns.values() for _, _, key in some})
    values = {key: column.to_pylist() for key, column in values_of(log, numbers, keys).items()}
    of_kind = {kind: [(name, values[str(key)]) for name, _, key in some] for kind, some in columns.items()}
    return {
        making: ([ids[at]], origins[at], [({}, {name: column[at] for name, column in of_kind[kind]})])
        for making, kind, at in zip(makings.tolist(), kinds.tolist(), of.tolist(), strict=True)
    }


def _shown(log: StreamLog, stream: int, numbers: Ints) -> tuple[list[str], list[int]] | None:
    """Ids and origins of documents; None where one of them is none of its stream's tuples."""
    found = entries_of(log, numbers, [name for name in ("origin", "problem") if name in log.schema.names])
    if "problem" in found.column_names and found.column("problem").null_count < len(found):
        return None
    given = found.column("origin").to_pylist() if "origin" in found.column_names else [None] * len(numbers)
    own = zip(numbers.tolist(), given, strict=True)
    origins = [origin_of(stream, number) if origin is None else origin for number, origin in own]
    return ids_of(log, numbers).to_pylist(), origins
