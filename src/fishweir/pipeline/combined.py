"""Joins of three and more streams in the job: what a worker writes, and what readers take.

In: the run files of a micro-batch and those retained. Out: Parquet files of combinations: a document for each side of
the join, the nodes that the result is over, the queries that want them. Documents are read from their logs when
somebody takes a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fishweir.algebra.construct import joined_columns
from fishweir.algebra.nodes import Constant, Shape
from fishweir.evaluate.arrays import Ints, number_rows
from fishweir.evaluate.join.many.mjoin import find_many
from fishweir.evaluate.join.many.partial import Combinations
from fishweir.evaluate.join.meeting import Known
from fishweir.evaluate.join.stage import JoinStage
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.select.match import to_lists
from fishweir.pipeline.annotated import expand_annotated
from fishweir.pipeline.bindings import JoinedResult, bound_result, places_of
from fishweir.pipeline.home import Home
from fishweir.pipeline.taken import take_document

NUMBERS = pa.list_(pa.int64())
COMBINED = pa.schema([
    ("streams", NUMBERS), ("numbers", NUMBERS), ("nodes", NUMBERS), ("order", NUMBERS), ("timestamp", pa.float64()),
    ("since", pa.int64()), ("members", NUMBERS),
])  # fmt: skip
"""Streams, numbers and nodes in the order of the sides; `order` has the sides by time."""


def combine_part(
    stage: JoinStage, new: Sequence[Run], old: Sequence[Run], known: Known, folder: Path, part: int, parts: int
) -> tuple[int, list[str]]:
    """One part of what a micro-batch completes; how many rows, and the file that has them."""
    if not stage.many:
        return 0, []
    path = folder / f"many-{part:05d}.parquet"
    writer: pq.ParquetWriter | None = None
    rows, before = 0, list(old)
    for run in new:
        for block in find_many(stage, run, before, part, parts, known):
            if writer is None:
                folder.mkdir(parents=True, exist_ok=True)
                temporary = path.with_suffix(".tmp")
                writer = pq.ParquetWriter(temporary, COMBINED, compression="lz4", write_statistics=False)
            writer.write_batch(_batch(block))
            rows += len(block)
        before.append(run)
    if writer is None:
        return 0, []
    writer.close()
    path.with_suffix(".tmp").replace(path)
    return rows, [path.name]


def _batch(block: Combinations) -> pa.RecordBatch:
    starts = np.arange(len(block) + 1)
    lists = block.streams, block.numbers, block.nodes, block.order
    return pa.RecordBatch.from_arrays(
        [
            *(to_lists(starts * part.shape[1], part.ravel()) for part in lists),
            pa.array(block.times),
            pa.array(block.since),
            to_lists(block.member_starts, block.members),
        ],
        schema=COMBINED,
    )


# For those who read results.


def expand_combined(rows: pa.Table, dead: Ints, wanted: Ints | None = None) -> tuple[Ints, Ints]:
    """Row indexes and query numbers, sorted; `dead` are query numbers to leave out, `wanted` to keep."""
    return expand_annotated(rows, dead, wanted)


def count_combined(rows: pa.Table, dead: Ints, number: int, added: int, once: bool) -> NDArray[np.float64]:
    """The timestamps of one query's results in these rows; `once` for each combination of documents."""
    if not len(rows):
        return np.empty(0, np.float64)
    row, _ = expand_combined(rows, dead, np.array([number]))
    seen = row[rows.column("since").to_numpy()[row] >= added]
    if once and len(seen):
        mine = rows.select(["streams", "numbers"]).take(pa.array(seen))
        columns = [mine.column(name).combine_chunks().flatten().to_numpy() for name in mine.column_names]
        places = [column for own in columns for column in own.reshape(len(seen), -1).T]
        seen = seen[np.unique(number_rows(*places), return_index=True)[1]]
    return np.asarray(rows.column("timestamp").to_numpy()[seen], np.float64)


def combination(row: Mapping[str, Any]) -> tuple[int, ...]:
    """The documents of a row: what is one result of a query, whichever of its conjunctions hold."""
    return (*row["streams"], *row["numbers"])


def combined_results(
    home: Home, row: Mapping[str, Any], shape: Shape, constants: tuple[Constant, ...]
) -> Iterator[JoinedResult]:
    """Each result of a row for one query."""
    taken = [take_document(home, *place) for place in zip(row["streams"], row["numbers"], strict=True)]
    ordered = [taken[side].id for side in row["order"]]
    if shape.formula is not None:
        yield ordered, {}, joined_columns(shape.columns, [(one.nodes[0], one.values) for one in taken])
        return
    for places in places_of(shape, constants, row["nodes"], taken):
        yield ordered, *bound_result(shape, taken, places)
