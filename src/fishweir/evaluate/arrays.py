"""Small array helpers, and many named arrays in one file that workers map into memory.

A string column is two arrays, offsets and bytes, so it maps as well as numbers do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.errors import HomeError

Ints = NDArray[np.int64]
Column: TypeAlias = "NDArray[np.float64] | pa.LargeStringArray"
"""The constants of one slot: numbers or strings."""

ALIGN = 64


def expand(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """All positions of the slices [lo, hi): the slice each comes from, and the position."""
    lengths = np.maximum(hi - lo, 0)
    source = np.repeat(np.arange(len(lo)), lengths)
    ends = np.cumsum(lengths)
    within = np.arange(len(source)) - np.repeat(ends - lengths, lengths)
    return source, lo[source] + within


def number_rows(*columns: Ints) -> Ints:
    """Numbers the distinct rows of some columns, in their order."""
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


def write_arrays(path: Path, header: object, arrays: Mapping[str, NDArray[np.generic] | pa.Array]) -> None:
    """Writes named arrays behind a JSON header, to a temporary name first."""
    plain = {name: part for key, value in arrays.items() for name, part in _parts(key, value)}
    places, offset = {}, 0
    for name, array in plain.items():
        places[name] = (array.dtype.str, len(array), offset)
        offset += -(-array.nbytes // ALIGN) * ALIGN
    head = json.dumps({"header": header, "arrays": places}).encode()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        file.write(b"\0" * (-file.tell() % ALIGN))
        for array in plain.values():
            file.write(array.tobytes())
            file.write(b"\0" * (-array.nbytes % ALIGN))
    temporary.replace(path)


def read_arrays(path: Path) -> tuple[object, dict[str, NDArray[np.generic] | pa.Array]]:
    """The header and the arrays, mapped into memory, not read."""
    try:
        data = np.memmap(path, dtype=np.uint8, mode="r")
        length = int.from_bytes(data[:8].tobytes(), "little")
        head = json.loads(data[8 : 8 + length].tobytes())
    except FileNotFoundError:
        raise HomeError(f"the file {path} is missing: has somebody removed it?") from None
    except ValueError as error:
        raise HomeError(f"the file {path} is damaged: {error}") from None
    start = -(-(8 + length) // ALIGN) * ALIGN
    plain = {}
    for name, (kind, count, offset) in head["arrays"].items():
        end = start + offset + np.dtype(kind).itemsize * count
        if end > len(data):
            raise HomeError(f"the file {path} is damaged: it ends after {len(data):,} bytes, before {end:,}")
        plain[name] = data[start + offset : end].view(kind)
    return head["header"], _joined(plain)


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
