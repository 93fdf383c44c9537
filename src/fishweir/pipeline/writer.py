"""The files that tasks write: result rows and entries set aside, one Arrow file each, which appears when it is
complete.

Names are given by micro-batch and partition, so a repeated task writes the same files again. Files are compressed with
LZ4: a small one is written and read in a tenth of the time of a Parquet file, a large one in a quarter, and takes up to
twice the space. Small batches are collected first. The query sets that rows name are stored once, by the hash of their
content.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fishweir.evaluate.arrays import MAPPED, Ints, read_arrays, write_arrays
from fishweir.evaluate.results import RESULT, ResultRows
from fishweir.pipeline.fired_index import Index, indexed, merged
from fishweir.sealed import Stamp, in_folder, reading, seal_of, seal_of_bytes, stamp, write_all, writing

ASIDE = pa.schema([
    ("stream", pa.int32()), ("document", pa.int64()), ("id", pa.string()), ("reason", pa.string()),
])  # fmt: skip

SHED = pa.schema([("stream", pa.int32()), ("document", pa.int64()), ("level", pa.int8())])

SUFFIX = ".arrow"

ROWS_AT_ONCE = 1 << 16
RESULTS_AT_ONCE = 1 << 20
"""The number of results that are collected before they are written."""
MANY_BYTES = 1 << 20
"""The size of a file from which its columns are decompressed in several threads."""

COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


class ResultWriter:
    """Writes one file of result rows; `name` identifies the task."""

    def __init__(self, folder: Path, sets: Path, name: str) -> None:
        self.path, self.sets = folder / f"{name}{SUFFIX}", sets
        self.results = 0
        self.fired: Index | None = {}
        """The queries that its rows name."""
        self._writer: pa.RecordBatchFileWriter | None = None
        self._named: set[str] = set()
        self._gathered: list[pa.RecordBatch] = []
        self._rows = self._waiting = 0

    def write(self, rows: ResultRows) -> None:
        for name, members in rows.sets.items():
            self._store(name, members)
        self._gathered.append(rows.batch)
        self.results += rows.results
        self._rows, self._waiting = self._rows + rows.batch.num_rows, self._waiting + rows.results
        if self._rows >= ROWS_AT_ONCE or self._waiting >= RESULTS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        with writing(self.path):
            if self._writer is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = pa.OSFile(str(self.path.with_suffix(".tmp")), "wb")
                self._writer = pa.ipc.new_file(self._file, RESULT, options=COMPRESSED)
            self._writer.write_table(self._taken().combine_chunks())

    def _taken(self) -> pa.Table:
        """The rows that have been collected, which are in the index from now on."""
        rows = pa.Table.from_batches(self._gathered, RESULT)
        self.fired = merged(self.fired, indexed(rows))
        self._gathered, self._rows, self._waiting = [], 0, 0
        return rows

    def _store(self, name: str, members: Ints) -> None:
        if name in self._named:
            return
        self._named.add(name)
        path = set_path(self.sets, name)
        if not path.exists():
            with writing(path):
                self.sets.mkdir(parents=True, exist_ok=True)
            write_arrays(path, {}, {"members": np.ascontiguousarray(members)})

    def close(self) -> dict[str, str]:
        """Closes the writer and returns the existing files with their seals."""
        if self._writer is None:
            return self._written_at_once() if self._gathered else {}
        if self._gathered:
            self._flush()
        with writing(self.path):
            self._writer.close()
            self._file.close()
            self.path.with_suffix(".tmp").replace(self.path)
        return {self.path.name: seal_of(self.path)}

    def _written_at_once(self) -> dict[str, str]:
        """Writes a file whose rows are all collected, which takes less time than piece by piece."""
        return _write(self.path, self._taken())


def _write(path: Path, rows: pa.Table) -> dict[str, str]:
    """Writes a table to a file, and returns the file with its seal."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema, options=COMPRESSED) as writer:
        writer.write_table(rows.combine_chunks())
    content, temporary = memoryview(sink.getvalue()), path.with_suffix(".tmp")
    with writing(path, temporary):
        with in_folder(path, lambda: open(temporary, "wb", buffering=0)) as file:
            write_all(file, content)
        os.replace(temporary, path)
    return {path.name: seal_of_bytes(content)}


def read_rows(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a file; all its columns, or some of them."""
    with reading(path), pa.OSFile(str(path)) as file:
        many = file.size() >= MANY_BYTES
        which = None if columns is None else [RESULT.get_field_index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(use_threads=many, included_fields=which)
        return pa.ipc.open_file(file, options=options).read_all()


def set_path(sets: Path, name: str) -> Path:
    return sets / f"{name}.bin"


def cached_set(path: Path) -> Ints:
    now = stamp(path)
    size, _, _ = now
    return (_mapped_set if size >= MAPPED else _small_set)(path, now)


def forget_sets() -> None:
    for kept in (_small_set, _mapped_set):
        kept.cache_clear()


def _set(path: Path, _stamp: Stamp) -> Ints:
    _, arrays = read_arrays(path)
    return np.asarray(arrays["members"])


_small_set, _mapped_set = lru_cache(4096)(_set), lru_cache(128)(_set)


def write_aside(folder: Path, name: str, rows: Sequence[tuple[int, int, str | None, str]]) -> dict[str, str]:
    """Writes entries that could not be evaluated: stream, number, id and reason."""
    return _write_entries(folder / f"aside-{name}{SUFFIX}", rows, ASIDE)


def write_shed(folder: Path, name: str, rows: Sequence[tuple[int, int, int]]) -> dict[str, str]:
    """Writes entries that were left out under overload, completely or in part: stream, number and level."""
    return _write_entries(folder / f"shed-{name}{SUFFIX}", rows, SHED)


def _write_entries(path: Path, rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> dict[str, str]:
    if not rows:
        return {}
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return _write(path, pa.Table.from_arrays(columns, schema=schema))
