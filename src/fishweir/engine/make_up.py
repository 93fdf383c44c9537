"""`make up within INTERVAL`: shed documents are evaluated later, when there is time, and produce late results.

Entries that a micro-batch left out are appended to the log of their stream again, with their original id and time, and
processed like all others. The cursor of the same segment records which were appended: a restart neither loses nor
repeats any. Nothing is appended while other entries wait, and never more at once than can be evaluated in two fifths of
the target latency. Entries older than the interval are given up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from fishweir.intake.log import StreamLog
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.home import Home, open_log
from fishweir.shedding.decision import LEFT_OUT
from fishweir.shedding.overload import Overload

CURSOR = "made_up"
AT_ONCE = 10_000


@dataclass
class MakeUp:
    """The shed entries that are still to be evaluated, for all streams with `make up`."""

    home: Home
    table: ResultsTable
    overload: Overload | None = None
    clock: Callable[[], float] = time.time
    _done: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By stream, the micro-batch and the number up to which all entries are done."""

    def pending(self) -> int:
        """Appends the entries that can be evaluated now, if nothing else waits. Returns their number."""
        found = next(self._left(), None)
        if found is None:
            return 0
        most = AT_ONCE
        if self.overload is not None:
            most = max(1, self.overload.room(AT_ONCE))
        log, id, commit, numbers = found
        return self._append(log, id, commit, numbers[:most])

    def waiting(self) -> bool:
        return next(self._left(), None) is not None

    def _left(self) -> Iterator[tuple[StreamLog, int, Commit, list[int]]]:
        """By stream and micro-batch, the entries that are left."""
        if not any(stream.make_up for stream in self.home.logs.streams().values()):
            return
        shed = [commit for commit in self.table.commits() if commit.shed]
        for id in {int(id) for commit in shed for id in commit.shed}:
            log = open_log(self.home.streams, id)
            if log.stream.make_up is None:
                continue
            for commit in shed:
                batch, number = self._reached(log, id)
                if str(id) not in commit.shed or commit.batch < batch:
                    continue
                rows = self.table.shed(commit).to_pylist()
                own = [row["document"] for row in rows if row["stream"] == id and row["level"] == LEFT_OUT]
                left = sorted(n for n in own if commit.batch > batch or n > number)
                if left and self.clock() - commit.at <= log.stream.make_up:
                    yield log, id, commit, left

    def _reached(self, log: StreamLog, id: int) -> tuple[int, int]:
        if id not in self._done:
            batch, number, _ = log.newest(CURSOR) or (-1, 0, 0)
            self._done[id] = (batch, number)
        return self._done[id]

    def _append(self, log: StreamLog, id: int, commit: Commit, numbers: list[int]) -> int:
        shed = np.array(numbers)
        tables = []
        for first, batch in log.read(numbers[0] - 1, numbers[-1]):
            own = np.arange(first, first + batch.num_rows)
            rows = np.flatnonzero(np.isin(own, shed))
            tables.append(_with_new_arrival(log, batch.take(pa.array(rows)), own[rows].tolist(), self.clock()))
        *_, total = log.newest(CURSOR) or (0, 0, 0)
        cursor = {CURSOR: [commit.batch, numbers[-1], total + len(numbers)]}
        log.append(pa.concat_tables(tables).combine_chunks(), cursor)
        self._done[id] = (commit.batch, numbers[-1])
        return len(numbers)


def made_up(log: StreamLog) -> int:
    """The number of entries of a stream that were evaluated later."""
    *_, total = log.newest(CURSOR) or (0, 0, 0)
    return int(total)


def _with_new_arrival(log: StreamLog, batch: pa.RecordBatch, numbers: list[int], now: float) -> pa.Table:
    """The entries with their original ids and times, and the current arrival time."""
    table = pa.Table.from_batches([batch])
    given = zip(table.column("id").to_pylist(), numbers, strict=True)
    ids = pa.array([id or f"{log.stream.name}-{n}" for id, n in given], pa.string())
    times = table.column("timestamp")
    if log.stream.timestamp is None:
        times = pa.chunked_array([_filled(times.combine_chunks(), table.column("arrival").combine_chunks())])
    replaced = {"id": ids, "timestamp": times, "arrival": pa.array([now] * len(table), pa.float64())}
    columns = [replaced.get(name, table.column(name)) for name in table.column_names]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _filled(times: pa.Array, arrivals: pa.Array) -> pa.Array:
    pairs = zip(times.to_pylist(), arrivals.to_pylist(), strict=True)
    return pa.array([arrival if time is None else time for time, arrival in pairs], pa.float64())
