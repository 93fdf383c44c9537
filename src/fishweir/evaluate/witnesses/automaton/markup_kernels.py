"""Compiled kernels that write a subtree of an ordinary document (check_kernels.py) in the way libxml2 does.

Characters are escaped as in libxml2, an element without content is `<a/>`, declarations precede attributes, and the
declarations of the elements above are added to the node's own. Constructs that libxml2 may write differently
(processing instructions, a default namespace that is undeclared) are refused and left to libxml2.
"""

from __future__ import annotations

from typing import Any

from fishweir.evaluate.witnesses.automaton.character_kernels import REFUSED, is_same
from fishweir.evaluate.witnesses.automaton.escape_kernels import (
    copy,
    put,
    write_section,
    write_text,
    write_value,
)
from fishweir.evaluate.witnesses.automaton.name_kernels import is_declaration
from fishweir.evaluate.witnesses.automaton.piece_kernels import (
    BEGIN,
    COMMENT,
    COPIED,
    DECLARES,
    EMPTY,
    END,
    FLAGS,
    KIND,
    LAST,
    SECTION,
    START,
    TEXT,
)
from fishweir.evaluate.witnesses.automaton.scan_kernels import (
    AMP,
    APOSTROPHE,
    COLON,
    EQUALS,
    GREATER,
    LESS,
    QUOTE,
    RETURN,
    SLASH,
    SPACE,
    copy_bytes,
    is_space,
)
from fishweir.jit import inlined, lean_kernel


@lean_kernel
def read_tag(data: Any, i: int, found: Any, tag: Any) -> int:
    """Reads a start tag from its name on. Sets `found` to the start and end of the name and value of each attribute,
    and `tag` to the end of the tag's name and the number of attributes. Returns the index of the `>` or `/` that ends
    the tag."""
    count = 0
    while not (data[i] == GREATER or data[i] == SLASH or is_space(data[i])):
        i += 1
    tag[0] = i
    while is_space(data[i]):
        i += 1
    while data[i] != GREATER and data[i] != SLASH:
        found[count, 0] = i
        while data[i] != EQUALS and not is_space(data[i]):
            i += 1
        found[count, 1] = i
        while data[i] != QUOTE and data[i] != APOSTROPHE:
            i += 1
        quote = data[i]
        i += 1
        found[count, 2] = i
        while data[i] != quote:
            i += 1
        found[count, 3] = i
        count += 1
        i += 1
        while is_space(data[i]):
            i += 1
    tag[1] = count
    return i


@inlined
def _write_attribute(data: Any, found: Any, k: int, into: Any, at: int) -> int:
    into[at] = SPACE
    at = copy(data, found[k, 0], found[k, 1], into, at + 1)
    at = put(b'="', into, at)
    at = write_value(data, found[k, 2], found[k, 3], into, at)
    into[at] = QUOTE
    return at + 1


@inlined
def prefix_end(data: Any, first: int, last: int) -> int:
    """The end of the prefix of a name; its start if it has no prefix."""
    i = first
    while i < last and data[i] != COLON:
        i += 1
    return i if i < last else first


@lean_kernel
def _write_declaration(data: Any, declared: Any, k: int, shown: Any, count: int, into: Any, at: int) -> int:
    """Writes a declaration of an element above. Returns the end of the output, 0 if a declaration of its prefix has
    already been written, or REFUSED if it undeclares a default namespace. `shown` has the prefixes written so far."""
    for other in range(count):
        if is_same(data, declared[k, 0], declared[k, 1], shown[other, 0], shown[other, 1]):
            return 0
    if declared[k, 2] == declared[k, 3]:
        return REFUSED
    shown[count, 0], shown[count, 1] = declared[k, 0], declared[k, 1]
    at = put(b" xmlns", into, at)
    if declared[k, 0] < declared[k, 1]:
        into[at] = COLON
        at = copy(data, declared[k, 0], declared[k, 1], into, at + 1)
    at = put(b'="', into, at)
    at = copy(data, declared[k, 2], declared[k, 3], into, at)
    into[at] = QUOTE
    return at + 1


@lean_kernel
def _write_used(
    data: Any, first: int, last: int, declared: Any, above: int, shown: Any, count: int, into: Any, at: int
) -> int:
    """Writes the innermost declaration above for the prefix between `first` and `last`; returns like
    `_write_declaration`."""
    for k in range(above - 1, -1, -1):
        if is_same(data, first, last, declared[k, 0], declared[k, 1]):
            return _write_declaration(data, declared, k, shown, count, into, at)
    return 0


@lean_kernel
def _write_inherited(
    data: Any,
    began: int,
    found: Any,
    tag: Any,
    declared: Any,
    levels: Any,
    depth: int,
    above: int,
    shown: Any,
    into: Any,
    at: int,
) -> int:
    """Writes the declarations of the elements above a node, after its own: first those that its name and its attributes
    use, then the others, from the innermost element outwards."""
    count = 0
    for k in range(tag[1]):
        if is_declaration(data, found[k, 0], found[k, 1]):
            shown[count, 0], shown[count, 1] = min(found[k, 0] + 6, found[k, 1]), found[k, 1]
            count += 1
    for k in range(-1, tag[1]):
        first = began + 1 if k < 0 else found[k, 0]
        last = prefix_end(data, first, tag[0] if k < 0 else found[k, 1])
        if k >= 0 and (first == last or is_declaration(data, first, found[k, 1])):
            continue
        put = _write_used(data, first, last, declared, above, shown, count, into, at)
        if put < 0:
            return REFUSED
        if put > 0:
            at, count = put, count + 1
    end = above
    for level in range(depth, 0, -1):
        for k in range(levels[level], end):
            put = _write_declaration(data, declared, k, shown, count, into, at)
            if put < 0:
                return REFUSED
            if put > 0:
                at, count = put, count + 1
        end = levels[level]
    return at


