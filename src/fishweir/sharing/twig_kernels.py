"""Twigs, the loops: each pattern evaluated on the rows of a batch, from its anchor up and then down to its output.

In: a program (twigs.py) and the rows of a batch as arrays. Out: pairs (query, row of its output node). Sets of rows
are joined one step at a time, so an output node is found once, however many ways lead to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fishweir.sharing.arrays import Ints
from fishweir.sharing.jit import kernel

EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST = range(6)


class Program(NamedTuple):
    """Nodes of all queries, one after the other, with numbers that count through: `parent`, `child` (the first),
    `sibling` (the next), -1 for none. The conditions of a node lie between its two `tested`. `text` is the code of a
    constant that is a text, -1 for a number. Of a query: the node it is looked up by, the condition that is looked
    up (-1: all rows of that node), the node of its output, and the topmost node that has to be looked at."""

    place: Ints
    parent: Ints
    child: Ints
    sibling: Ints
    deep: NDArray[np.bool_]
    tested: Ints
    op: Ints
    text: Ints
    number: NDArray[np.float64]
    anchor: Ints
    looked_up: Ints
    output: Ints
    top: Ints


class Found(NamedTuple):
    """The rows of a batch. `states` of place p (a trie node of the program) lie between its two `state_starts`; of a
    state, its trie nodes between two `node_starts` and its rows between two `row_starts`; rows with a text by code."""

    state: Ints
    parents: Ints
    ends: Ints
    trie_nodes: Ints
    state_starts: Ints
    states: Ints
    node_starts: Ints
    nodes: Ints
    row_starts: Ints
    rows: Ints
    codes: Ints
    numbers: NDArray[np.float64]
    text_starts: Ints
    text_rows: Ints


@kernel
def first_at_least(values: Ints, lo: int, hi: int, wanted: int) -> int:
    """The first place in a sorted part of an array that is not less."""
    while lo < hi:
        middle = (lo + hi) >> 1
        if values[middle] < wanted:
            lo = middle + 1
        else:
            hi = middle
    return lo


@kernel
def ends_at(found: Found, row: int, place: int) -> bool:
    """Whether a row ends the trie node at a place."""
    state = found.state[row]
    node, hi = found.trie_nodes[place], found.node_starts[state + 1]
    at = first_at_least(found.nodes, found.node_starts[state], hi, node)
    return at < hi and found.nodes[at] == node


@kernel
def tests_hold(program: Program, found: Found, row: int, node: int) -> bool:
    """The conditions with constants of a node."""
    for i in range(program.tested[node], program.tested[node + 1]):
        op = program.op[i]
        if program.text[i] >= 0:
            if (found.codes[row] == program.text[i]) != (op == EQUAL):
                return False
            continue
        value, constant = found.numbers[row], program.number[i]
        if np.isnan(value) or np.isnan(constant):
            return False
        if (
            (op == EQUAL and value != constant)
            or (op == UNEQUAL and value == constant)
            or (op == LESS and value >= constant)
            or (op == AT_MOST and value > constant)
            or (op == MORE and value <= constant)
            or (op == AT_LEAST and value < constant)
        ):
            return False
    return True


@kernel
def has_below(program: Program, found: Found, above: int, node: int) -> bool:
    """Whether a node of the pattern, with all below it, lies somewhere under a row."""
    place, end = program.place[node], found.ends[above]
    for i in range(found.state_starts[place], found.state_starts[place + 1]):
        last = found.row_starts[found.states[i] + 1]
        at = first_at_least(found.rows, found.row_starts[found.states[i]], last, above + 1)
        while at < last and found.rows[at] < end:
            row = found.rows[at]
            at += 1
            if not program.deep[node] and found.parents[row] != above:
                continue
            if not tests_hold(program, found, row, node):
                continue
            child, whole = program.child[node], True
            while child >= 0 and whole:
                whole = has_below(program, found, row, child)
                child = program.sibling[child]
            if whole:
                return True
    return False


@kernel
def fits(program: Program, found: Found, row: int, node: int, known: int) -> bool:
    """Whether a row satisfies a node and all below it, a child that is known to hold left aside."""
    if not tests_hold(program, found, row, node):
        return False
    child = program.child[node]
    while child >= 0:
        if child != known and not has_below(program, found, row, child):
            return False
        child = program.sibling[child]
    return True


@kernel
def with_room(values: Ints, size: int) -> Ints:
    """The array, or a longer copy of it, that has room for one more."""
    if size < len(values):
        return values
    longer = np.empty(2 * size + 64, np.int64)
    longer[:size] = values
    return longer


@kernel
def anchor_rows(program: Program, found: Found, query: int, sets: Ints) -> tuple[Ints, int]:
    """The rows that a query begins with."""
    node, size = program.anchor[query], 0
    place = program.place[node]
    if program.looked_up[query] >= 0:
        code = program.text[program.looked_up[query]]
        for i in range(found.text_starts[code], found.text_starts[code + 1]):
            row = found.text_rows[i]
            if ends_at(found, row, place) and fits(program, found, row, node, -1):
                sets = with_room(sets, size)
                sets[size] = row
                size += 1
        return sets, size
    for i in range(found.state_starts[place], found.state_starts[place + 1]):
        for at in range(found.row_starts[found.states[i]], found.row_starts[found.states[i] + 1]):
            if fits(program, found, found.rows[at], node, -1):
                sets = with_room(sets, size)
                sets[size] = found.rows[at]
                size += 1
    return sets, size


@kernel
def rows_above(
    program: Program, found: Found, node: int, lo: int, sets: Ints, size: int, seen: Ints, mark: int
) -> tuple[Ints, int]:
    """Appends the rows that fit the parent of a node and have one of the rows from `lo` on below them."""
    parent, hi = program.parent[node], size
    for i in range(lo, hi):
        above = found.parents[sets[i]]
        while above >= 0:
            if seen[above] != mark and (not program.deep[node] or ends_at(found, above, program.place[parent])):
                seen[above] = mark
                if fits(program, found, above, parent, node):
                    sets = with_room(sets, size)
                    sets[size] = above
                    size += 1
            if not program.deep[node]:
                break
            above = found.parents[above]
    return sets, size


@kernel
def rows_below(
    program: Program, found: Found, node: int, lo: int, sets: Ints, size: int, seen: Ints, mark: int
) -> tuple[Ints, int]:
    """Appends the rows that fit a node and are below one of the rows from `lo` on."""
    place, hi = program.place[node], size
    for k in range(lo, hi):
        above = sets[k]
        for i in range(found.state_starts[place], found.state_starts[place + 1]):
            last = found.row_starts[found.states[i] + 1]
            at = first_at_least(found.rows, found.row_starts[found.states[i]], last, above + 1)
            while at < last and found.rows[at] < found.ends[above]:
                row = found.rows[at]
                at += 1
                if seen[row] == mark or not (program.deep[node] or found.parents[row] == above):
                    continue
                seen[row] = mark
                if fits(program, found, row, node, -1):
                    sets = with_room(sets, size)
                    sets[size] = row
                    size += 1
    return sets, size


@kernel
def run_twigs(program: Program, found: Found) -> tuple[Ints, Ints]:
    """All pairs (query, row of its output)."""
    queries, outputs, count = np.empty(1024, np.int64), np.empty(1024, np.int64), 0
    seen, mark = np.full(len(found.state), -1, np.int64), 0
    sets = np.empty(1024, np.int64)
    way = np.empty(256, np.int64)
    for query in range(len(program.anchor)):
        output, top = program.output[query], program.top[query]
        node, lo = program.anchor[query], 0
        sets, size = anchor_rows(program, found, query, sets)
        while node != top and size > lo:
            start = size
            sets, size = rows_above(program, found, node, lo, sets, size, seen, mark)
            mark += 1
            lo, node = start, program.parent[node]
        if size == lo:
            continue
        steps, node = 0, output
        while node != top:
            way[steps] = node
            steps += 1
            node = program.parent[node]
        while steps > 0 and size > lo:
            steps -= 1
            start = size
            sets, size = rows_below(program, found, way[steps], lo, sets, size, seen, mark)
            mark += 1
            lo = start
        for i in range(lo, size):
            queries, outputs = with_room(queries, count), with_room(outputs, count)
            queries[count], outputs[count] = query, sets[i]
            count += 1
    return queries[:count], outputs[:count]
