"""Compiled kernels that map names to numbers, using a persistent table (names.py).

A name consists of its local part and the number of its namespace, regardless of the prefix. Declarations are rows of a
list: the declaration in force before it, the position of its prefix, and the namespace.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fishweir.evaluate.witnesses.automaton.scan_kernels import COLON
from fishweir.jit import inlined, lean_kernel

ELEMENT, ATTRIBUTE, NAMESPACE = 0, 1, 2
"""The kind of a row of the name table."""

NO_NAMESPACE, XML_NAMESPACE = 0, 1
"""Reserved numbers. The second is the namespace that the prefix `xml` always denotes."""

_OFFSET, _PRIME, _GOLDEN = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15)


@lean_kernel
def intern(
    data: Any,
    first: int,
    last: int,
    kind: int,
    space: int,
    slots: Any,
    hashes: Any,
    names: Any,
    arena: Any,
    used: Any,
) -> int:
    """The number of a name, assigned at its first occurrence; -1 if the table is full."""
    hashed = (_OFFSET ^ np.uint64(kind)) * _PRIME
    hashed = (hashed ^ np.uint64(space)) * _PRIME
    for i in range(first, last):
        hashed = (hashed ^ np.uint64(data[i])) * _PRIME
    mask = len(slots) - 1
    slot = int((hashed * _GOLDEN) >> np.uint64(32)) & mask
    while slots[slot] >= 0:
        number = slots[slot]
        if hashes[number] == hashed and names[number, 0] == kind and names[number, 1] == space:
            start = names[number, 2]
            same = names[number, 3] - start == last - first
            i = first
            while same and i < last:
                same = arena[start + i - first] == data[i]
                i += 1
            if same:
                return int(number)
        slot = (slot + 1) & mask
    number, start = used[0], used[1]
    if number >= len(hashes) or start + last - first > len(arena):
        return -1
    for i in range(first, last):
        arena[start + i - first] = data[i]
    names[number, 0], names[number, 1], names[number, 2], names[number, 3] = kind, space, start, start + last - first
    hashes[number] = hashed
    slots[slot] = number
    used[0], used[1] = number + 1, start + last - first
    return int(number)


@lean_kernel
def place_names(slots: Any, hashes: Any, count: int) -> None:
    """Fills an empty table with the names 1 to count."""
    mask = len(slots) - 1
    for number in range(1, count):
        slot = int((hashes[number] * _GOLDEN) >> np.uint64(32)) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number


@inlined
def is_declaration(data: Any, first: int, last: int) -> bool:
    """Whether a name is `xmlns` or `xmlns:...`."""
    return (
        last - first >= 5
        and data[first] == 120
        and data[first + 1] == 109
        and data[first + 2] == 108
        and data[first + 3] == 110
        and data[first + 4] == 115
        and (last - first == 5 or data[first + 5] == COLON)
    )


@inlined
def _space_of(data: Any, first: int, last: int, declared: Any, context: int) -> int:
    """The number of the namespace of a prefix, by the nearest declaration in force."""
    while context >= 0:
        start, end = declared[context, 1], declared[context, 2]
        same = end - start == last - first
        for i in range(end - start if same else 0):
            same &= data[start + i] == data[first + i]
        if same:
            return int(declared[context, 3])
        context = declared[context, 0]
    return XML_NAMESPACE if last > first else NO_NAMESPACE


@inlined
def name_at(
    data: Any,
    first: int,
    last: int,
    kind: int,
    declared: Any,
    context: int,
    slots: Any,
    hashes: Any,
    names: Any,
    arena: Any,
    used: Any,
) -> int:
    """The number of a name in the namespace of its prefix. Attributes without a prefix have no namespace."""
    colon = first
    while colon < last and data[colon] != COLON:
        colon += 1
    if colon < last:
        space = _space_of(data, first, colon, declared, context)
        return intern(data, colon + 1, last, kind, space, slots, hashes, names, arena, used)
    space = _space_of(data, first, first, declared, context) if kind == ELEMENT else NO_NAMESPACE
    return intern(data, first, last, kind, space, slots, hashes, names, arena, used)
