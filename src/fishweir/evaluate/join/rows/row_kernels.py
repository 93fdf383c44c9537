"""Kernels of joins by rows: find the rows that join, and the queries that each pair satisfies.

In: rows of the new side, each with a range of the other side's rows in some order; bitmaps or lists of the queries of
both sides. Out: pairs whose edges hold within the longest window, and those of them that satisfy some query, with all
such queries. The queries of a pair are those in both rows' sets whose windows reach: the words are and-ed up to the end
of the prefix that reaches, or a list is looked up in a bitmap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.jit import kernel, population, trailing_zeros

Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]

OPERATORS = {"=": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}
LATER, EARLIER, TOGETHER = 0, 1, 2
"""The same as in edges."""
LOW_BITS, SHIFT, ONE, NOTHING = np.uint64(63), np.uint64(6), np.uint64(1), np.uint64(0)


@kernel
def join_stretches(
    new: int,
    chosen: Ints,
    starts: Ints,
    ends: Ints,
    order: Ints,
    own: Any,
    other: Any,
    one_run: bool,
    ops: Ints,
    edges: Ints,
    by_rows: Any,
    longest: Floats,
    newest: Any,
    found: Any,
) -> int:
    """Writes the pairs that join and returns their number. `new` is the side of `chosen`, `edges` are those left to
    check."""
    own_documents, own_times, own_places, own_streams, own_values, own_numbers = own
    documents, times, places, streams, values, numbers = other
    ones, others, far, kinds = found
    written = 0
    for i in range(len(chosen)):
        one = chosen[i]
        for at in range(starts[i], ends[i]):
            two = order[at]
            if one_run and own_documents[one] == documents[two]:
                continue
            passed = True
            for e in edges:
                if ops[e] < 2:
                    passed &= (own_values[one, e] == values[two, e]) == (ops[e] == 0)
                elif new == 0:
                    passed &= in_order(own_numbers[one, e], numbers[two, e], ops[e])
                else:
                    passed &= in_order(numbers[two, e], own_numbers[one, e], ops[e])
            if not passed:
                continue
            apart = abs(own_times[one] - times[two])
            kind = TOGETHER
            if own_times[one] > times[two]:
                kind = LATER if new == 1 else EARLIER
                if by_rows[1 - new]:
                    same = own_streams[one] == streams[two]
                    last = own_places[one] + 1 if same else newest[0][i, streams[two]]
                    apart = float(last - places[two])
            elif own_times[one] < times[two]:
                kind = EARLIER if new == 1 else LATER
                if by_rows[new]:
                    same = own_streams[one] == streams[two]
                    last = places[two] + 1 if same else newest[1][two, own_streams[one]]
                    apart = float(last - own_places[one])
            elif (by_rows[0] or by_rows[1]) and own_streams[one] == streams[two]:
                # Two rows of one stream: the one that arrived later looks for the other among the newest.
                if by_rows[1 - new] and own_places[one] > places[two]:
                    kind = LATER if new == 1 else EARLIER
                    apart = float(own_places[one] + 1 - places[two])
                elif by_rows[new] and own_places[one] < places[two]:
                    kind = EARLIER if new == 1 else LATER
                    apart = float(places[two] + 1 - own_places[one])
            ones[written], others[written], far[written], kinds[written] = one, two, apart, kind
            written += apart <= longest[kind]
    return written


@kernel
def take_lists(starts: Any, values: Any, rows: Any) -> tuple[Ints, Any]:
    """The lists of some rows: their starts, and their elements."""
    offsets = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        offsets[i + 1] = offsets[i] + starts[rows[i] + 1] - starts[rows[i]]
    taken, at = np.empty(offsets[-1], values.dtype), 0
    for row in rows:
        for entry in range(starts[row], starts[row + 1]):
            taken[at] = values[entry]
            at += 1
    return offsets, taken


@kernel
def are_all_among(values: Any, few: Any) -> bool:
    for value in values:
        found = False
        for one in few:
            found |= one == value
        if not found:
            return False
    return True


@kernel
def list_queries(pairs: Ints, queries: Ints, numbers: Any, result: Ints) -> tuple[bool, Ints, Ints, Ints]:
    """Lists the queries of each result, if the given (pair, query) are in the order of results and query numbers and
    none is repeated: a pair of each result, the query numbers, and the start of each result's queries. The first value
    tells whether this is so."""
    firsts, starts, members = np.empty_like(pairs), np.empty(len(pairs) + 1, np.int64), np.empty(len(pairs), np.int64)
    count = 0
    for i in range(len(pairs)):
        members[i] = numbers[queries[i]]
        if i == 0 or result[pairs[i]] > result[pairs[i - 1]]:
            firsts[count], starts[count] = pairs[i], i
            count += 1
        elif result[pairs[i]] < result[pairs[i - 1]] or members[i] <= members[i - 1]:
            return False, firsts, members, starts
    starts[count] = len(pairs)
    return True, firsts[:count], members, starts[: count + 1]


@kernel
def equal_keys(keys: Any, classes: Any, own: Any, wanted: Any, most: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Looks up ascending keys in ascending ones. Returns the positions of those that occur, the rows of each as a range
    of a list, and this list. The list is empty if it would be longer than `most`, or if rows of another class have one
    of these keys too. A search begins where the previous one ended, and doubles its steps."""
    there, starts = np.empty(len(wanted), np.int64), np.empty(len(wanted), np.int64)
    ends, count, total, alike, first = np.empty(len(wanted), np.int64), 0, 0, True, 0
    for i in range(len(wanted)):
        key, high, step = wanted[i], first, 1
        while high < len(keys) and keys[high] < key:
            first, high, step = high + 1, high + step, 2 * step
        high = min(high, len(keys))
        while first < high:
            middle = (first + high) >> 1
            if keys[middle] < key:
                first = middle + 1
            else:
                high = middle
        last = first
        while last < len(keys) and keys[last] == key and total <= most:
            alike &= classes[last] == own
            last += 1
            total += 1
        if first < len(keys) and keys[first] == key:
            there[count], starts[count], ends[count] = i, first, last
            count += 1
    there, starts, ends = there[:count], starts[:count], ends[:count]
    touched = np.empty(total if alike and total <= most else 0, np.int64)
    at = 0
    for i in range(count if len(touched) else 0):
        first = at
        for row in range(starts[i], ends[i]):
            touched[at] = row
            at += 1
        starts[i], ends[i] = first, at
    return there, starts, ends, touched


