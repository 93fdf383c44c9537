"""Compiled kernels that write the characters of texts and values in the way libxml2 does."""

from __future__ import annotations

from typing import Any

from fishweir.evaluate.witnesses.automaton.scan_kernels import (
    AMP,
    APOSTROPHE,
    GREATER,
    LESS,
    NEWLINE,
    QUOTE,
    RETURN,
    SEMICOLON,
    SPACE,
    TAB,
    copy_plain,
    put_character,
    referred,
)
from fishweir.jit import inlined, leaf_kernel, lean_kernel


@inlined
def put(text: bytes, into: Any, at: int) -> int:
    for k in range(len(text)):
        into[at + k] = text[k]
    return at + len(text)


@inlined
def copy(data: Any, first: int, last: int, into: Any, at: int) -> int:
    for k in range(first, last):
        into[at + k - first] = data[k]
    return at + last - first


@lean_kernel
def _put_escaped(code: int, inside_value: bool, into: Any, at: int) -> int:
    """Writes a character as libxml2 does in text, or in the value of an attribute."""
    if code == LESS:
        return put(b"&lt;", into, at)
    if code == GREATER:
        return put(b"&gt;", into, at)
    if code == AMP:
        return put(b"&amp;", into, at)
    if code == RETURN:
        return put(b"&#13;", into, at)
    if inside_value:
        if code == QUOTE:
            return put(b"&quot;", into, at)
        if code == NEWLINE:
            return put(b"&#10;", into, at)
        if code == TAB:
            return put(b"&#9;", into, at)
    return put_character(code, into, at)


@leaf_kernel
def write_text(data: Any, i: int, stop: int, into: Any, at: int) -> tuple[int, int]:
    """Writes character data up to the next `<`. Returns the index of the `<` and the end of the output."""
    while True:
        plain = copy_plain(data, i, stop, into, at)
        i, at = i + plain, at + plain
        if i >= stop:
            break
        byte = data[i]
        if byte == LESS:
            break
        if byte == AMP:
            end = i + 2
            while data[end] != SEMICOLON:
                end += 1
            at = _put_escaped(referred(data, i + 1, end), False, into, at)
            i = end
        elif byte == GREATER:
            at = put(b"&gt;", into, at)
        elif byte == RETURN:
            if i + 1 >= stop or data[i + 1] != NEWLINE:
                into[at] = NEWLINE
                at += 1
        else:
            into[at] = byte
            at += 1
        i += 1
    return i, at


@inlined
def is_kept(data: Any, i: int) -> bool:
    """Whether a reference is written as it is: `&lt;`, `&gt;` or `&amp;`."""
    one, two = data[i + 1], data[i + 2]
    return (two == 116 and (one == 108 or one == 103)) or (one == 97 and two == 109)


@leaf_kernel
def write_section(data: Any, i: int, stop: int, into: Any, at: int) -> int:
    """Writes the content of a CDATA section as text. Returns the end of the output."""
    while True:
        plain = copy_plain(data, i, stop, into, at)
        i, at = i + plain, at + plain
        if i >= stop:
            break
        byte = data[i]
        if byte == LESS or byte == GREATER or byte == AMP:
            at = _put_escaped(byte, False, into, at)
        elif byte != RETURN:
            into[at] = byte
            at += 1
        elif data[i + 1] != NEWLINE:
            into[at] = NEWLINE
            at += 1
        i += 1
    return at


@lean_kernel
def write_value(data: Any, i: int, stop: int, into: Any, at: int) -> int:
    """Writes the value of an attribute, without quotes. White space becomes spaces. Returns the end of the output."""
    while i < stop:
        byte = data[i]
        if byte == AMP:
            end = i + 2
            while data[end] != SEMICOLON:
                end += 1
            at = _put_escaped(referred(data, i + 1, end), True, into, at)
            i = end
        elif byte == LESS or byte == GREATER or byte == QUOTE:
            at = _put_escaped(byte, True, into, at)
        elif byte == RETURN and data[i + 1] == NEWLINE:
            pass  # the newline becomes the space
        else:
            into[at] = SPACE if byte < SPACE else byte
            at += 1
        i += 1
    return at


@lean_kernel
def write_quoted(text: Any, size: int, into: Any, at: int) -> int:
    """Writes the first bytes of a text as `quoteattr` of Python does: in quotation marks, or in apostrophes if it
    contains quotation marks only. Returns the end of the output."""
    quotes = apostrophes = False
    for k in range(size):
        quotes |= text[k] == QUOTE
        apostrophes |= text[k] == APOSTROPHE
    mark = APOSTROPHE if quotes and not apostrophes else QUOTE
    into[at] = mark
    at += 1
    for k in range(size):
        byte = text[k]
        if byte == mark or byte == AMP or byte == LESS or byte == GREATER or byte < SPACE:
            at = _put_escaped(byte, True, into, at)
        else:
            into[at] = byte
            at += 1
    into[at] = mark
    return at + 1
