"""What a worker does in the join: probe the runs for its part of the values, write the pairs found.

In: the run files of the micro-batch and those retained. Out: one Parquet file of pair rows under a name given by
micro-batch and part (a repeated task writes the same file again), and one summary for the driver. What
a document meets alike is one row: a list of documents, the name of the set of queries that want the pairs, and how
many of it. Sets repeat, and are stored once, under a name made of their content.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fishweir.evaluate.arrays import Ints, read_arrays, write_arrays
from fishweir.evaluate.join.edges import Contained
from fishweir.evaluate.join.meeting import Block, Known, find_pairs
from fishweir.evaluate.join.state import Run, read_run
from fishweir.evaluate.plan.source_plan import cached_annotations, cached_stage
from fishweir.evaluate.select.match import to_lists
from fishweir.pipeline.annotated import annotate_part
from fishweir.pipeline.combined import combine_part
from fishweir.pipeline.summary import Summary

NUMBERS = pa.list_(pa.int64())
PAIR = pa.schema([
    ("is_right", pa.bool_()), ("stream", pa.int32()), ("document", pa.int64()),
    ("partner_stream", pa.int32()), ("partners", NUMBERS),
    ("timestamp", pa.float64()), ("left_first", pa.bool_()), ("since", pa.int64()), ("nodes", NUMBERS),
    ("set", pa.string()), ("count", pa.int64()), ("members", NUMBERS),
])  # fmt: skip
"""A row is a document and those it met alike: each partner makes a pair, whose right document is the row's own one if
`is_right`. `left_first`: the right one is not earlier. `nodes` is null where the documents bind what the queries read
just once (else there is one partner), `set` where `members` lists them."""

ROWS_AT_ONCE = 1 << 16
PARTNERS_AT_ONCE = 1 << 20
"""What is gathered before it is written: a row group of Parquet has its price."""


@dataclass(frozen=True)
class JoinTask:
    """Probes for one part of the values."""

    plan: Path
    segments: tuple[str, ...]
    state: Path
    new: tuple[str, ...]
    old: tuple[str, ...]
    folder: Path
    sets: Path
    parts: int
    primaries: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()

    def __call__(self, part: int) -> Summary:
        summary = Summary()
        stage = cached_stage(self.plan, self.segments)
        old = [cached_run(self.state / name) for name in self.old]
        writer = PairWriter(self.folder, self.sets, part)
        new = [cached_run(self.state / name) for name in self.new]
        known = Known(stage, [*old, *new])
        combined = combine_part(stage, new, old, known, self.folder, part, self.parts)
        summary.matches += combined[0]
        summary.files += combined[1]
        for run in new:
            for block in find_pairs(stage, run, old, part, self.parts, known):
                writer.write(block)
                summary.matches += len(block.partners)
            old.append(run)
        summary.files += writer.close()
        if self.primaries:
            notes = cached_annotations(self.plan, self.segments)
            found = annotate_part(notes, self.state, self.primaries, self.windows, self.folder, part, self.parts)
            summary.matches += found[0]
            summary.files += found[1]
        return summary


def cached_run(path: Path) -> Run:
    """A run mapped into memory, once per process. Only a repeated micro-batch writes one again."""
    return _run(path, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=256)
def _run(path: Path, _written: int) -> Run:
    return read_run(path)


class PairWriter:
    """One Parquet file that appears under its name when it is complete, and the sets it names."""

    def __init__(self, folder: Path, sets: Path, part: int) -> None:
        self.folder, self.sets = folder, sets
        self.path = folder / f"pair-{part:05d}.parquet"
        self.writer: pq.ParquetWriter | None = None
        self._named: set[str] = set()
        self._gathered: list[pa.RecordBatch] = []
        self._rows = self._partners = 0

    def write(self, block: Block) -> None:
        self._gathered.append(pair_batch(block, None if block.wanted is None else self._name(block.wanted)))
        self._rows, self._partners = self._rows + len(block), self._partners + len(block.partners)
        if self._rows >= ROWS_AT_ONCE or self._partners >= PARTNERS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if self.writer is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary = self.path.with_suffix(".tmp")
            self.writer = pq.ParquetWriter(
                temporary,
                PAIR,
                compression="lz4",
                write_statistics=False,
                use_dictionary=["set"],
                column_encoding={"partners.list.element": "DELTA_BINARY_PACKED"},
            )
        self.writer.write_table(pa.Table.from_batches(self._gathered, PAIR))
        self._gathered, self._rows, self._partners = [], 0, 0

    def _name(self, wanted: Contained) -> str:
        if wanted.name not in self._named:
            self._named.add(wanted.name)
            path = set_path(self.sets, wanted.name)
            if not path.exists():
                self.sets.mkdir(parents=True, exist_ok=True)
                write_arrays(path, {}, {"members": np.ascontiguousarray(wanted.members)})
        return wanted.name

    def close(self) -> list[str]:
        if self._gathered:
            self._flush()
        if self.writer is None:
            return []
        self.writer.close()
        self.path.with_suffix(".tmp").replace(self.path)
        return [self.path.name]


def set_path(sets: Path, name: str) -> Path:
    return sets / f"{name}.bin"


@lru_cache(maxsize=4096)
def cached_set(path: Path) -> Ints:
    _, arrays = read_arrays(path)
    return np.asarray(arrays["members"])


def pair_batch(block: Block, name: str | None) -> pa.RecordBatch:
    size = len(block)
    nodes = pa.nulls(size, NUMBERS)
    if block.nodes is not None:
        nodes = to_lists(np.arange(size + 1) * block.nodes.shape[1], block.nodes.ravel())
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(block.by_right, size),
            pa.array(block.streams, pa.int32()),
            pa.array(block.numbers),
            pa.array(block.partner_streams, pa.int32()),
            to_lists(block.partner_starts, block.partners),
            pa.array(block.times),
            pa.array(block.left_first),
            pa.array(block.since),
            nodes,
            pa.repeat(pa.scalar(name, pa.string()), size),
            pa.array(block.counts, pa.int64()),
            to_lists(block.member_starts, block.members),
        ],
        schema=PAIR,
    )
