"""Compiled kernels that check which documents are ordinary.

An ordinary document is UTF-8, well-formed including its namespaces, and has neither a DTD nor references other than the
five predefined entities and character references. libxml2 and the walk (walk_kernels.py) read such a document in the
same way, so the walk can process its bytes directly. The check accepts a document only if this is certain. All other
documents, well-formed or not, are left to libxml2, which also provides the reason when a document is set aside. Rare
cases are therefore not handled here: non-ASCII names, namespaces that are not plain URIs, depths close to libxml2's
limit, and documents close to its maximum text length.
"""

from __future__ import annotations

from typing import Any

from fishweir.evaluate.witnesses.automaton.attribute_kernels import (
    after_attributes,
    is_declared,
    is_xml,
    prefixes_hold,
)
from fishweir.evaluate.witnesses.automaton.character_kernels import (
    KINDS,
    REFUSED,
    STARTS,
    after_character,
    after_name,
    after_part,
    after_section,
    after_text,
    is_same,
)
from fishweir.evaluate.witnesses.automaton.piece_kernels import (
    COMMENT,
    COPIED,
    DECLARES,
    ELEMENT,
    EMPTY,
    END,
    INSTRUCTION,
    LAST,
    NOTHING,
    PARENT,
    SECTION,
    START,
    TEXT,
    put_piece,
)
from fishweir.evaluate.witnesses.automaton.scan_kernels import (
    APOSTROPHE,
    BANG,
    CLOSING,
    DASH,
    EQUALS,
    GREATER,
    LESS,
    OPENING,
    QUESTION,
    QUOTE,
    SLASH,
    is_space,
)
from fishweir.jit import inlined, leaf_kernel, lean_kernel

DEEPEST, LONGEST = 250, 8_000_000


@lean_kernel
def _after_instruction(data: Any, i: int, stop: int) -> int:
    """The index after a processing instruction, from its target on. The target must not be xml."""
    first, i = i, after_part(data, i, stop)
    if i < 0 or i >= stop or not (data[i] == QUESTION or is_space(data[i])):
        return REFUSED
    if i - first == 3 and data[first] | 32 == 120 and data[first + 1] | 32 == 109 and data[first + 2] | 32 == 108:
        return REFUSED
    while i + 1 < stop:
        byte = data[i]
        if byte == QUESTION and data[i + 1] == GREATER:
            return i + 2
        if byte >= 0x80:
            i = after_character(data, i, stop)
            if i < 0:
                return REFUSED
        elif byte < 32 and not is_space(byte):
            return REFUSED
        else:
            i += 1
    return REFUSED


@leaf_kernel
def _after_other(data: Any, i: int, stop: int, inside: bool) -> int:
    """The index after a comment, a processing instruction or, inside an element, a CDATA section."""
    if data[i + 1] == QUESTION:
        return _after_instruction(data, i + 2, stop)
    if i + 4 < stop and data[i + 2] == DASH and data[i + 3] == DASH:
        return after_section(data, i + 4, stop, DASH, DASH, True)
    if not inside or i + 9 > stop or data[i + 2] != OPENING or data[i + 8] != OPENING:
        return REFUSED
    if data[i + 3] != 67 or data[i + 4] != 68 or data[i + 5] != 65 or data[i + 6] != 84 or data[i + 7] != 65:
        return REFUSED
    return after_section(data, i + 9, stop, CLOSING, CLOSING, False)


@lean_kernel
def _after_declaration(data: Any, i: int, stop: int) -> int:
    """The index after `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`, of which parts may be missing."""
    step = 0
    while True:
        spaced = i
        while i < stop and is_space(data[i]):
            i += 1
        if i + 2 > stop:
            return REFUSED
        if data[i] == QUESTION:
            return i + 2 if step > 0 and data[i + 1] == GREATER else REFUSED
        key = i
        while i < stop and KINDS[data[i]] & STARTS:
            i += 1
        length = i - key
        if i + 2 >= stop or spaced == key or data[i] != EQUALS:
            return REFUSED
        quote, begin = data[i + 1], i + 2
        if quote != QUOTE and quote != APOSTROPHE:
            return REFUSED
        i = begin
        while i < stop and i < begin + 10 and data[i] != quote:
            i += 1
        if i >= stop or data[i] != quote:
            return REFUSED
        if length == 7 and data[key] == 118:
            if step != 0 or not _is_word(data, key, b"version") or not _is_word(data, begin, b"1.0"):
                return REFUSED
            step, wanted = 1, 3
        elif length == 8:
            if step != 1 or not _is_word(data, key, b"encoding"):
                return REFUSED
            if not (_is_word(data, begin, b"UTF-8") or _is_word(data, begin, b"utf-8")):
                return REFUSED
            step, wanted = 2, 5
        elif length == 10:
            if step == 0 or step == 3 or not _is_word(data, key, b"standalone"):
                return REFUSED
            yes = _is_word(data, begin, b"yes")
            if not yes and not _is_word(data, begin, b"no"):
                return REFUSED
            step, wanted = 3, 3 if yes else 2
        else:
            return REFUSED
        if i - begin != wanted:
            return REFUSED
        i += 1


