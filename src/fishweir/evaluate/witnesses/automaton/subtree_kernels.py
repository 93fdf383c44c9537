"""Compiled kernels that extract nodes of documents for results: their string values, their markup, their content.

In: documents, and columns of texts. A text consists of parts: literals, and what is shown of nodes, which are given by
document and preorder position. Out: the concatenated texts of each column. Rows with documents that are not ordinary
(check_kernels.py) are refused.
"""

from __future__ import annotations

from typing import Any

from fishweir.evaluate.witnesses.automaton.character_kernels import REFUSED
from fishweir.evaluate.witnesses.automaton.check_kernels import list_pieces
from fishweir.evaluate.witnesses.automaton.escape_kernels import write_quoted
from fishweir.evaluate.witnesses.automaton.markup_kernels import prefix_end, read_tag, write_markup
from fishweir.evaluate.witnesses.automaton.name_kernels import is_declaration
from fishweir.evaluate.witnesses.automaton.piece_kernels import (
    BEGIN,
    DECLARES,
    ELEMENT,
    FLAGS,
    KIND,
    LAST,
    PARENT,
    PLAIN,
    SECTION,
    TEXT,
)
from fishweir.evaluate.witnesses.automaton.scan_kernels import copy_bytes, take_text, take_value, take_verbatim
from fishweir.jit import bytes_at, inlined, leaf_kernel, lean_kernel

VALUE, MARKUP, CONTENT, ATTRIBUTE, QUOTED, LITERAL = range(6)
"""What a part shows of a node: its string value, the node itself, its content, the value of an attribute, its string
value in quotation marks. A literal shows no node."""
GROWTH, SIZE = 6, 4096
"""The maximum growth factor of a byte, and the additional room required."""


@leaf_kernel
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


NEXT, STOP, FIRST_ROW, FIRST_PART, LAST_PART, FIRST_END, ENDS, ADDRESS, ROOM, AT, COLUMN = range(11)
"""Fields of a column: the next row, the last one and the first; its parts; the place of the first end of a text, and
the number of texts per row; the address, the size and the end so far of its output."""
SHOWS, POSITIONS, NAME, NAME_END, CLOSES, PART = range(6)
"""Fields of a part: what it shows; where the positions of its nodes begin; the name of its attribute, or its literal;
whether it ends a text."""


@lean_kernel
def _enter_above(data: Any, pieces: Any, piece: int, declared: Any, levels: Any, found: Any, tag: Any) -> int:
    """Sets `declared` to the declarations of the elements above a piece, and `levels` to their number above each of
    these elements. Returns the number of elements."""
    depth, above = 0, pieces[piece, PARENT]
    while above >= 0:
        depth += 1
        levels[depth], above = above, pieces[above, PARENT]
    for level in range(1, depth // 2 + 1):  # from the root on
        levels[level], levels[depth + 1 - level] = levels[depth + 1 - level], levels[level]
    count = 0
    for level in range(1, depth + 1):
        above, levels[level] = levels[level], count
        if pieces[above, FLAGS] & DECLARES:
            count = _enter(data, pieces[above, BEGIN], declared, count, found, tag)
    levels[0] = count
    return depth


@inlined
def _write_part(
    data: Any,
    pieces: Any,
    size: int,
    part: Any,
    row: int,
    positions: Any,
    names: Any,
    declared: Any,
    found: Any,
    levels: Any,
    shown: Any,
    tag: Any,
    spare: Any,
    into: Any,
    at: int,
) -> int:
    """Writes a part of a row. Returns the end of the output, or REFUSED."""
    shows = part[SHOWS]
    if shows == LITERAL:
        return copy_bytes(names, part[NAME], part[NAME_END], into, at)
    if size < 0:
        return REFUSED
    position = positions[part[POSITIONS] + row]
    if position >= pieces[size, LAST]:
        return REFUSED
    piece = pieces[position, ELEMENT]
    if shows == VALUE:
        return _write_string(data, pieces, piece, into, at)
    if shows == QUOTED:
        return write_quoted(spare, _write_string(data, pieces, piece, spare, 0), into, at)
    if shows == ATTRIBUTE:
        read_tag(data, pieces[piece, BEGIN] + 1, found, tag)
        return _write_named(data, found, tag[1], names[part[NAME] : part[NAME_END]], into, at)
    depth, levels[0] = 0, 0
    if pieces[size, FLAGS] & DECLARES:
        depth = _enter_above(data, pieces, piece, declared, levels, found, tag)
    return write_markup(
        data, pieces, piece, shows == CONTENT, declared, levels, depth, levels[0], found, shown, tag, into, at
    )


@lean_kernel
def write_columns(
    data: Any,
    bounds: Any,
    documents: Any,
    columns: Any,
    parts: Any,
    positions: Any,
    names: Any,
    stack: Any,
    declared: Any,
    found: Any,
    pieces: Any,
    levels: Any,
    shown: Any,
    tag: Any,
    spare: Any,
    ends: Any,
    refused: Any,
) -> bool:
    """Writes columns of texts. The rows of a column ascend by document, so each document is checked and read once for
    all columns. Returns whether everything was written; if there was too little room, the call is repeated with
    more."""
    while True:
        document = -1
        for c in range(len(columns)):
            row = columns[c, NEXT]
            if row < columns[c, STOP] and (document < 0 or documents[row] < document):
                document = documents[row]
        if document < 0:
            return True
        i, stop = bounds[document], bounds[document + 1]
        needed = GROWTH * (stop - i) + SIZE
        size = list_pieces(data, i, stop, stack, declared, found, pieces)
        for c in range(len(columns)):
            column = columns[c]
            into = bytes_at(column[ADDRESS], column[ROOM])
            while column[NEXT] < column[STOP] and documents[column[NEXT]] == document:
                row = column[NEXT] - column[FIRST_ROW]
                end = began = column[AT]
                first = closed = column[FIRST_END] + row * column[ENDS]
                for p in range(column[FIRST_PART], column[LAST_PART]):
                    part = parts[p]
                    if column[ROOM] - end < needed + part[NAME_END] - part[NAME]:
                        return False
                    end = _write_part(
                        data, pieces, size, part, row, positions, names,
                        declared, found, levels, shown, tag, spare, into, end,
                    )  # fmt: skip
                    if end < 0:
                        break
                    if part[CLOSES]:
                        ends[closed] = end
                        closed += 1
                if end < 0:
                    refused[column[NEXT]] = True
                    end = began
                    for closed in range(first, first + column[ENDS]):
                        ends[closed] = began
                column[AT] = end
                column[NEXT] += 1
