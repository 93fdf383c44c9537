"""What a worker does with its slices of the logs: read, match, write.

In: rows of the source. Out: one Parquet file of match rows and one of entries set aside, both under
names given by micro-batch and partition (a repeated task writes the same files again), and one summary
row for the driver. No state: everything follows from the log, the segments and the batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from fishweir.intake.log import StreamLog
from fishweir.pipeline.chunks import Chunk, read_chunk
from fishweir.pipeline.home import open_log
from fishweir.pipeline.rows import ASIDE, MATCH, aside_batch, match_batch
from fishweir.sharing.plan import cached_plan, sources_of
from fishweir.sharing.statistics import PathStatistics, statistics_from_json

DOCUMENTS_AT_ONCE = 1_000
TUPLES_AT_ONCE = 65_536


@dataclass
class Summary:
    """What a task tells the driver."""

    documents: int = 0
    matches: int = 0
    aside: int = 0
    files: list[str] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    statistics: dict[str, PathStatistics] = field(default_factory=dict)

    def dump(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, text: str) -> Summary:
        raw = json.loads(text)
        loaded = {key: statistics_from_json(counted) for key, counted in raw.pop("statistics").items()}
        return cls(**raw, statistics=loaded)

    def add(self, other: Summary) -> None:
        self.documents += other.documents
        self.matches += other.matches
        self.aside += other.aside
        self.files += other.files
        for stream, upto in other.offsets.items():
            self.offsets[stream] = max(upto, self.offsets.get(stream, 0))
        for key, counted in other.statistics.items():
            self.statistics[key] = self.statistics.get(key, PathStatistics()).merge(counted)


@dataclass(frozen=True)
class MatchTask:
    """The function of `mapInArrow`; small, so it travels with every micro-batch."""

    streams: Path
    plan: Path
    segments: tuple[str, ...]
    folder: Path

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        summary = Summary()
        context = TaskContext.get()
        writer = ResultWriter(self.folder, context.partitionId() if context else 0)
        for batch in batches:
            for row in batch.to_pylist():
                self._slice(open_log(self.streams, row["stream"]), writer, summary, **row)
        summary.files = writer.close()
        yield pa.RecordBatch.from_arrays([pa.array([summary.dump()])], ["summary"])

    def _slice(
        self, log: StreamLog, writer: ResultWriter, summary: Summary, stream: int, after: int, upto: int
    ) -> None:
        sources = sources_of(log.stream)
        plan = cached_plan(self.plan, self.segments, sources)
        size = TUPLES_AT_ONCE if log.stream.is_tuples else DOCUMENTS_AT_ONCE
        for start in range(after, upto, size):
            chunk = read_chunk(log, plan, start, min(start + size, upto))
            writer.aside(stream, chunk)
            counted = plan.count(sources, chunk.witnesses)
            part = Summary(len(chunk.numbers), 0, len(chunk.aside), [], {str(stream): upto}, counted)
            for segment, table, matches in plan.match(chunk.witnesses):
                writer.matches(match_batch(stream, chunk, segment, table, matches))
                part.matches += len(matches)
            summary.add(part)


class ResultWriter:
    """Two Parquet files that appear under their names when they are complete."""

    def __init__(self, folder: Path, partition: int) -> None:
        self.folder, self.partition = folder, partition
        self.writers: dict[str, pq.ParquetWriter] = {}

    def matches(self, batch: pa.RecordBatch) -> None:
        self._write("match", MATCH, batch)

    def aside(self, stream: int, chunk: Chunk) -> None:
        if chunk.aside:
            self._write("aside", ASIDE, aside_batch(stream, chunk.aside))

    def _write(self, kind: str, schema: pa.Schema, batch: pa.RecordBatch) -> None:
        if kind not in self.writers:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.writers[kind] = pq.ParquetWriter(self._path(kind, ".tmp"), schema, compression="zstd")
        self.writers[kind].write_batch(batch)

    def _path(self, kind: str, suffix: str = "") -> Path:
        return self.folder / f"{kind}-{self.partition:05d}.parquet{suffix}"

    def close(self) -> list[str]:
        for kind, writer in self.writers.items():
            writer.close()
            self._path(kind, ".tmp").replace(self._path(kind))
        return [self._path(kind).name for kind in self.writers]