@inlined
def _is_word(data: Any, i: int, word: bytes) -> bool:
    same = i + len(word) <= len(data)
    for k in range(len(word) if same else 0):
        same &= data[i + k] == word[k]
    return same


@lean_kernel
def list_pieces(data: Any, i: int, stop: int, stack: Any, declared: Any, found: Any, pieces: Any) -> int:
    """Checks the document between two indexes, and lists its pieces (piece_kernels.py) if there is room for them.
    Returns their number, or REFUSED if the document is not ordinary."""
    name = stack[0]
    if stop - i > LONGEST:
        return REFUSED
    if i + 3 <= stop and data[i] == 0xEF and data[i + 1] == 0xBB and data[i + 2] == 0xBF:
        i += 3
    if i + 6 <= stop and _is_word(data, i, b"<?xml") and is_space(data[i + 5]):
        i = _after_declaration(data, i + 5, stop)
        if i < 0:
            return REFUSED
    depth, declarations, count, elements, declares = 0, 0, 0, 0, 0
    while i < stop:
        began = i
        if data[i] != LESS:
            if depth == 0:
                if not is_space(data[i]):
                    return REFUSED
                i += 1
                continue
            i = after_text(data, i, stop, name)
            if i < 0:
                return REFUSED
            put_piece(pieces, count, began, TEXT | name[3])
            began, count = i, count + 1
        if i + 3 >= stop:
            return REFUSED
        mark = data[i + 1]
        if mark == SLASH:
            if depth == 0:
                return REFUSED
            first, last = stack[depth, 0], stack[depth, 1]
            i += 2
            if i + last - first >= stop or not is_same(data, first, last, i, i + last - first):
                return REFUSED
            i += last - first
            kind = END | COPIED if data[i] == GREATER else END
            while i < stop and is_space(data[i]):
                i += 1
            if i >= stop or data[i] != GREATER:
                return REFUSED
            declarations = stack[depth, 2]
            if count < len(pieces):
                pieces[stack[depth, 3], LAST] = count
            depth -= 1
            i += 1
        elif mark == BANG or mark == QUESTION:
            i = _after_other(data, i, stop, depth > 0)
            if i < 0:
                return REFUSED
            if depth == 0:
                continue
            kind = INSTRUCTION if mark == QUESTION else COMMENT if data[began + 2] == DASH else SECTION
        else:
            if depth == 0 and count > 0:
                return REFUSED
            first = i + 1
            i = after_name(data, first, stop, name)
            if i < 0:
                return REFUSED
            last, colon, before, kind = i, name[0], declarations, START
            if i < stop and data[i] == GREATER:
                name[2] = 0
                if i + 2 < stop and not (data[i + 1] == LESS and data[i + 2] == SLASH):
                    kind |= COPIED
            else:
                i = after_attributes(data, i, stop, declared, declarations, found, name)
                if i < 0:
                    return REFUSED
                declarations = name[1]
                if declarations > before:
                    kind |= DECLARES
                    declares = DECLARES
            if colon != first and (
                is_xml(data, first, colon) or not is_declared(data, first, colon, declared, declarations)
            ):
                return REFUSED
            if name[2] > 0 and not prefixes_hold(data, declared, declarations, found, name[2]):
                return REFUSED
            if count < len(pieces):
                pieces[elements, ELEMENT], pieces[count, PARENT] = count, stack[depth, 3] if depth > 0 else -1
            elements += 1
            if data[i] == SLASH:
                declarations, kind = before, EMPTY | kind & DECLARES
                i += 2
            else:
                depth += 1
                if depth > DEEPEST:
                    return REFUSED
                stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = first, last, before, count
                i += 1
        put_piece(pieces, count, began, kind)
        count += 1
        if depth == 0:
            put_piece(pieces, count, i, NOTHING | declares)
            if count < len(pieces):
                pieces[count, LAST] = elements
    return count if count > 0 and depth == 0 else REFUSED


@lean_kernel
def check_documents(data: Any, bounds: Any, stack: Any, declared: Any, found: Any, pieces: Any, ordinary: Any) -> None:
    """Sets `ordinary` for each document. A document is the bytes between two bounds."""
    for document in range(len(bounds) - 1):
        count = list_pieces(data, bounds[document], bounds[document + 1], stack, declared, found, pieces)
        ordinary[document] = count > 0