@inlined
def _plain_tag_end(data: Any, i: int) -> int:
    """The index of the `>` that ends a start tag if all after its name, from `i` on, is written as it is: attributes
    after one space each, in quotation marks, without declarations and characters that are escaped. Otherwise -1."""
    while data[i] == SPACE and data[i + 1] > SPACE and data[i + 1] != SLASH and data[i + 1] != GREATER:
        first = i = i + 1
        while data[i] != EQUALS and data[i] > SPACE:
            i += 1
        if data[i] != EQUALS or data[i + 1] != QUOTE or is_declaration(data, first, i):
            return -1
        i += 2
        while data[i] >= SPACE and not (data[i] == QUOTE or data[i] == AMP or data[i] == LESS or data[i] == GREATER):
            i += 1
        if data[i] != QUOTE:
            return -1
        i += 1
    return i if data[i] == GREATER else -1


@lean_kernel
def _write_start(
    data: Any,
    began: int,
    declared: Any,
    levels: Any,
    depth: int,
    above: int,
    found: Any,
    shown: Any,
    tag: Any,
    into: Any,
    at: int,
) -> int:
    """Writes a start tag without its end, with the `above` declarations in force. Returns the end of the output, or
    REFUSED."""
    read_tag(data, began + 1, found, tag)
    at = copy_bytes(data, began, tag[0], into, at)
    for k in range(tag[1]):
        if is_declaration(data, found[k, 0], found[k, 1]):
            if found[k, 2] == found[k, 3]:
                return REFUSED
            at = _write_attribute(data, found, k, into, at)
    if above > 0:
        at = _write_inherited(data, began, found, tag, declared, levels, depth, above, shown, into, at)
        if at < 0:
            return REFUSED
    for k in range(tag[1]):
        if not is_declaration(data, found[k, 0], found[k, 1]):
            at = _write_attribute(data, found, k, into, at)
    return at


@inlined
def _is_as_is(data: Any, pieces: Any, piece: int) -> bool:
    """Whether markup copies a tag with attributes, or a comment, as it is."""
    kind, i, stop = pieces[piece, FLAGS] & KIND, pieces[piece, BEGIN] + 1, pieces[piece + 1, BEGIN]
    if kind == START and pieces[piece, LAST] > piece + 1:
        while not (data[i] == GREATER or is_space(data[i])):
            i += 1
        return _plain_tag_end(data, i) >= 0
    while kind == COMMENT and i < stop and data[i] != RETURN:
        i += 1
    return kind == COMMENT and i == stop


@lean_kernel
def write_markup(
    data: Any,
    pieces: Any,
    piece: int,
    content: bool,
    declared: Any,
    levels: Any,
    depth: int,
    above: int,
    found: Any,
    shown: Any,
    tag: Any,
    into: Any,
    at: int,
) -> int:
    """Writes the element that begins with a piece, or its content. Returns the end of the output, or REFUSED. `above`
    declarations of `depth` elements are in force. Content with declarations is refused, because each of its parts would
    have to repeat them."""
    last = pieces[piece, LAST]
    if content:
        if above > 0 or pieces[piece, FLAGS] & DECLARES:
            return REFUSED
        if last == piece:
            return at
        piece, last = piece + 1, last - 1
    run = pieces[piece, BEGIN]  # what is written as it is, from `run` on, is copied together
    while piece <= last:
        flags = pieces[piece, FLAGS]
        if above == 0 and (flags & COPIED or _is_as_is(data, pieces, piece)):
            piece += 1
            continue
        begin, end, kind = pieces[piece, BEGIN], pieces[piece + 1, BEGIN], flags & KIND
        at = copy_bytes(data, run, begin, into, at)
        if kind == TEXT:
            at = write_text(data, begin, end, into, at)[1]
        elif kind == SECTION:
            if end - begin <= 12:
                return REFUSED
            at = write_section(data, begin + 9, end - 3, into, at)
        elif kind == START or kind == EMPTY:
            at = _write_start(data, begin, declared, levels, depth, above, found, shown, tag, into, at)
            if at < 0:
                return REFUSED
            above = 0  # these declarations are in force below it
            if pieces[piece, LAST] <= piece + 1:
                at, piece = put(b"/>", into, at), pieces[piece, LAST]
            else:
                into[at] = GREATER
                at += 1
        elif kind == END:
            i = begin + 2
            while data[i] != GREATER and not is_space(data[i]):
                i += 1
            at = copy_bytes(data, begin, i, into, at)
            into[at] = GREATER
            at += 1
        else:
            return REFUSED
        piece += 1
        run = pieces[piece, BEGIN]
    return copy_bytes(data, run, pieces[last + 1, BEGIN], into, at)
