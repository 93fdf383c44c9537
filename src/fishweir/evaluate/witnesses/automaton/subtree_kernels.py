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
    after_end_tag,
    after_other,
    after_start_tag,
    next_less,
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
        mark = data[i + 1]
        if mark == SLASH:
            level -= 1
            if level == 0:
                return at
            i = after_end_tag(data, i)
        elif mark == QUESTION or mark == BANG:
            first, i = i, after_other(data, i, stop)
            if mark == BANG and data[first + 2] != DASH:
                at = take_verbatim(data, first + 9, i - 3, into, at)
        else:
            i = after_start_tag(data, i, stop)
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
def _enter(
    data: Any, i: int, declared: Any, levels: Any, depth: int, count: int, found: Any, tag: Any
) -> tuple[int, int, int]:
    """Reads the start tag at `i`. Returns the index after it, the number of declarations in force and the depth."""
    before = count
    i = read_tag(data, i + 1, found, tag)
    if data[i] == SLASH:
        return i + 2, count, depth
    for k in range(tag[1]):
        if is_declaration(data, found[k, 0], found[k, 1]):
            declared[count, 0], declared[count, 1] = min(found[k, 0] + 6, found[k, 1]), found[k, 1]
            declared[count, 2], declared[count, 3] = found[k, 2], found[k, 3]
            count += 1
    levels[depth + 1] = before
    return i + 1, count, depth + 1


@lean_kernel
def take_nodes(
    data: Any,
    bounds: Any,
    documents: Any,
    positions: Any,
    nexts: Any,
    stops: Any,
    whats: Any,
    names: Any,
    name_bounds: Any,
    found: Any,
    declared: Any,
    levels: Any,
    shown: Any,
    tag: Any,
    into: Any,
    ats: Any,
    ends: Any,
    refused: Any,
) -> bool:
    """Writes nodes for several requests. Request `r` asks for the part `whats[r]` of the nodes from `nexts[r]` up to
    `stops[r]`, and the output is appended to `into[r]` at `ats[r]`. The nodes of a request ascend by document and
    position, so each document is read once for all requests. Returns whether everything was written; if there was too
    little room, the call is repeated with more."""
    while True:
        document = -1
        for r in range(len(nexts)):
            if nexts[r] < stops[r] and (document < 0 or documents[nexts[r]] < document):
                document = documents[nexts[r]]
        if document < 0:
            return True
        i, stop = bounds[document], bounds[document + 1]
        needed = GROWTH * (stop - i) + ROOM
        depth, position, count, at_tag = 0, -1, 0, False
        while True:
            wanted = -1
            for r in range(len(nexts)):
                k = nexts[r]
                if k < stops[r] and documents[k] == document and (wanted < 0 or positions[k] < wanted):
                    wanted = positions[k]
            if wanted < 0:
                break
            while position < wanted:
                if at_tag:
                    i, count, depth = _enter(data, i, declared, levels, depth, count, found, tag)
                    at_tag = False
                i = next_less(data, i, stop)
                if i >= stop:
                    break
                mark = data[i + 1]
                if mark == SLASH:
                    count, depth = levels[depth], depth - 1
                    i = after_end_tag(data, i)
                    continue
                if mark == BANG or mark == QUESTION:
                    i = after_other(data, i, stop)
                    continue
                position, at_tag = position + 1, True
            for r in range(len(nexts)):
                k = nexts[r]
                if k == stops[r] or documents[k] != document or positions[k] != wanted:
                    continue
                text, at = into[r], ats[r]
                if len(text) - at < needed:
                    return False
                ended = REFUSED
                if position != wanted:
                    pass
                elif whats[r] == VALUE:
                    ended = _write_string(data, i, stop, text, at)
                elif whats[r] == ATTRIBUTE:
                    read_tag(data, i + 1, found, tag)
                    name = names[name_bounds[r] : name_bounds[r + 1]]
                    ended = _write_named(data, found, tag[1], name, text, at)
                else:
                    inner = whats[r] == CONTENT
                    ended = write_markup(
                        data, i, stop, inner, declared, levels, depth, count, found, shown, tag, text, at
                    )
                refused[k] = ended < 0
                ats[r] = at if ended < 0 else ended
                ends[k] = ats[r]
                nexts[r] = k + 1
