"""Compiled kernels for twigs: evaluate each pattern from its rarest node up, and then down to its output.

In: a program (twigs.py) and the rows of a batch as arrays. Out: pairs (query, row of its output node). Sets of rows are
joined step by step, so an output node is found once, regardless of the number of paths to it. The rarest node is
determined for each batch, by the number of rows that end at it or have its constant. If there are no such rows, the
query has no result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.jit import inlined, kernel, lean_kernel

EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST = range(6)
PLACE, PARENT, CHILD, SIBLING, DEEP, FIRST_TEST, END_TEST = range(7)
OPERATOR, TEXT = range(2)
TOP, END, OUTPUT = range(3)
STATE, ABOVE, AFTER, CODE = range(4)
TRIE_NODE, FIRST_STATE, END_STATE, COUNT = range(4)
FIRST_NODE, END_NODE, FIRST_ROW, END_ROW = range(4)
ROOM = 1 << 16
TRIAL = 8
"""Testing whether a row ends at a place costs as much as scanning this many rows."""


class Program(NamedTuple):
    """`nodes` are the concatenated nodes of all queries: the place, the numbers of the parent, first child and next
    sibling (-1 for none), whether the step is deep, and the range of its tests. `tests` has the operator and the code
    of the constant, -1 if the constant is in `numbers`. `queries` has the topmost node to check, the end of its nodes,
    and the output node."""

    nodes: Ints
    tests: Ints
    numbers: NDArray[np.float64]
    queries: Ints


class TwigInput(NamedTuple):
    """`rows` of the batch have the state, the row above, the row after the subtree, and the code of the text. `places`
    of the program have the trie node, the range of its states in `place_states`, and the number of their rows. `states`
    have the ranges of their `trie_nodes` (sorted) and of their `state_rows` (sorted). The rows with code c start at
    `text_starts[c]` in `text_rows`."""

    rows: Ints
    numbers: NDArray[np.float64]
    places: Ints
    place_states: Ints
    states: Ints
    trie_nodes: Ints
    state_rows: Ints
    text_starts: Ints
    text_rows: Ints


class Work(NamedTuple):
    """Buffers for one query: the last mark of each row, two sets of rows, the path to the output (with room for the
    steps up and down), and the nodes being tried."""

    seen: Ints
    sets: Ints
    way: Ints
    stack: Ints


@inlined
def first_at_least(values: Ints, lo: int, hi: int, wanted: int) -> int:
    """The first index in a sorted range of an array whose value is not less than `wanted`."""
    while lo < hi:
        middle = (lo + hi) >> 1
        if values[middle] < wanted:
            lo = middle + 1
        else:
            hi = middle
    return lo


@inlined
def ends_at(found: TwigInput, row: int, place: int) -> bool:
    """Whether a row ends at the trie node of a place."""
    state = found.rows[row, STATE]
    node, hi = found.places[place, TRIE_NODE], found.states[state, END_NODE]
    at = first_at_least(found.trie_nodes, found.states[state, FIRST_NODE], hi, node)
    return at < hi and found.trie_nodes[at] == node


@inlined
def tests_hold(program: Program, found: TwigInput, row: int, node: int) -> bool:
    """Whether the conditions with constants of a node hold."""
    holds = True
    for i in range(program.nodes[node, FIRST_TEST], program.nodes[node, END_TEST]):
        op, text = program.tests[i, OPERATOR], program.tests[i, TEXT]
        value, constant = found.numbers[row], program.numbers[i]
        if text >= 0:
            holds = holds and (found.rows[row, CODE] == text) == (op == EQUAL)
        elif op == EQUAL:
            holds = holds and value == constant
        elif op == UNEQUAL:
            holds = holds and (value < constant or value > constant)
        elif op == LESS:
            holds = holds and value < constant
        elif op == AT_MOST:
            holds = holds and value <= constant
        elif op == MORE:
            holds = holds and value > constant
        else:
            holds = holds and value >= constant
    return holds


@lean_kernel
def next_below(program: Program, found: TwigInput, node: int, above: int, row: int) -> int:
    """The next row after `row` that ends at a node and is a child (or descendant) of row `above`; -1 if none."""
    place, deep, end = program.nodes[node, PLACE], program.nodes[node, DEEP], found.rows[above, AFTER]
    row = row + 1 if row == above or deep else found.rows[row, AFTER]
    first, last = found.places[place, FIRST_STATE], found.places[place, END_STATE]
    best = end
    if not deep or end - row <= TRIAL * (last - first):
        while row < end:
            if ends_at(found, row, place):
                best = row
                break
            row = row + 1 if deep else found.rows[row, AFTER]
    else:
        for i in range(first, last):
            state = found.place_states[i]
            hi = found.states[state, END_ROW]
            at = first_at_least(found.state_rows, found.states[state, FIRST_ROW], hi, row)
            if at < hi:
                best = min(best, found.state_rows[at])
    return best if best < end else -1


@lean_kernel
def branches_fit(program: Program, found: TwigInput, row: int, node: int, known: int, stack: Ints) -> bool:
    """Whether everything below a node matches below a row, except a child that is known to match."""
    branch = program.nodes[node, CHILD]
    while branch >= 0:
        depth = -1 if branch == known else 0
        stack[0, 0], stack[0, 1], stack[0, 2] = branch, row, row
        while depth >= 0:
            tried = stack[depth, 0]
            at = next_below(program, found, tried, stack[depth, 1], stack[depth, 2])
            if at < 0:
                if depth == 0:
                    return False
                depth -= 1  # the node above must try its next row
                continue
            stack[depth, 2] = at
            if not tests_hold(program, found, at, tried):
                continue
            below = program.nodes[tried, CHILD]
            if below >= 0:
                depth += 1
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = below, at, at
                continue
            while depth > 0 and program.nodes[stack[depth, 0], SIBLING] < 0:
                depth -= 1
            if depth == 0:
                break
            stack[depth, 0], stack[depth, 2] = program.nodes[stack[depth, 0], SIBLING], stack[depth, 1]
        branch = program.nodes[branch, SIBLING]
    return True


@inlined
def fits(program: Program, found: TwigInput, row: int, node: int, known: int, stack: Ints) -> bool:
    """Whether a row satisfies a node and everything below it; `stack` has room for the nodes of a query."""
    return tests_hold(program, found, row, node) and (
        program.nodes[node, CHILD] < 0 or branches_fit(program, found, row, node, known, stack)
    )


@lean_kernel
def rarest(program: Program, found: TwigInput, query: int) -> tuple[int, int, int]:
    """The node with the fewest rows to check, the code of its text (-1: all rows that end there), and their number."""
    best, code, least = -1, -1, 1 << 60
    for node in range(program.queries[query, TOP], program.queries[query, END]):
        count = found.places[program.nodes[node, PLACE], COUNT]
        if count < least:
            best, code, least = node, -1, count
        for i in range(program.nodes[node, FIRST_TEST], program.nodes[node, END_TEST]):
            text = program.tests[i, TEXT]
            if text >= 0 and program.tests[i, OPERATOR] == EQUAL:
                count = TRIAL * (found.text_starts[text + 1] - found.text_starts[text])
                if count < least:
                    best, code, least = node, text, count
    return best, code, least


@lean_kernel
def first_rows(program: Program, found: TwigInput, node: int, code: int, work: Work) -> int:
    """Stores the rows that match a node, among those with a text or those that end there. Returns their number."""
    place, size = program.nodes[node, PLACE], 0
    first, end = found.places[place, FIRST_STATE], found.places[place, END_STATE]
    if code >= 0:
        first, end = 0, 1
    for i in range(first, end):
        rows, at, last = found.text_rows, found.text_starts[max(code, 0)], found.text_starts[max(code, 0) + 1]
        if code < 0:
            state = found.place_states[i]
            rows, at, last = found.state_rows, found.states[state, FIRST_ROW], found.states[state, END_ROW]
        for k in range(at, last):
            row = rows[k]
            if (code < 0 or ends_at(found, row, place)) and fits(program, found, row, node, -1, work.stack):
                work.sets[size] = row
                size += 1
    return size


@lean_kernel
def rows_above(
    program: Program, found: TwigInput, node: int, lo: int, hi: int, start: int, work: Work, mark: int
) -> int:
    """Stores, from `start` on, the rows that match the parent of a node and have one of the rows lo..hi below them."""
    parent, deep, size = program.nodes[node, PARENT], program.nodes[node, DEEP], start
    place = program.nodes[parent, PLACE]
    for i in range(lo, hi):
        above = found.rows[work.sets[i], ABOVE]
        while above >= 0 and work.seen[above] != mark:
            work.seen[above] = mark
            if (not deep or ends_at(found, above, place)) and fits(program, found, above, parent, node, work.stack):
                work.sets[size] = above
                size += 1
            if not deep:
                break
            above = found.rows[above, ABOVE]
    return size


@lean_kernel
def rows_below(
    program: Program, found: TwigInput, node: int, lo: int, hi: int, start: int, work: Work, mark: int
) -> int:
    """Stores, from `start` on, the rows that match a node and are below one of the rows lo..hi."""
    size = start
    for i in range(lo, hi):
        above = row = work.sets[i]
        while row >= 0:
            row = next_below(program, found, node, above, row)
            if row >= 0 and work.seen[row] != mark:
                work.seen[row] = mark
                if fits(program, found, row, node, -1, work.stack):
                    work.sets[size] = row
                    size += 1
    return size


@lean_kernel
def run_some(program: Program, found: TwigInput, query: int, work: Work, pairs: Ints) -> tuple[int, int]:
    """Runs queries, starting at `query`, while there is room for the rows of one more. Returns the next query and the
    number of pairs."""
    rows = len(found.rows)
    count, mark = 0, query * len(work.way)
    while query < len(program.queries) and count + rows <= len(pairs):
        node, code, least = rarest(program, found, query)
        top, lo, hi = program.queries[query, TOP], 0, 0
        if least > 0:
            hi = first_rows(program, found, node, code, work)
        while node != top and hi > lo:
            start = rows - lo  # the other half: the sets swap places
            lo, hi = start, rows_above(program, found, node, lo, hi, start, work, mark)
            node, mark = program.nodes[node, PARENT], mark + 1
        steps, node = 0, program.queries[query, OUTPUT]
        while hi > lo and node != top:
            work.way[steps] = node
            steps, node = steps + 1, program.nodes[node, PARENT]
        while steps > 0 and hi > lo:
            start, steps = rows - lo, steps - 1
            lo, hi = start, rows_below(program, found, work.way[steps], lo, hi, start, work, mark)
            mark += 1
        for i in range(lo, hi):
            pairs[count, 0], pairs[count, 1] = query, work.sets[i]
            count += 1
        query += 1
        mark = query * len(work.way)
    return query, count


def run_twigs(program: Program, found: TwigInput) -> Ints:
    """All pairs (query, row of its output)."""
    rows, most = len(found.rows), int((program.queries[:, END] - program.queries[:, TOP]).max())
    seen, sets = np.full(rows, -1, np.int64), np.empty(2 * rows, np.int64)
    work = Work(seen, sets, np.empty(2 * most, np.int64), np.empty((most, 3), np.int64))
    pairs, query, parts = np.empty((max(ROOM, rows), 2), np.int64), 0, []
    while query < len(program.queries):
        query, count = run_some(program, found, query, work, pairs)
        parts.append(pairs[:count].copy())
    return np.concatenate(parts)


@kernel
def group_pairs(pairs: Ints, group_of: Ints, groups: int) -> tuple[Ints, Ints]:
    """The offset of the queries of each group of rows, and the queries. Pairs are ordered by query."""
    starts = np.zeros(groups + 1, np.int64)
    last = np.full(groups, -1, np.int64)
    kept = np.empty(len(pairs), np.bool_)
    for i in range(len(pairs)):
        group = group_of[pairs[i, 1]]
        kept[i] = last[group] != pairs[i, 0]
        last[group] = pairs[i, 0]
        starts[group + 1] += kept[i]
    starts = np.cumsum(starts)
    at = starts[:-1].copy()
    queries = np.empty(starts[-1], np.int64)
    for i in range(len(pairs)):
        if kept[i]:
            group = group_of[pairs[i, 1]]
            queries[at[group]] = pairs[i, 0]
            at[group] += 1
    return starts, queries
