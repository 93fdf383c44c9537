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

AT_ONCE = 100_000
"""The number of rows that are read before other threads can run again: some milliseconds."""
EXACT = 1 << 53
"""Floats represent all integers up to this one."""

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
    rows: int,
    first: int,
    upto: int,
    members: int,
    names: Words,
    kinds: Words,
    known: tuple[int, int, int],
    ints: Any,
    floats: Any,
    overflow: Words,
) -> bool:
    """Fills some rows of `ints` and `floats`, which share their memory; returns whether all of them are as declared.
    `rows` is the address of a list, `names` and `kinds` are those of the columns and their types, `known` those of the
    types dict, int and float."""
    for i in range(first, upto):
        row = _item(rows, i)
        if row == 0 or word_from(np.uint64(row), TYPE) != known[0] or _size(row) != members:
            _clear()
            return False
        for j in range(len(names)):
            value = _member(row, names[j])
            kind = 0 if value == 0 else word_from(np.uint64(value), TYPE)
            if kind == known[2] and kinds[j] == kind:
                floats[j, i] = _float(value)
            elif kind == known[1]:
                number = _int(value, overflow.ctypes.data)
                if overflow[0] != 0:
                    return False
                if kinds[j] == kind:
                    ints[j, i] = number
                elif -EXACT <= number <= EXACT:
                    floats[j, i] = number
                else:
                    return False
            else:
                _clear()
                return False
    return True


def read_numbers(items: Sequence[Any], columns: Sequence[tuple[str, type]], members: int) -> list[NDArray[Any]] | None:
    """The values of some columns, each an array of int64 or float64. None unless all items are dicts with this number
    of members, and the values are ints of 64 bits, or floats or ints that a float represents, as declared."""
    if TYPE < 0:
        return None
    rows = list(items)  # nobody else can change it
    names = np.array([id(name) for name, _ in columns], np.int64)
    kinds = np.array([id(kind) for _, kind in columns], np.int64)
    known, overflow = (id(dict), id(int), id(float)), np.zeros(1, np.int64)
    ints = np.empty((len(columns), len(rows)), np.int64)
    floats = ints.view(np.float64)
    for first in range(0, len(rows), AT_ONCE):
        upto = min(first + AT_ONCE, len(rows))
        if not _read(id(rows), first, upto, members, names, kinds, known, ints, floats, overflow):
            return None
    return [floats[at] if kind is float else ints[at] for at, (_, kind) in enumerate(columns)]
