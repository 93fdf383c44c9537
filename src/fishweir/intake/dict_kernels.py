"""Reads the numbers of published dicts in compiled code, with the functions of CPython's C interface.

The interpreter needs four passes over a list of dicts to convert two columns: it checks the types, counts the members,
and takes the values of each column. Here it is one pass, which takes a third of the time, most of it for memory access.
The kernel holds the interpreter lock, like any function of an extension module.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from fishweir.jit import interpreter_kernel, word_from

Words = NDArray[np.int64]

_object = types.intp
_item: Any = types.ExternalFunction("PyList_GetItem", _object(_object, types.intp))
_size: Any = types.ExternalFunction("PyDict_Size", types.intp(_object))
_member: Any = types.ExternalFunction("PyDict_GetItemWithError", _object(_object, _object))
_int: Any = types.ExternalFunction("PyLong_AsLongLongAndOverflow", types.int64(_object, types.intp))
_float: Any = types.ExternalFunction("PyFloat_AsDouble", types.float64(_object))
_clear: Any = types.ExternalFunction("PyErr_Clear", types.void())


def _place_of_type() -> int:
    """The word of an object that is the address of its type; -1 if it is not there, or if another thread could change
    objects at the same time."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1
    probe = 1.5
    words = np.frombuffer(ctypes.string_at(id(probe), object.__sizeof__(probe)), np.int64).tolist()
    return words.index(id(float)) if id(float) in words else -1


TYPE = _place_of_type()


@interpreter_kernel
def _read(
    rows: int, members: int, names: Words, kinds: Words, known: tuple[int, int], ints: Any, floats: Any, overflow: Words
) -> int:
    """Fills `ints` and `floats`, which share their memory, and returns the number of rows read: all, unless a row is
    not as declared. `rows` is the address of a list, `names` and `kinds` are those of the columns and their types,
    `known` those of the types of dicts and floats."""
    width, count = ints.shape
    for i in range(count):
        row = _item(rows, i)
        if row == 0 or word_from(np.uint64(row), TYPE) != known[0] or _size(row) != members:
            _clear()
            return i
        for j in range(width):
            value = _member(row, names[j])
            if value == 0 or word_from(np.uint64(value), TYPE) != kinds[j]:
                _clear()
                return i
            if kinds[j] == known[1]:
                floats[j, i] = _float(value)
            else:
                ints[j, i] = _int(value, overflow.ctypes.data)
                if overflow[0] != 0:
                    return i
    return count


def read_numbers(items: Sequence[Any], columns: Sequence[tuple[str, type]], members: int) -> list[NDArray[Any]] | None:
    """The values of some columns, each an array of int64 or float64. None unless all items are dicts with this number
    of members, and the values are floats, or ints of 64 bits, as declared."""
    if TYPE < 0:
        return None
    rows = list(items)  # nobody else can change it
    names = np.array([id(name) for name, _ in columns], np.int64)
    kinds = np.array([id(kind) for _, kind in columns], np.int64)
    known, overflow = (id(dict), id(float)), np.zeros(1, np.int64)
    ints = np.empty((len(columns), len(rows)), np.int64)
    floats = ints.view(np.float64)
    if _read(id(rows), members, names, kinds, known, ints, floats, overflow) < len(rows):
        return None
    return [floats[at] if kind is float else ints[at] for at, (_, kind) in enumerate(columns)]
