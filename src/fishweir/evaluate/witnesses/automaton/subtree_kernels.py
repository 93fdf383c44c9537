"""Compiled kernels that extract nodes of documents for results: their string values, their markup, their content.

In: documents, and nodes by document and preorder position. Out: concatenated texts. Nodes of documents that are not
ordinary (check_kernels.py) are refused.
"""

from __future__ import annotations

from typing import Any

from fishweir.evaluate.jit import lean_kernel
from fishweir.evaluate.witnesses.automaton.character_kernels import REFUSED
from fishweir.evaluate.witnesses.automaton.check_kernels import list_pieces
from fishweir.evaluate.witnesses.automaton.markup_kernels import prefix_end, read_tag, write_markup
from fishweir.evaluate.witnesses.automaton.name_kernels import is_declaration
from fishweir.evaluate.witnesses.automaton.piece_kernels import (
    BEGIN,
    DECLARES,
    EMPTY,
    END,
    FLAGS,
    KIND,
    LAST,
    PLAIN,
    SECTION,
    START,
    TEXT,
)
from fishweir.evaluate.witnesses.automaton.scan_kernels import copy_bytes, take_text, take_value, take_verbatim

VALUE, MARKUP, CONTENT, ATTRIBUTE = range(4)
"""The extracted part of a node: its string value, the node itself, its content, the value of an attribute."""
GROWTH, ROOM = 6, 4096
"""The maximum growth factor of a byte, and the additional room required."""


@lean_kernel
def _write_string(data: Any, pieces: Any, piece: int, into: Any, at: int) -> int:
    """Writes the string value of the element that begins with a piece. Returns the end of the output."""
    for inner in range(piece + 1, pieces[piece, LAST]):
        flags, begin, end = pieces[inner, FLAGS], pieces[inner, BEGIN], pieces[inner + 1, BEGIN]
        if flags & PLAIN:
            at = copy_bytes(data, begin, end, into, at)
        elif flags & KIND == TEXT:
            at = take_text(data, begin, end, into, at)[1]
        elif flags & KIND == SECTION:
            at = take_verbatim(data, begin + 9, end - 3, into, at)
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
def _enter(data: Any, began: int, declared: Any, count: int, found: Any, tag: Any) -> int:
    """Adds the declarations of a start tag to those in force. Returns their number."""
    read_tag(data, began + 1, found, tag)
    for k in range(tag[1]):
        if is_declaration(data, found[k, 0], found[k, 1]):
            declared[count, 0], declared[count, 1] = min(found[k, 0] + 6, found[k, 1]), found[k, 1]
            declared[count, 2], declared[count, 3] = found[k, 2], found[k, 3]
            count += 1
    return count


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
    stack: Any,
    declared: Any,
    found: Any,
    pieces: Any,
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
    position, so each document is checked and read once for all requests. Returns whether everything was written; if
    there was too little room, the call is repeated with more."""
    while True:
        document = -1
        for r in range(len(nexts)):
            if nexts[r] < stops[r] and (document < 0 or documents[nexts[r]] < document):
                document = documents[nexts[r]]
        if document < 0:
            return True
        i, stop = bounds[document], bounds[document + 1]
        needed = GROWTH * (stop - i) + ROOM
        size = list_pieces(data, i, stop, stack, declared, found, pieces)
        depth, position, count, piece = 0, -1, 0, -1
        while True:
            wanted = -1
            for r in range(len(nexts)):
                k = nexts[r]
                if k < stops[r] and documents[k] == document and (wanted < 0 or positions[k] < wanted):
                    wanted = positions[k]
            if wanted < 0:
                break
            while position < wanted and piece + 1 < size:
                if piece >= 0 and pieces[piece, FLAGS] & KIND == START:
                    depth += 1
                    levels[depth] = count
                    if pieces[piece, FLAGS] & DECLARES:
                        count = _enter(data, pieces[piece, BEGIN], declared, count, found, tag)
                piece += 1
                kind = pieces[piece, FLAGS] & KIND
                if kind == END:
                    count, depth = levels[depth], depth - 1
                elif kind == START or kind == EMPTY:
                    position += 1
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
                    ended = _write_string(data, pieces, piece, text, at)
                elif whats[r] == ATTRIBUTE:
                    read_tag(data, pieces[piece, BEGIN] + 1, found, tag)
                    name = names[name_bounds[r] : name_bounds[r + 1]]
                    ended = _write_named(data, found, tag[1], name, text, at)
                else:
                    inner = whats[r] == CONTENT
                    ended = write_markup(
                        data, pieces, piece, inner, declared, levels, depth, count, found, shown, tag, text, at
                    )
                refused[k] = ended < 0
                ats[r] = at if ended < 0 else ended
                ends[k] = ats[r]
                nexts[r] = k + 1
