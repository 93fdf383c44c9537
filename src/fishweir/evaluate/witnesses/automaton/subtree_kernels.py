"""Compiled kernels that extract nodes of documents for results: their string values, their markup, their content.

In: ordinary documents (check_kernels.py), and nodes by document and preorder position. Out: concatenated texts.
"""

from __future__ import annotations

from typing import Any

from fishweir.evaluate.jit import lean_kernel
from fishweir.evaluate.witnesses.automaton.character_kernels import REFUSED
from fishweir.evaluate.witnesses.automaton.markup_kernels import prefix_end, read_tag, write_markup
from fishweir.evaluate.witnesses.automaton.name_kernels import is_declaration
from fishweir.evaluate.witnesses.automaton.scan_kernels import (
    BANG,
    DASH,
    LESS,
    QUESTION,
    SLASH,
    after_other,
    next_less,
    tag_end,
    take_text,
    take_value,
    take_verbatim,
)

VALUE, MARKUP, CONTENT, ATTRIBUTE = range(4)
"""The extracted part of a node: its string value, the node itself, its content, the value of an attribute."""
GROWTH, ROOM = 6, 4096
"""The maximum growth factor of a byte, and the additional room required."""


@lean_kernel
def _write_string(data: Any, i: int, stop: int, into: Any, at: int) -> int:
    """Writes the string value of the element that begins at `i`. Returns the end of the output."""
    level = 0
    while True:
        if data[i] != LESS:
            i, at = take_text(data, i, stop, into, at)
            continue
        mark = data[i + 1]
        if mark == SLASH:
            level -= 1
            if level == 0:
                return at
            i = tag_end(data, i + 2, stop) + 1
        elif mark == QUESTION or mark == BANG:
            first, i = i, after_other(data, i, stop)
            if mark == BANG and data[first + 2] != DASH:
                at = take_verbatim(data, first + 9, i - 3, into, at)
        else:
            i = tag_end(data, i + 2, stop) + 1
            if data[i - 2] != SLASH:
                level += 1
            elif level == 0:
                return at


@lean_kernel
def _write_named(data: Any, found: Any, count: int, name: Any, into: Any, at: int) -> int:
    """Writes the value of the attribute that a name without a namespace denotes: the one without a namespace, else the
    first in any. Returns the end of the output."""
    best = -1
    for k in range(count):
        if not is_declaration(data, found[k, 0], found[k, 1]):
            first, last = found[k, 0], found[k, 1]
            end = prefix_end(data, first, last)
            local = first if end == first else end + 1
            same = last - local == len(name)
            for j in range(len(name) if same else 0):
                same &= data[local + j] == name[j]
            if same and (best < 0 or local == first):
                best = k
                if local == first:
                    break
    return REFUSED if best < 0 else take_value(data, found[best, 2], found[best, 3], into, at)


@lean_kernel
def take_nodes(
    data: Any,
    bounds: Any,
    documents: Any,
    positions: Any,
    what: int,
    name: Any,
    found: Any,
    declared: Any,
    levels: Any,
    shown: Any,
    tag: Any,
    into: Any,
    ends: Any,
    refused: Any,
    node: int,
    at: int,
) -> int:
    """Writes the requested part of the nodes from `node` on, starting at `at`. Returns the node before which it stopped
    because there was no room, or the number of nodes. Nodes ascend by document and position, so each document is read
    once."""
    document, i, stop, depth, position, count = -1, 0, 0, 0, -1, 0
    while node < len(documents):
        if documents[node] != document:
            document = documents[node]
            i, stop = bounds[document], bounds[document + 1]
            depth, position, count = 0, -1, 0
        if len(into) - at < GROWTH * (stop - bounds[document]) + ROOM:
            return node
        ended = REFUSED
        while position < positions[node]:
            i = next_less(data, i, stop)
            if i >= stop:
                break
            mark = data[i + 1]
            if mark == SLASH:
                count, depth = levels[depth], depth - 1
                i = tag_end(data, i + 2, stop) + 1
                continue
            if mark == BANG or mark == QUESTION:
                i = after_other(data, i, stop)
                continue
            position += 1
            began, before = i, count
            if position == positions[node]:
                if what == VALUE:
                    ended = _write_string(data, i, stop, into, at)
                elif what != ATTRIBUTE:
                    ended = write_markup(
                        data, i, stop, what == CONTENT, declared, levels, depth, count, found, shown, tag, into, at
                    )
            i = read_tag(data, began + 1, found, tag)
            if what == ATTRIBUTE and position == positions[node]:
                ended = _write_named(data, found, tag[1], name, into, at)
            if data[i] == SLASH:
                i += 2
                continue
            for k in range(tag[1]):
                if is_declaration(data, found[k, 0], found[k, 1]):
                    declared[count, 0], declared[count, 1] = min(found[k, 0] + 6, found[k, 1]), found[k, 1]
                    declared[count, 2], declared[count, 3] = found[k, 2], found[k, 3]
                    count += 1
            depth += 1
            levels[depth] = before
            i += 1
        refused[node] = ended < 0
        at = at if ended < 0 else ended
        ends[node] = at
        node += 1
    return node
