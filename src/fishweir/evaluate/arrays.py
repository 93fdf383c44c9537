"""Array helpers, and a file format that stores many named arrays for workers to map into memory.

A string column is stored as two arrays, offsets and bytes, so that it can be mapped like a numeric one.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from fishweir.algebra.codec import to_text
from fishweir.sealed import check_size, damaged, reading, write_pieces, writing

Ints = NDArray[np.int64]
Column: TypeAlias = "NDArray[np.float64] | pa.LargeStringArray"
"""The constants of one slot: numbers or strings."""

MAPPED = 1 << 16
"""Size in bytes from which a file is mapped. Each mapped file occupies a file descriptor while it is in use, and there
may be thousands of small files, so smaller files are read instead."""

ALIGN = 64
PADDING = bytes(ALIGN)
PREFIX = 24
"""Bytes before the header: the header's length, the file's length, and the checksum of the rest."""


def expand(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """All positions of the slices [lo, hi). Returns for each position its slice, and the position itself."""
    lengths = np.maximum(hi - lo, 0)
    source = np.repeat(np.arange(len(lo)), lengths)
    ends = np.cumsum(lengths)
    within = np.arange(len(source)) - np.repeat(ends - lengths, lengths)
    return source, lo[source] + within


def by_key(keys: Ints, values: NDArray[Any]) -> dict[int, NDArray[Any]]:
    """The values of each key, in their order. Views, if all values of a key are together."""
    if not len(keys):
        return {}
    changes = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    firsts = keys[np.append(0, changes)].tolist()
    found = dict(zip(firsts, np.split(values, changes), strict=True))
    return found if len(found) == len(firsts) else {key: values[keys == key] for key in found}


def distinct(values: Ints) -> tuple[Ints, Ints]:
    """The distinct values in ascending order, and the position of each value among them. As `np.unique`, but linear for
    values that are ascending or close to each other, as numbers of documents and queries mostly are."""
    if not len(values):
        return values, values
    if (values[1:] >= values[:-1]).all():
        first = np.append(True, values[1:] != values[:-1])
        return values[first], np.cumsum(first) - 1
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values):
        return np.unique(values, return_inverse=True)
    there = np.zeros(high - low + 1, np.bool_)
    there[values - low] = True
    return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[values - low]


def firsts_of(of: Ints, size: int) -> Ints:
    """The first position of each number below `size`; undefined for numbers that do not occur."""
    firsts = np.empty(size, np.int64)
    firsts[of[::-1]] = np.arange(len(of))[::-1]
    return firsts


def codes_of(*columns: Ints) -> Ints:
    """A number for each row of some columns of equal length. The numbers have the same order as the rows."""
    codes, most = np.zeros(len(columns[0]), np.int64), 0
    for column in columns if len(codes) else ():
        low, high = int(column.min()), int(column.max())
        if low == high:
            continue
        if most >= np.iinfo(np.int64).max // (high - low + 1):
            codes = distinct(codes)[1]
            most = int(codes.max())
        codes = codes * (high - low + 1) + (column - low)
        most = (most + 1) * (high - low + 1) - 1
    return codes


def order_of(codes: Ints) -> Ints:
    """The permutation that sorts some numbers stably."""
    return np.arange(len(codes)) if (codes[1:] >= codes[:-1]).all() else np.argsort(codes, kind="stable")


def number_rows(*columns: Ints) -> Ints:
    """Numbers the distinct rows of some columns in sort order."""
    if (columns[0][1:] > columns[0][:-1]).all():
        return np.arange(len(columns[0]))
    order = np.lexsort(columns[::-1])
    differs = np.zeros(len(order), np.bool_)
    for column in columns:
        ordered = column[order]
        differs[1:] |= ordered[1:] != ordered[:-1]
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(differs)
    return numbers


def to_column(values: Sequence[object], kind: str) -> Column:
    if kind == "number":
        return np.asarray(values, dtype=np.float64)
    return pa.array(values, type=pa.large_string())


def take(column: Column, positions: Ints) -> Column:
    if isinstance(column, np.ndarray):
        return column[positions]
    return column.take(pa.array(positions))


def read_only(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Read-only views of the arrays, like those of a mapped file, so that kernels are compiled for one type only."""
    found = {name: np.asarray(array).view() for name, array in arrays.items()}
    for array in found.values():
        array.setflags(write=False)
    return found