@kernel
def in_order(left: float, right: float, op: int) -> bool:
    if op == 2:
        return left < right
    if op == 3:
        return left <= right
    if op == 4:
        return left > right
    return left >= right


@kernel
def queries_of_pairs(
    pairs: Any, pair: int, room: int, main: int, even: bool, reaches: Floats, own_sets: Any, other_sets: Any
) -> tuple[Ints, Ints, Numbers, int]:
    """Returns the pairs, starting from a given one, that satisfy some query, the start of each pair's queries, and the
    positions of the queries. Stops when there is no room for one more pair; also returns the next pair.

    Pairs of the order in time `main` satisfy a prefix of the positions; for others each query's window is checked.
    Pairs of one new row are contiguous."""
    ones, others, far, kinds = pairs
    own_listed, own_words, own_starts, own_lists = own_sets
    listed, words, starts, lists = other_sets
    queries = reaches.shape[1]
    kept, offsets = np.empty(len(ones) - pair, np.int64), np.zeros(len(ones) - pair + 1, np.int64)
    numbers = np.empty(max(1024, 2 * queries + 2), np.int32)
    scratch = np.zeros((1, (queries + 63) >> 6), np.uint64)
    both, filled = np.empty(scratch.shape[1], np.uint64), np.empty(scratch.shape[1], np.int64)
    count, written, marked = 0, 0, -1
    while pair < len(ones) and written <= room:
        one, two = ones[pair], others[pair]
        prefix = not even and kinds[pair] == main
        upto = reached(reaches[main], far[pair]) if prefix else queries
        if written + queries + 2 > len(numbers):
            numbers = longer(numbers, written, queries + 2)
        before = written
        if not own_listed and not listed:
            written = intersect(own_words, own_starts[one], words, starts[two], both, filled, upto, numbers, written)
        elif not own_listed:
            span = starts[two], starts[two + 1]
            written = look_up(own_words, own_starts[one], lists, span, upto, numbers, written)
        elif not listed:
            span = own_starts[one], own_starts[one + 1]
            written = look_up(words, starts[two], own_lists, span, upto, numbers, written)
        else:
            if marked != one:
                if marked >= 0:
                    flip(scratch, own_lists, own_starts[marked], own_starts[marked + 1])
                flip(scratch, own_lists, own_starts[one], own_starts[one + 1])
                marked = one
            written = look_up(scratch, 0, lists, (starts[two], starts[two + 1]), upto, numbers, written)
        if not even and not prefix:
            end, written = written, before
            for at in range(before, end):
                numbers[written] = numbers[at]
                written += reaches[kinds[pair], numbers[at]] >= far[pair]
        if written > before:
            kept[count] = pair
            count += 1
            offsets[count] = written
        pair += 1
    return kept[:count], offsets[: count + 1], numbers[:written], pair


