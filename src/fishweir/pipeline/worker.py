"""What a worker does with its slices of the logs: read, match, write.

In: rows of the source. Out: one Parquet file of match rows and one of entries set aside, both under
names given by micro-batch and partition (a repeated task writes the same files again), and one summary
for the driver. Where queries join documents it also writes a run of what later ones may meet, and where
they annotate items, those to annotate and those that enter windows.
No state of its own: everything follows from the log, the segments and the batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fishweir.evaluate.join.annotations.stage import batch_items
from fishweir.evaluate.join.annotations.state import Items
from fishweir.evaluate.join.stage import batch_run
from fishweir.evaluate.join.state import Run, write_run
from fishweir.evaluate.plan.source_plan import cached_annotations, cached_plan, cached_stage, sources_of
from fishweir.pipeline.annotated import retain_items
from fishweir.pipeline.chunks import Chunk, read_chunk
from fishweir.pipeline.home import open_log
from fishweir.pipeline.offsets import LogSlice
from fishweir.pipeline.rows import ASIDE, MATCH, aside_batch, match_batch
from fishweir.pipeline.summary import Summary

DOCUMENTS_AT_ONCE = 1_000
TUPLES_AT_ONCE = 65_536


@dataclass(frozen=True)
class MatchTask:
    """What every partition does; small, since it is sent with every micro-batch."""

    streams: Path
    plan: Path
    segments: tuple[str, ...]
    folder: Path
    state: Path
    version: int
    batch: int

    def __call__(self, partition: int, slices: Iterable[LogSlice]) -> Summary:
        summary, runs, items = Summary(), list[Run](), list[tuple[Items, Items]]()
        writer = ResultWriter(self.folder, partition)
        for part in slices:
            self._slice(part, writer, summary, runs, items)
        summary.files = writer.close()
        summary.runs = self._retain(runs, partition)
        if items:
            name, stage = f"{self.batch:09d}-{partition:05d}", cached_annotations(self.plan, self.segments)
            summary.runs += retain_items(self.state, stage, name, items)
        return summary

    def _retain(self, runs: list[Run], partition: int) -> list[str]:
        """Writes what later documents may meet; the name is given by micro-batch and partition."""
        if not runs:
            return []
        self.state.mkdir(parents=True, exist_ok=True)
        name = f"{self.batch:09d}-{partition:05d}.run"
        write_run(self.state / name, cached_stage(self.plan, self.segments).merged(runs))
        return [name]

    def _slice(
        self,
        part: LogSlice,
        writer: ResultWriter,
        summary: Summary,
        runs: list[Run],
        items: list[tuple[Items, Items]],
    ) -> None:
        log, stream = open_log(self.streams, part.stream), part.stream
        sources = sources_of(log.stream)
        plan = cached_plan(self.plan, self.segments, sources)
        stage, notes = cached_stage(self.plan, self.segments), cached_annotations(self.plan, self.segments)
        size = TUPLES_AT_ONCE if log.stream.is_tuples else DOCUMENTS_AT_ONCE
        for start in range(part.after, part.upto, size):
            chunk = read_chunk(log, plan, start, min(start + size, part.upto))
            writer.aside(stream, chunk)
            counted = plan.count(sources, chunk.witnesses, self.batch + start // size)
            done = Summary(len(chunk.numbers), 0, len(chunk.aside), [], {str(stream): part.upto}, counted)
            done.walked[str(stream)] = plan.counters(len(chunk.numbers), chunk.witnesses)
            if chunk.timestamps:
                done.times[str(stream)] = min(chunk.timestamps), max(chunk.timestamps)
            for segment, table, matches in plan.match(chunk.witnesses):
                writer.matches(match_batch(stream, chunk, segment, table, matches))
                done.matches += len(matches)
            if stage.reads(sources):
                found = chunk.numbers, chunk.timestamps, chunk.since or self.version, chunk.witnesses
                runs.append(batch_run(stage, sources, stream, *found, chunk.arrivals, chunk.changes, chunk.origins))
            if notes.reads(sources):
                items.append(batch_items(notes, sources, stream, chunk.numbers, chunk.timestamps, chunk.witnesses))
            summary.add(done)


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
