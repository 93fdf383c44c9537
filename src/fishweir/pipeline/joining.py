"""What a worker does in the join: probe the runs for its part of the values, write the pairs found.

In: the run files of the micro-batch and those retained. Out: one Parquet file of pair rows under a name given by
micro-batch and part (a repeated task writes the same file again), and one summary row for the driver. A pair that
satisfies ten thousand queries is one row with the name of that set of queries and how many of it; sets repeat, and
are stored once, under a name made of their content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fishweir.pipeline.annotated import annotate_part
from fishweir.pipeline.combined import combine_part
from fishweir.pipeline.summary import Summary
from fishweir.sharing.arrays import Ints, read_arrays, write_arrays
from fishweir.sharing.joins.edges import Contained
from fishweir.sharing.joins.stage import Block, Known, find_pairs
from fishweir.sharing.joins.state import Run, read_run
from fishweir.sharing.match import to_lists
from fishweir.sharing.plan import cached_annotations, cached_stage

NUMBERS = pa.list_(pa.int64())
PAIR = pa.schema([
    ("left_stream", pa.int32()), ("left", pa.int64()), ("right_stream", pa.int32()), ("right", pa.int64()),
    ("timestamp", pa.float64()), ("apart", pa.float64()), ("since", pa.int64()), ("nodes", NUMBERS),
    ("set", pa.string()), ("count", pa.int64()), ("members", NUMBERS),
])  # fmt: skip
"""`apart`: how much later the right one is. `nodes` is null where the documents bind what the queries read just once,
`set` where `members` lists them."""


@dataclass(frozen=True)
class JoinTask:
    """The function of `mapInArrow` over part numbers."""

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

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        summary = Summary()
        for batch in batches:
            for part in batch.column(0).to_pylist():
                self._part(int(part), summary)
        yield pa.RecordBatch.from_arrays([pa.array([summary.dump()])], ["summary"])

    def _part(self, part: int, summary: Summary) -> None:
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
                summary.matches += len(block)
            old.append(run)
        summary.files += writer.close()
        if self.primaries:
            notes = cached_annotations(self.plan, self.segments)
            found = annotate_part(notes, self.state, self.primaries, self.windows, self.folder, part, self.parts)
            summary.matches += found[0]
            summary.files += found[1]


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
        self._named: dict[int, tuple[Contained, str]] = {}

    def write(self, block: Block) -> None:
        if self.writer is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.sets.mkdir(parents=True, exist_ok=True)
            temporary = self.path.with_suffix(".tmp")
            self.writer = pq.ParquetWriter(temporary, PAIR, compression="lz4", write_statistics=False)
        self.writer.write_batch(pair_batch(block, None if block.wanted is None else self._name(block.wanted)))

    def _name(self, wanted: Contained) -> str:
        known = self._named.get(id(wanted))
        if known is None:
            members = np.ascontiguousarray(wanted.members)
            known = self._named[id(wanted)] = (wanted, hashlib.blake2b(members.tobytes(), digest_size=12).hexdigest())
            path = set_path(self.sets, known[1])
            if not path.exists():
                write_arrays(path, {}, {"members": members})
        return known[1]

    def close(self) -> list[str]:
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
            pa.array(block.left_streams, pa.int32()), pa.array(block.left_numbers),
            pa.array(block.right_streams, pa.int32()), pa.array(block.right_numbers),
            pa.array(block.times), pa.array(block.apart), pa.array(block.since), nodes,
            pa.repeat(pa.scalar(name, pa.string()), size), pa.array(block.counts, pa.int64()),
            to_lists(block.member_starts, block.members),
        ],
        schema=PAIR,
    )  # fmt: skip