def write_arrays(path: Path, header: object, arrays: Mapping[str, NDArray[np.generic] | pa.Array]) -> str:
    """Writes named arrays after a JSON header, which may contain nodes. The file is written under a temporary name and
    then renamed. Returns the seal, which is also stored in the file."""
    plain = {name: part for key, value in arrays.items() for name, part in _parts(key, value)}
    places, offset = {}, 0
    for name, array in plain.items():
        places[name] = (array.dtype.str, len(array), offset)
        offset += -(-array.nbytes // ALIGN) * ALIGN
    head = to_text({"header": header, "arrays": places}).encode()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with writing(path, temporary):
        seal = _write(temporary, head, plain.values())
        os.replace(temporary, path)
    return seal


def _write(path: Path, head: bytes, arrays: Iterable[NDArray[np.generic]]) -> str:
    """Writes the prefix, the header and the arrays, each padded to the alignment, without copying them together.
    Returns the seal."""
    sum, length, pieces = xxhash.xxh3_64(), PREFIX, list[bytes | memoryview]()
    for part in chain((memoryview(head),), (_bytes(array) for array in arrays if len(array))):
        length += len(part)
        pieces.append(part)
        if length % ALIGN:
            pieces.append(PADDING[length % ALIGN :])
            length += len(pieces[-1])
    for piece in pieces:
        sum.update(piece)
    with open(path, "wb", buffering=0) as file:
        write_pieces(file, [struct.pack("<QQQ", len(head), length, sum.intdigest()), *pieces])
    return _seal(length, sum.intdigest())


def _bytes(array: NDArray[np.generic]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def read_arrays(path: Path) -> tuple[object, dict[str, NDArray[np.generic] | pa.Array]]:
    """The header and the arrays. Large files are mapped into memory. The checksum is verified."""
    header, arrays, _ = sealed_arrays(path)
    return header, arrays


def sealed_arrays(path: Path) -> tuple[object, dict[str, NDArray[np.generic] | pa.Array], str]:
    """The header and the arrays of a file, verified as it is read, so that it is opened once; and its seal."""
    with reading(path):
        data = _content(path)
        length, size, sum = struct.unpack("<QQQ", data[:PREFIX].data)
        check_size(path, size, len(data))
        if xxhash.xxh3_64_intdigest(data[PREFIX:].data) != sum:
            raise damaged(path, "is damaged (checksum mismatch)")
        head = json.loads(data[PREFIX : PREFIX + length].tobytes())
    start = -(-(PREFIX + length) // ALIGN) * ALIGN
    plain = {}
    for name, (kind, count, offset) in head["arrays"].items():
        plain[name] = data[start + offset : start + offset + np.dtype(kind).itemsize * count].view(kind)
    return head["header"], _joined(plain), _seal(size, sum)


def _content(path: Path) -> NDArray[np.uint8]:
    """The bytes of a file as a plain array, which takes less time to open and to slice than `np.memmap`."""
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size < MAPPED:
            data = np.empty(size, np.uint8)
            return data[: file.readinto(data.data)]
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def _seal(length: int, sum: int) -> str:
    return f"{length}:{sum:016x}"


def arrays_seal(path: Path) -> str:
    """The seal stored in a file of arrays."""
    with reading(path), open(path, "rb", buffering=0) as file:
        _, length, sum = struct.unpack("<QQQ", file.read(PREFIX))
        return _seal(length, sum)


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
