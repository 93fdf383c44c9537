"""Chunks: log entries prepared for matching.

In: a range of a stream's log and the plan of its sources. Out: numbers, ids, timestamps and witnesses of the valid
entries; the invalid ones with the reason for setting them aside. Each body is read once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fishweir.algebra.documents import BadDocument, parse_document
from fishweir.algebra.nodes import Source, StreamDefinition
from fishweir.algebra.simple_paths import xml_name
from fishweir.algebra.values import to_timestamp
from fishweir.evaluate.group import Batch
from fishweir.evaluate.plan.plan import SourcePlan
from fishweir.evaluate.witnesses.automaton.checking import check
from fishweir.evaluate.witnesses.path_tables import Path, PathTable, bytes_of, offsets_of, tuple_tables
from fishweir.evaluate.witnesses.shared_paths import DocumentWalk
from fishweir.evaluate.witnesses.turns import EVERYTHING, ElementTurns, Turns
from fishweir.intake.log import StreamLog
from fishweir.intake.schema import column_name
from fishweir.intake.sources.rows import RowReader
from fishweir.pipeline.bodies import EventTimes, read_bodies

TOGETHER = 32
"""The minimum number of entries of a log segment for reading them together: each such call has a fixed cost."""


@dataclass
class Chunk:
    """Some entries of one stream, prepared for matching: numbers, times and witnesses of the valid ones. They are
    arrays for tuples and lists for documents.
    """

    numbers: Any = field(default_factory=list)
    timestamps: Any = field(default_factory=list)
    aside: list[tuple[int, str | None, str]] = field(default_factory=list)
    witnesses: Mapping[Path, PathTable] = field(default_factory=dict)
    arrivals: Any = field(default_factory=list)
    since: list[int | None] = field(default_factory=list)
    """For results of the first joins of a chain: the catalog version when the earliest document arrived, if known."""
    origins: Any = field(default_factory=list)
    """For a stream of published results: the original document that was passed on, or -1 for a new document."""
    changes: list[tuple[int, float, str]] = field(default_factory=list)
    """For a changing file, including its removed rows: number, arrival, key."""

    def batch(self, stream: int, sources: tuple[Source, ...], version: int) -> Batch:
        """The documents in the form that the evaluator accepts; `version` is the catalog version of the micro-batch."""
        since = [version if one is None else one for one in self.since]
        return Batch.of(
            stream,
            sources,
            self.numbers,
            self.timestamps,
            self.witnesses,
            self.arrivals,
            since=since if any(one is not None for one in self.since) else version,
            changes=self.changes,
            origins=self.origins,
        )


def read_chunk(
    log: StreamLog,
    plan: SourcePlan,
    after: int,
    upto: int,
    without: frozenset[int] = frozenset(),
    turns: Turns | ElementTurns = EVERYTHING,
    relaxed: Collection[frozenset[Path]] = (),
) -> Chunk:
    """Entries (after, upto] of a log, parsed and walked. Invalid entries are set aside with their reasons. Entries in
    `without` are not parsed; in the others, `turns` says which paths are suspended.
    """
    chunk = Chunk()
    if log.stream.is_tuples:
        _read_tuples(log, plan, after, upto, chunk, without)
    else:
        is_whole = not without and not relaxed and turns is EVERYTHING
        _read_documents(log, after, upto, chunk, without, plan.start(turns, relaxed), is_whole)
    return chunk


def _read_documents(
    log: StreamLog,
    after: int,
    upto: int,
    chunk: Chunk,
    without: frozenset[int],
    walk: DocumentWalk,
    is_whole: bool,
) -> None:
    """Reads documents one by one; `is_whole` says that nothing is shed."""
    times = EventTimes(log.stream)
    reader = RowReader(log.stream.rows, log.stream.key) if log.stream.rows and log.stream.key else None
    plainly = reader is None and is_whole and not walk.takes_items
    for first, batch in log.read(after, upto):
        if plainly and _read_together(log.stream, first, batch, walk, chunk):
            continue
        entries = list(_entries(first, batch, without))
        contents = read_bodies([entry for _, entry in entries])
        own = times.of([entry for _, entry in entries], contents)
        for (number, entry), content, time in zip(entries, contents, own, strict=True):
            if entry["change"] == "deleted":
                if reader is not None:
                    key = reader.key_of(parse_document(entry["body"]))
                    chunk.changes.append((number, entry["arrival"], key or ""))
                continue
            if isinstance(content, BadDocument) or isinstance(time, BadDocument):
                reason = content if isinstance(content, BadDocument) else time
                chunk.aside.append((number, entry["id"], str(reason)))
                continue
            walk.add(len(chunk.numbers), content, _context(entry["context"]), number)
            chunk.numbers.append(number)
            chunk.timestamps.append(time)
            chunk.arrivals.append(entry["arrival"])
            if "since" in entry:
                chunk.since.append(entry["since"])
            if "origin" in entry:
                chunk.origins.append(-1 if entry["origin"] is None else entry["origin"])
            if reader is not None:
                chunk.changes.append((number, entry["arrival"], reader.key_of(parse_document(entry["body"])) or ""))
    chunk.witnesses = walk.tables()


def _read_together(
    stream: StreamDefinition, first: int, batch: pa.RecordBatch, walk: DocumentWalk, chunk: Chunk
) -> bool:
    """Reads entries all at once if only bodies and given times matter. Returns whether that is the case."""
    size, bodies = batch.num_rows, batch.column("body")
    unset = all(batch.column(name).null_count == size for name in ("problem", "change", "context"))
    if size < TOGETHER or stream.timestamp or "origin" in batch.schema.names or not unset or bodies.null_count:
        return False
    bounds = offsets_of(bodies)
    data, bounds = bytes_of(bodies)[bounds[0] : bounds[-1]], bounds - bounds[0]
    if not check(data, bounds).all():
        return False
    walk.add_all(range(len(chunk.numbers), len(chunk.numbers) + size), data, bounds)
    chunk.numbers.extend(range(first, first + size))
    chunk.timestamps.extend(pc.coalesce(batch.column("timestamp"), batch.column("arrival")).to_pylist())
    chunk.arrivals.extend(batch.column("arrival").to_pylist())
    return True


def _entries(first: int, batch: pa.RecordBatch, without: frozenset[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    if not without:
        yield from enumerate(batch.to_pylist(), first)
        return
    rows = [row for row in range(batch.num_rows) if first + row not in without]
    yield from zip((first + row for row in rows), batch.take(pa.array(rows, pa.int64())).to_pylist(), strict=True)


def _read_tuples(
    log: StreamLog, plan: SourcePlan, after: int, upto: int, chunk: Chunk, without: frozenset[int]
) -> None:
    batches = list(log.read(after, upto))
    if not batches:
        return
    entries = batches[0][1] if len(batches) == 1 else pa.concat_batches([batch for _, batch in batches])
    numbers = np.concatenate([np.arange(first, first + batch.num_rows) for first, batch in batches])
    if without:
        stay = np.flatnonzero(~np.isin(numbers, np.fromiter(without, np.int64, len(without))))
        entries, numbers = entries.take(pa.array(stay)), numbers[stay]
    times, untimed = tuple_timestamps(entries, log.stream)
    problems = entries.column("problem")
    reasons = {}
    if problems.null_count < len(problems):
        reasons = {i: p for i, p in enumerate(problems.to_pylist()) if p is not None}
    reasons |= {i: reason for i, reason in untimed.items() if i not in reasons}
    if reasons:
        ids = entries.column("id").to_pylist()
        chunk.aside = [(int(numbers[i]), ids[i], reason) for i, reason in sorted(reasons.items())]
        good = np.setdiff1d(np.arange(len(numbers)), np.array(sorted(reasons), dtype=np.int64))
        entries, numbers, times = entries.take(pa.array(good)), numbers[good], times[good]
    chunk.numbers, chunk.timestamps, chunk.arrivals = numbers, times, entries.column("arrival").to_numpy()
    if "origin" in entries.schema.names:
        chunk.origins = entries.column("origin").fill_null(-1).to_numpy()
    if "since" in entries.schema.names and entries.column("since").null_count < len(numbers):
        chunk.since = entries.column("since").to_pylist()
    columns = {xml_name(name): entries.column(column_name(name)) for name, _ in log.stream.columns}
    chunk.witnesses = tuple_tables(xml_name(log.stream.tuple_element), columns, plan.paths)


def tuple_timestamps(entries: pa.RecordBatch, stream: StreamDefinition) -> tuple[NDArray[np.float64], dict[int, str]]:
    """The timestamp of each row in seconds, and the reasons of the rows without one."""
    given = entries.column("timestamp").to_numpy(zero_copy_only=False).astype(np.float64)
    if stream.timestamp is None:
        return np.where(np.isnan(given), entries.column("arrival").to_numpy(), given), {}
    column = entries.column(column_name(stream.timestamp))
    if pa.types.is_timestamp(column.type):
        own = column.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.float64) / 1e6
    elif pa.types.is_string(column.type):
        texts = [to_timestamp(text) if text is not None else None for text in column.to_pylist()]
        own = np.array(texts, dtype=np.float64)
    else:
        own = column.to_numpy(zero_copy_only=False).astype(np.float64)
    times = np.where(np.isnan(given), own, given)
    missing = np.flatnonzero(np.isnan(times))
    return times, {int(i): f"no timestamp in column {stream.timestamp}: {column[i].as_py()!r}" for i in missing}


def _context(text: str | None) -> tuple[str, ...]:
    return tuple(text.split("/")) if text else ()
