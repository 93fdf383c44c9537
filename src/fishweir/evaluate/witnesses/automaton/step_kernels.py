"""Compiled kernels for the automaton's known transitions: one hash table of (state, kind, name)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fishweir.jit import inlined, lean_kernel

MATCHED, VALUED, CLOSED, READS_ATTRIBUTES = 1, 2, 4, 8
"""Flags of a state."""

BY_ELEMENT, BY_ATTRIBUTE = 0, 1
"""Kinds of transitions."""

NOWHERE, NOT_KNOWN = -1, -2
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@inlined
def _key(state: int, kind: int, name: int) -> int:
    return state << 32 | kind << 30 | name


@inlined
def _slot(key: int, size: int) -> int:
    return int((np.uint64(key) * _GOLDEN) >> np.uint64(32)) & (size - 1)


@lean_kernel
def put_step(keys: Any, targets: Any, state: int, kind: int, name: int, target: int) -> None:
    """Adds a transition. The table must have room."""
    key = _key(state, kind, name)
    slot = _slot(key, len(keys))
    while keys[slot] >= 0:
        slot = (slot + 1) & (len(keys) - 1)
    keys[slot], targets[slot] = key, target


@lean_kernel
def put_all(keys: Any, targets: Any, old_keys: Any, old_targets: Any) -> None:
    """Fills an empty table with the entries of a smaller one."""
    for at in range(len(old_keys)):
        if old_keys[at] >= 0:
            slot = _slot(old_keys[at], len(keys))
            while keys[slot] >= 0:
                slot = (slot + 1) & (len(keys) - 1)
            keys[slot], targets[slot] = old_keys[at], old_targets[at]


@lean_kernel
def find_step(keys: Any, targets: Any, state: int, kind: int, name: int) -> int:
    key = _key(state, kind, name)
    slot = _slot(key, len(keys))
    while keys[slot] >= 0:
        if keys[slot] == key:
            return int(targets[slot])
        slot = (slot + 1) & (len(keys) - 1)
    return NOT_KNOWN
