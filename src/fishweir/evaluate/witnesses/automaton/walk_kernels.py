"""Compiled kernel of the walk: one pass over the bytes of documents that runs the states of the automaton.

In: UTF-8 documents that are known to be well-formed, without a DTD and their own entities (checked by check_kernels.py,
or written by libxml2), and the known part of the automaton: a table of transitions and the flags of the states. Out:
rows. Text is copied only if some path reads it. In a subtree that no state enters, elements are only counted, for the
preorder ids. If a transition is not known yet, or room runs out, the kernel stops before the tag and returns the
reason. The caller resolves it, and the pass continues from there.
"""

from __future__ import annotations

from typing import Any

from fishweir.algebra.documents import ATTRIBUTE as NEXT_ATTRIBUTE
from fishweir.algebra.documents import MOST_ATTRIBUTES
from fishweir.evaluate.witnesses.automaton.name_kernels import (
    ATTRIBUTE,
    ELEMENT,
    NAMESPACE,
    NO_NAMESPACE,
    intern,
    is_declaration,
    name_at,
)
from fishweir.evaluate.witnesses.automaton.scan_kernels import (
    APOSTROPHE,
    BANG,
    DASH,
    EQUALS,
    GREATER,
    LESS,
    QUESTION,
    QUOTE,
    SLASH,
    after_other,
    is_space,
    next_less,
    skip_subtree,
    tag_end,
    take_text,
    take_value,
    take_verbatim,
)
from fishweir.evaluate.witnesses.automaton.step_kernels import (
    BY_ATTRIBUTE,
    BY_ELEMENT,
    CLOSED,
    MATCHED,
    NOT_KNOWN,
    NOWHERE,
    READS_ATTRIBUTES,
    VALUED,
    find_step,
)
from fishweir.evaluate.witnesses.turns import turn_at
from fishweir.jit import inlined, lean_kernel

DONE, NO_ROOM, NO_NAMES, NO_STEP = 0, 1, 2, 3
"""How a pass ended: everything is read, the lists must grow, the table of names must grow, a transition is missing."""

DOCUMENT, PLACE, DEPTH, POSITION, ROW, TEXT, VALUE, READERS, SKIPPED, ELEMENTS, INSIDE, LEFT_OUT, SIZE = range(13)
"""The progress of a pass: document, byte, depth, preorder position, rows, bytes of text and of values so far, open
elements whose text is read, skipped elements, elements of the previous documents, whether it is inside a document,
elements left out by their turn."""

STATE, HEAD, CONTEXT, OWN_ROW, DECLARED, ENTERED, AT, BEGAN, LEVEL = range(9)
"""Columns of a stack level: the state from which children are reached (-1: only text is read), the row above them, the
declaration in force, the row that the text belongs to or -1, the declarations so far, the state entered or -1, the
preorder position, the byte where the element began."""


@inlined
def _place_of(found: Any, locals_: Any, count: int, at: int) -> int:
    """The rank among attributes of the same local name: first the one without a namespace, then the others in order."""
    own, place = locals_[found[at, 4]], 0
    if own < 0:
        for k in range(count):
            other = locals_[found[k, 4]]
            place += other == -own or (other == own and k < at)
    return min(place, MOST_ATTRIBUTES - 1)


@inlined
def _add_row(rows: Any, row: int, place: int, above: int, name: int, begin: int, end: int, parent: int) -> int:
    rows[row, 0], rows[row, 1], rows[row, 2] = place, above, name
    rows[row, 3], rows[row, 4], rows[row, 5] = begin, end, parent
    return row + 1


@inlined
def _count(activity: Any, state: int, elements: int, bytes_: int) -> None:
    activity[state, 0] += 1
    activity[state, 1] += elements
    activity[state, 2] += bytes_


@inlined
def _read_tag(
    data: Any, i: int, slots: Any, hashes: Any, names: Any, arena: Any, used: Any, declared: Any, found: Any, tag: Any
) -> int:
    """Reads a start tag from its name on: declarations, and the positions of attributes. `tag` has the declaration in
    force and the number of previous declarations. The end of the name and the number of attributes are added to it.
    Returns the index of the `>` or `/` that ends the tag, or the reason for stopping as -NO_ROOM or -NO_NAMES."""
    context, declarations, count = tag[0], tag[1], 0
    while data[i] > GREATER or not (data[i] == GREATER or data[i] == SLASH or is_space(data[i])):
        i += 1
    tag[2] = i
    while is_space(data[i]):
        i += 1
    while data[i] != GREATER and data[i] != SLASH:
        key = i
        while data[i] != EQUALS and not is_space(data[i]):
            i += 1
        key_end = i
        while data[i] != QUOTE and data[i] != APOSTROPHE:
            i += 1
        quote, begin = data[i], i + 1
        i = begin
        while data[i] != quote:
            i += 1
        if is_declaration(data, key, key_end):
            if declarations >= len(declared):
                return -NO_ROOM
            space = NO_NAMESPACE
            if begin < i:
                space = intern(data, begin, i, NAMESPACE, 0, slots, hashes, names, arena, used)
                if space < 0:
                    return -NO_NAMES
            declared[declarations, 0], declared[declarations, 1] = context, min(key + 6, key_end)
            declared[declarations, 2], declared[declarations, 3] = key_end, space
            context, declarations = declarations, declarations + 1
        else:
            if count >= len(found):
                return -NO_ROOM
            found[count, 0], found[count, 1], found[count, 2], found[count, 3] = key, key_end, begin, i
            count += 1
        i += 1
        while is_space(data[i]):
            i += 1
    tag[0], tag[1], tag[3] = context, declarations, count
    return i


