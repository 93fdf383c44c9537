"""Small array helpers, and many named arrays in one file that workers map into memory.

A string column is two arrays, offsets and bytes, so it maps as well as numbers do.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from fishweir.algebra.codec import to_text
from fishweir.sealed import reading, verify, writing

Ints = NDArray[np.int64]
Column: TypeAlias = "NDArray[np.float64] | pa.LargeStringArray"
"""The constants of one slot: numbers or strings."""

MAPPED = 1 << 16
"""Bytes from which on a file is mapped. Each mapped file takes a file descriptor for as long as it is kept, and there
may be thousands of small ones: these are read."""

ALIGN = 64
TOGETHER = 1 << 20
"""Bytes that are written at once."""
PREFIX = 24
"""Bytes before the header: its length, that of the file, and the checksum of what follows."""


def expand(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """All positions of the slices [lo, hi): the slice each comes from, and the position."""
    lengths = np.maximum(hi - lo, 0)
    source = np.repeat(np.arange(len(lo)), lengths)
    ends = np.cumsum(lengths)
    within = np.arange(len(source)) - np.repeat(ends - lengths, lengths)
    return source, lo[source] + within


def number_rows(*columns: Ints) -> Ints:
    """Numbers the distinct rows of some columns, in their order."""
    if (columns[0][1:] > columns[0][:-1]).all():
        return np.arange(len(columns[0]))
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, numbers = np.unique(numbers * (column.max(initial=0) + 1) + column, return_inverse=True)
    return numbers


def to_column(values: Sequence[object], kind: str) -> Column:
    if kind == "number":
        return np.asarray(values, dtype=np.float64)
    return pa.array(values, type=pa.large_string())


def take(column: Column, positions: Ints) -> Column:
    if isinstance(column, np.ndarray):
        return column[positions]
    return column.take(pa.array(positions))


def write_arrays(path: Path, header: object, arrays: Mapping[str, NDArray[np.generic] | pa.Array]) -> str:
    """Writes named arrays behind a JSON header, which may have nodes in it, to a temporary name first; their seal,
    which the file has too."""
    plain = {name: part for key, value in arrays.items() for name, part in _parts(key, value)}
    places, offset = {}, 0
    for name, array in plain.items():
        places[name] = (array.dtype.str, len(array), offset)
        offset += -(-array.nbytes // ALIGN) * ALIGN
    head = to_text({"header": header, "arrays": places}).encode()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with writing(path, temporary):
        seal = _write(temporary, head, plain.values())
        temporary.replace(path)
    return seal


def _write(path: Path, head: bytes, arrays: Iterable[NDArray[np.generic]]) -> str:
    """The prefix, the head and the arrays, each filled up to the alignment; the seal."""
    sum, length, waiting, size = xxhash.xxh3_64(), PREFIX, list[bytes](), 0
    with path.open("wb") as file:
        file.seek(PREFIX)
        for part in chain((head,), (array.tobytes() for array in arrays), (None,)):
            if part is not None:
                filled = -(length + size + len(part)) % ALIGN
                waiting += (part, b"\0" * filled)
                size += len(part) + filled
            if part is None or size >= TOGETHER:
                together = b"".join(waiting)
                sum.update(together)
                length, waiting, size = length + file.write(together), [], 0
        file.seek(0)
        file.write(struct.pack("<QQQ", len(head), length, sum.intdigest()))
    return f"{length}:{sum.hexdigest()}"


def read_arrays(path: Path) -> tuple[object, dict[str, NDArray[np.generic] | pa.Array]]:
    """The header and the arrays, large ones mapped into memory; the checksum is verified the first time."""
    with reading(path):
        size, _, _ = verify(path, arrays_seal(path), PREFIX)
        data = np.memmap(path, np.uint8, mode="r") if size >= MAPPED else np.fromfile(path, np.uint8)
        length = int.from_bytes(data[:8].tobytes(), "little")
        head = json.loads(data[PREFIX : PREFIX + length].tobytes())
    start = -(-(PREFIX + length) // ALIGN) * ALIGN
    plain = {}
    for name, (kind, count, offset) in head["arrays"].items():
        plain[name] = data[start + offset : start + offset + np.dtype(kind).itemsize * count].view(kind)
    return head["header"], _joined(plain)


def arrays_seal(path: Path) -> str:
    """The seal that a file of arrays carries."""
    with reading(path), open(path, "rb", buffering=0) as file:
        _, length, sum = struct.unpack("<QQQ", file.read(PREFIX))
        return f"{length}:{sum:016x}"


def _parts(name: str, array: NDArray[np.generic] | pa.Array) -> list[tuple[str, NDArray[np.generic]]]:
    if isinstance(array, np.ndarray):
        return [(name, array)]
    array = pa.concat_arrays([array])
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, 8 * array.offset)
    data = array.buffers()[2]
    texts = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data else np.empty(0, np.uint8)
    return [(f"{name}.offsets", offsets - offsets[0]), (f"{name}.texts", texts)]


def _joined(plain: dict[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic] | pa.Array]:
    arrays: dict[str, NDArray[np.generic] | pa.Array] = {}
    for name, array in plain.items():
        if name.endswith(".offsets"):
            texts = plain[name.removesuffix("offsets") + "texts"]
            buffers = [None, pa.py_buffer(np.asarray(array)), pa.py_buffer(np.asarray(texts))]
            arrays[name.removesuffix(".offsets")] = pa.Array.from_buffers(pa.large_string(), len(array) - 1, buffers)
        elif not name.endswith(".texts"):
            arrays[name] = array
    return arrays
