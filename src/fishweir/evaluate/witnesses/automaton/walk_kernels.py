"""The walk, compiled: the automaton's states over the elements of a batch, in preorder.

In: the elements, and what is known of the automaton: a table of transitions and the flags of the states. Out: rows.
Where a transition is not known yet, the kernel stops and says which: the automaton builds it, and the walk goes on from
there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fishweir.algebra.documents import ATTRIBUTE, MOST_ATTRIBUTES
from fishweir.evaluate.jit import inlined, lean_kernel

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
    """Adds a transition; the table has room."""
    key = _key(state, kind, name)
    slot = _slot(key, len(keys))
    while keys[slot] >= 0:
        slot = (slot + 1) & (len(keys) - 1)
    keys[slot], targets[slot] = key, target


@lean_kernel
def put_all(keys: Any, targets: Any, old_keys: Any, old_targets: Any) -> None:
    """Fills an empty table with what is in a smaller one."""
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


@inlined
def _place_of(attributes: Any, locals_: Any, first: int, last: int, at: int) -> int:
    """How many attributes of the same local name come before: that in no namespace, then the others in order."""
    own, place = locals_[attributes[at, 0]], 0
    if own < 0:
        for k in range(first, last):
            other = locals_[attributes[k, 0]]
            place += other == -own or (other == own and k < at)
    return min(place, MOST_ATTRIBUTES - 1)


@inlined
def _add_row(rows: Any, row: int, place: int, above: int, name: int, begin: int, end: int) -> int:
    rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3], rows[row, 4] = place, above, name, begin, end
    return row + 1


@lean_kernel
def walk_elements(
    elements: Any,
    attributes: Any,
    firsts: Any,
    locals_: Any,
    keys: Any,
    targets: Any,
    flags: Any,
    starts: Any,
    passed: Any,
    passed_starts: Any,
    states: Any,
    above: Any,
    rows: Any,
    row_firsts: Any,
    missing: Any,
    totals: Any,
    shift: int,
    zero: int,
) -> bool:
    """Goes on where `totals` say: document, element, rows, elements skipped, the row above the document element,
    documents started. False where a transition is missing.

    `starts`: for each document the state above its element; `passed` the rows of what stood above it before a split:
    place and whether the value is read. `states`, `above`: the state and the row of each element entered.
    A row: place, row above, name of an attribute or -1, where its value begins and ends; -1 if no path reads it.
    """
    document, element, row, skipped = totals[0], totals[1], totals[2], totals[3]
    while document < len(firsts) - 1:
        first, stop = firsts[document], firsts[document + 1]
        root_above = totals[4]
        if totals[5] == document:
            totals[5] = document + 1
            row_firsts[document] = row
            head = -1
            for k in range(passed_starts[document], passed_starts[document + 1]):
                wanted = passed[k, 1] != 0
                begin, end = (elements[element, 4], elements[element, 5]) if wanted else (-1, -1)
                row = _add_row(rows, row, passed[k, 0], head, -1, begin, end)
                head = row - 1
            root_above = head
        while element < stop:
            parent = elements[element, 1]
            from_, head = (states[parent], above[parent]) if parent >= 0 else (starts[document], root_above)
            state = find_step(keys, targets, from_, BY_ELEMENT, elements[element, 0])
            if state == NOWHERE:
                skipped += elements[element, 2] - element
                element = elements[element, 2]
                continue
            own, others = elements[element, 3], elements[element + 1, 3]
            reads = state >= 0 and flags[state] & READS_ATTRIBUTES != 0
            missing[0], missing[1], missing[2] = from_, BY_ELEMENT, elements[element, 0]
            known = state != NOT_KNOWN
            at = own
            while known and reads and at < others:
                missing[0], missing[1], missing[2] = state, BY_ATTRIBUTE, attributes[at, 0]
                known = find_step(keys, targets, state, BY_ATTRIBUTE, attributes[at, 0]) != NOT_KNOWN
                at += 1
            if not known:
                totals[0], totals[1], totals[2], totals[3], totals[4] = document, element, row, skipped, root_above
                return False
            position = zero + element - first
            if flags[state] & MATCHED:
                valued = flags[state] & VALUED != 0
                begin, end = (elements[element, 4], elements[element, 5]) if valued else (-1, -1)
                row = _add_row(rows, row, (state << shift) + position, head, -1, begin, end)
                head = row - 1
            round_, rounds = 0, 1 if reads else 0
            while round_ < rounds:  # first those that come first of their local name
                for k in range(own, others):
                    name, place = attributes[k, 0], _place_of(attributes, locals_, own, others, k)
                    if place > 0:
                        rounds = 2
                    target = find_step(keys, targets, state, BY_ATTRIBUTE, name)
                    if target >= 0 and (place > 0) == (round_ > 0):
                        valued = flags[target] & VALUED != 0
                        begin, end = (attributes[k, 1], attributes[k, 2]) if valued else (-1, -1)
                        at_place = (target << shift) + position + place * ATTRIBUTE
                        row = _add_row(rows, row, at_place, head, name, begin, end)
                round_ += 1
            states[element], above[element] = state, head
            if flags[state] & CLOSED:
                skipped += elements[element, 2] - element - 1
                element = elements[element, 2]
            else:
                element += 1
        document += 1
        element = stop
    totals[0], totals[1], totals[2], totals[3] = document, element, row, skipped
    row_firsts[document] = row
    return True


@lean_kernel
def gather(rows: Any, chosen: Any, texts: Any, values: Any, offsets: Any, into: Any) -> None:
    """Copies the values of some rows one behind the other."""
    for k in range(len(chosen)):
        row, at = chosen[k], offsets[k]
        for i in range(rows[row, 3], rows[row, 4]):
            into[at] = texts[i] if rows[row, 2] < 0 else values[i]
            at += 1