@kernel
def reached(reaches: Floats, far: float) -> int:
    """The number of reaches, longest first, that are at least `far`."""
    low, high = 0, len(reaches)
    while low < high:
        middle = (low + high) >> 1
        if reaches[middle] >= far:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def longer(array: Any, used: int, more: int) -> Any:
    wider = np.empty(max(2 * len(array), used + more), dtype=array.dtype)
    wider[:used] = array[:used]
    return wider


@kernel
def flip(words: Any, lists: Numbers, start: int, end: int) -> None:
    """Sets or clears the bits of a list."""
    for entry in range(start, end):
        place = np.uint64(lists[entry])
        words[0, place >> SHIFT] ^= ONE << (place & LOW_BITS)


@kernel
def look_up(words: Any, row: int, lists: Numbers, span: Any, upto: int, numbers: Numbers, written: int) -> int:
    """Writes the entries of an ascending list, below `upto`, that are set in the bitmap."""
    here = np.uint64(written)
    for entry in range(span[0], span[1]):
        place = np.uint64(lists[entry])
        if lists[entry] >= upto:
            break
        numbers[here] = lists[entry]
        here += (words[row, place >> SHIFT] >> (place & LOW_BITS)) & ONE
    return np.int64(here)  # type: ignore[return-value]


@kernel
def intersect(
    mine: Any, row: int, words: Any, slot: int, both: Any, filled: Any, upto: int, numbers: Numbers, written: int
) -> int:
    """Writes the positions below `upto` of the bits that both sets have. Words without common bits are skipped first,
    without a branch. From the others, two bits are written at a time, and a surplus one is overwritten next."""
    size = (upto + 63) >> 6
    for at in range(size):
        both[at] = mine[row, at] & words[slot, at]
    if upto & 63:
        both[size - 1] &= (ONE << np.uint64(upto & 63)) - ONE
    count = np.uint64(0)
    for at in range(size):
        filled[count] = at
        count += np.uint64(both[at] != NOTHING)
    here = np.uint64(written)
    for entry in range(count):
        word = both[filled[entry]]
        base = np.int32(filled[entry] << 6)
        after = here + np.uint64(population(word))
        while True:
            numbers[here] = base + np.int32(trailing_zeros(word))
            word &= word - ONE
            numbers[here + ONE] = base + np.int32(trailing_zeros(word))
            word &= word - ONE
            here += np.uint64(2)
            if word == NOTHING:
                break
        here = after
    return np.int64(here)  # type: ignore[return-value]
