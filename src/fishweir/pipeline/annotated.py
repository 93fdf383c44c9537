"""Annotation joins in the job: what a worker writes and probes, what is retained, what readers take.

In: the items of a micro-batch to annotate (`.primary` files, gone after it) and the runs of the windows' items
(`.window` files, in the commit's list with the runs of other joins). Out: Parquet files of annotated rows: an item, the
queries that want it, its annotation as streams and numbers. The items themselves are read from their logs when somebody
takes a result: its output is a copy of the item with an `annotation` element for each join.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from lxml import etree
from numpy.typing import NDArray

from fishweir.algebra.construct import element_text, value_of
from fishweir.algebra.feeds import WHOLE, Selection
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.annotations.annotating import Annotated, annotate
from fishweir.evaluate.join.annotations.stage import AnnotationStage
from fishweir.evaluate.join.annotations.state import Items, read_items, write_items
from fishweir.evaluate.select.match import to_lists
from fishweir.pipeline.home import Home
from fishweir.pipeline.taken import take_document

PRIMARY, WINDOW = ".primary", ".window"
NUMBERS = pa.list_(pa.int64())
ANNOTATED = pa.schema([
    ("stream", pa.int32()), ("document", pa.int64()), ("timestamp", pa.float64()), ("members", NUMBERS),
    ("joins", NUMBERS), ("streams", NUMBERS), ("numbers", NUMBERS),
])  # fmt: skip
"""The annotation's items by join, in order of time, stream and number."""


def retain_items(folder: Path, stage: AnnotationStage, name: str, parts: Sequence[tuple[Items, Items]]) -> list[str]:
    """Writes what a task found; the name is given by micro-batch and partition."""
    primary = [items for items, _ in parts if len(items)]
    entering = [items for _, items in parts if len(items)]
    written = []
    folder.mkdir(parents=True, exist_ok=True)
    if primary:
        write_items(folder / f"{name}{PRIMARY}", stage.together(primary))
        written.append(f"{name}{PRIMARY}")
    if entering:
        write_items(folder / f"{name}{WINDOW}", stage.merged(entering))
        written.append(f"{name}{WINDOW}")
    return written


def annotate_part(
    stage: AnnotationStage,
    state: Path,
    primaries: Sequence[str],
    windows: Sequence[str],
    folder: Path,
    part: int,
    parts: int,
) -> tuple[int, list[str]]:
    """One part of a micro-batch's items; how many rows, and the file that has them."""
    runs = [cached_items(state / name) for name in windows]
    path = folder / f"note-{part:05d}.parquet"
    writer: pq.ParquetWriter | None = None
    rows = 0
    for name in primaries:
        primary = cached_items(state / name)
        for block in annotate(stage, primary, runs, part, parts):
            if writer is None:
                folder.mkdir(parents=True, exist_ok=True)
                writer = pq.ParquetWriter(path.with_suffix(".tmp"), ANNOTATED, compression="zstd")
            writer.write_batch(_batch(primary, block))
            rows += len(block)
    if writer is None:
        return 0, []
    writer.close()
    path.with_suffix(".tmp").replace(path)
    return rows, [path.name]


def _batch(primary: Items, block: Annotated) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array(primary.streams[block.rows], pa.int32()),
            pa.array(primary.numbers[block.rows]),
            pa.array(primary.times[block.rows]),
            to_lists(block.member_starts, block.members),
            *(to_lists(block.item_starts, some) for some in (block.joins, block.streams, block.numbers)),
        ],
        schema=ANNOTATED,
    )


def cached_items(path: Path) -> Items:
    """Mapped into memory, once per process. Only a repeated micro-batch writes one again."""
    return _items(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _items(path: Path, _written: int) -> Items:
    return read_items(path)


# For those who read results.


def expand_annotated(rows: pa.Table, dead: Ints, wanted: Ints | None = None) -> tuple[Ints, Ints]:
    """Row indexes and query numbers, sorted; `dead` are query numbers to leave out, `wanted` to keep."""
    lists = rows.column("members").combine_chunks()
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    numbers = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    keep = ~np.isin(numbers, dead) if wanted is None else np.isin(numbers, wanted) & ~np.isin(numbers, dead)
    row, numbers = np.repeat(np.arange(len(rows)), lengths)[keep], numbers[keep]
    order = np.lexsort((numbers, row))
    return row[order], numbers[order]


def count_annotated(rows: pa.Table, dead: Ints, number: int) -> NDArray[np.float64]:
    """The timestamps of one query's results in these rows."""
    row, _ = expand_annotated(rows, dead, np.array([number]))
    return np.asarray(rows.column("timestamp").to_numpy()[row], np.float64)


def annotated_result(
    home: Home, row: Mapping[str, Any], shape: Selection
) -> tuple[list[str], dict[str, dict[str, Any]], str]:
    """Documents, bindings and output. The items of the annotation are bound as `window`, `window.2` and so on, those
    of the query's second join as `join2.window`."""
    item = take_document(home, row["stream"], row["document"])
    root = deepcopy(item.nodes[0])
    bindings: dict[str, dict[str, Any]] = {}
    entries: dict[int, etree._Element] = {}
    counted: dict[int, int] = {}
    for join, stream, number in zip(row["joins"], row["streams"], row["numbers"], strict=True):
        if join not in entries:
            entries[join] = etree.SubElement(root, "annotation")
            if shape.joins[join].variable != WHOLE:
                entries[join].set("join", f"${shape.joins[join].variable}")
        other = take_document(home, stream, number)
        copied = deepcopy(other.nodes[0])
        copied.tail = None
        entries[join].append(copied)
        counted[join] = counted.get(join, 0) + 1
        name = ("window" if not join else f"join{join + 1}.window") + (f".{counted[join]}" if counted[join] > 1 else "")
        bindings[name] = {"document": other.id, "node": 0, "value": value_of((other.nodes[0], None))}
    return [item.id], bindings, element_text(root)