@lean_kernel
def _attribute_rows(
    data: Any,
    found: Any,
    count: int,
    locals_: Any,
    flags: Any,
    rows: Any,
    row: int,
    head: int,
    position: int,
    shift: int,
    values: Any,
    value: int,
) -> tuple[int, int]:
    """Adds rows for the attributes that some path reaches, first those that rank first for their local name."""
    round_, rounds = 0, 1
    while round_ < rounds:
        for k in range(count):
            target, place = found[k, 5], _place_of(found, locals_, count, k)
            if place > 0:
                rounds = 2
            if target >= 0 and (place > 0) == (round_ > 0):
                begin, end = -1, -1
                if flags[target] & VALUED:
                    begin, value = value, take_value(data, found[k, 2], found[k, 3], values, value)
                    end = value
                at = (target << shift) + position + place * NEXT_ATTRIBUTE
                row = _add_row(rows, row, at, head, found[k, 4], begin, end, -1)
        round_ += 1
    return row, value


@lean_kernel
def walk_documents(
    data: Any,
    bounds: Any,
    slots: Any,
    hashes: Any,
    names: Any,
    arena: Any,
    used: Any,
    locals_: Any,
    keys: Any,
    targets: Any,
    flags: Any,
    starts: Any,
    passed: Any,
    passed_starts: Any,
    stack: Any,
    declared: Any,
    found: Any,
    rows: Any,
    row_firsts: Any,
    texts: Any,
    values: Any,
    activity: Any,
    missing: Any,
    now: Any,
    numbers: Any,
    ends: Any,
    switch: Any,
    shift: int,
    zero: int,
) -> int:
    """Continues at the position in `now`. A document is the bytes between two `bounds`. `starts` has the state above
    the element of each document. `passed` has the rows of the elements above it before a split: the place, and whether
    the value is read.

    The columns of a row are the place, the row above, the name of an attribute or -1, the start and end of its value
    (-1 if no path reads it), and the position of the element above or -1. A row of `activity` has, for a state, how
    often it was entered, and the elements and bytes below.

    Within documents, the walk may switch from one view to another (views.py). `switch` has the depth at which it does
    so or -1, the state that it leaves there, and the state that it enters in each turn, NOWHERE for none. The turn of
    an element depends on its own number and on the number of its document in `numbers`, which is -1 for a document
    without turns.
    """
    tag = missing[3:]
    document, i, depth, position = now[DOCUMENT], now[PLACE], now[DEPTH], now[POSITION]
    row, text, value, readers = now[ROW], now[TEXT], now[VALUE], now[READERS]
    skipped, before, inside, left_out = now[SKIPPED], now[ELEMENTS], now[INSIDE], now[LEFT_OUT]
    ended = DONE
    while document < len(bounds) - 1:
        stop = bounds[document + 1]
        if not inside:
            if row + passed_starts[document + 1] - passed_starts[document] > len(rows):
                ended = NO_ROOM
                break
            row_firsts[document], head = row, -1
            i, depth, position, readers, inside = bounds[document], 0, 0, 0, 1
            for k in range(passed_starts[document], passed_starts[document + 1]):
                wanted = passed[k, 1] != 0
                readers += wanted
                row = _add_row(rows, row, passed[k, 0], head, -1, text if wanted else -1, -1, -1)
                head = row - 1
            stack[0, STATE], stack[0, HEAD], stack[0, CONTEXT], stack[0, DECLARED] = starts[document], head, -1, 0
            stack[0, AT] = -1
        while i < stop:
            if data[i] != LESS:
                if readers > 0 and depth > 0:
                    i, text = take_text(data, i, stop, texts, text)
                else:
                    i = next_less(data, i, stop)
                continue
            mark = data[i + 1]
            if mark == SLASH:
                i = tag_end(data, i + 2, stop) + 1
                if stack[depth, OWN_ROW] >= 0:
                    rows[stack[depth, OWN_ROW], 4] = text
                    readers -= 1
                if stack[depth, ENTERED] >= 0:
                    _count(activity, stack[depth, ENTERED], position - 1 - stack[depth, AT], i - stack[depth, BEGAN])
                depth -= 1
                continue
            if mark == QUESTION or mark == BANG:
                begin, i = i, after_other(data, i, stop)
                if readers > 0 and depth > 0 and mark == BANG and data[begin + 2] != DASH:
                    text = take_verbatim(data, begin + 9, i - 3, texts, text)
                continue
            if depth + 2 >= len(stack):
                ended = NO_ROOM
                break
            above, began = stack[depth, STATE], i
            if above < 0:
                i = tag_end(data, i + 2, stop) + 1
                position, skipped = position + 1, skipped + 1
                if data[i - 2] != SLASH:
                    depth += 1
                    stack[depth, STATE], stack[depth, OWN_ROW], stack[depth, ENTERED] = -1, -1, -1
                continue
            tag[0], tag[1] = stack[depth, CONTEXT], stack[depth, DECLARED]
            end = _read_tag(data, i + 1, slots, hashes, names, arena, used, declared, found, tag)
            if end < 0:
                ended = -end
                break
            context, count, empty = tag[0], tag[3], data[end] == SLASH
            name = name_at(data, i + 1, tag[2], ELEMENT, declared, context, slots, hashes, names, arena, used)
            if name < 0:
                ended = NO_NAMES
                break
            state = find_step(keys, targets, above, BY_ELEMENT, name)
            if state == NOT_KNOWN:
                missing[0], missing[1], missing[2] = above, BY_ELEMENT, name
                ended = NO_STEP
                break
            if depth == switch[0] and state == switch[1] and numbers[document] >= 0:
                turn = turn_at(numbers[document], position, ends)
                if turn == len(ends):
                    state, left_out = NOWHERE, left_out + 1
                else:
                    state = switch[2 + turn]
            if state == NOWHERE:
                i = end + 2 if empty else end + 1
                position, skipped = position + 1, skipped + 1
                if empty:
                    continue
                if readers > 0:
                    depth += 1
                    stack[depth, STATE], stack[depth, OWN_ROW], stack[depth, ENTERED] = -1, -1, -1
                else:
                    i, inner = skip_subtree(data, i, stop, began + 1, tag[2])
                    position, skipped = position + inner, skipped + inner
                continue
            kind = flags[state]
            if kind & READS_ATTRIBUTES:
                for k in range(count):
                    key = name_at(
                        data, found[k, 0], found[k, 1], ATTRIBUTE, declared, context, slots, hashes, names, arena, used
                    )
                    if key < 0:
                        ended = NO_NAMES
                        break
                    found[k, 4], found[k, 5] = key, find_step(keys, targets, state, BY_ATTRIBUTE, key)
                    if found[k, 5] == NOT_KNOWN:
                        missing[0], missing[1], missing[2] = state, BY_ATTRIBUTE, key
                        ended = NO_STEP
                        break
                if ended != DONE:
                    break
            else:
                count = 0
            if row + 1 + count > len(rows):
                ended = NO_ROOM
                break
            head, own = stack[depth, HEAD], -1
            if kind & MATCHED:
                if kind & VALUED:
                    own = row
                    readers += 1
                begin = text if own >= 0 else -1
                row = _add_row(rows, row, (state << shift) + zero + position, head, -1, begin, begin, stack[depth, AT])
                head = row - 1
            if count > 0:
                row, value = _attribute_rows(
                    data, found, count, locals_, flags, rows, row, head, zero + position, shift, values, value
                )
            at, position = position, position + 1
            i = end + 2 if empty else end + 1
            if empty or (kind & CLOSED and readers == 0):
                if not empty:
                    i, inner = skip_subtree(data, i, stop, began + 1, tag[2])
                    position, skipped = position + inner, skipped + inner
                if own >= 0:
                    readers -= 1
                _count(activity, state, position - 1 - at, i - began)
                continue
            depth += 1
            stack[depth, STATE] = -1 if kind & CLOSED else state
            stack[depth, HEAD], stack[depth, CONTEXT], stack[depth, OWN_ROW] = head, context, own
            stack[depth, DECLARED], stack[depth, ENTERED], stack[depth, AT] = tag[1], state, at
            stack[depth, BEGAN] = began
        if ended != DONE:
            break
        for k in range(passed_starts[document + 1] - passed_starts[document]):
            if rows[row_firsts[document] + k, 3] >= 0:
                rows[row_firsts[document] + k, 4] = text
        before, inside, document = before + position, 0, document + 1
    now[DOCUMENT], now[PLACE], now[DEPTH], now[POSITION] = document, i, depth, position
    now[ROW], now[TEXT], now[VALUE], now[READERS] = row, text, value, readers
    now[SKIPPED], now[ELEMENTS], now[INSIDE], now[LEFT_OUT] = skipped, before, inside, left_out
    if ended == DONE:
        row_firsts[document] = row
    return ended


@lean_kernel
def gather(rows: Any, chosen: Any, texts: Any, values: Any, offsets: Any, into: Any) -> None:
    """Copies the values of some rows into one array, concatenated."""
    for k in range(len(chosen)):
        row, at = chosen[k], offsets[k]
        for i in range(rows[row, 3], rows[row, 4]):
            into[at] = texts[i] if rows[row, 2] < 0 else values[i]
            at += 1
