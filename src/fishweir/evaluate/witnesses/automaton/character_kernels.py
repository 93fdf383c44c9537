"""Compiled checks of the characters, texts, values and names of XML, used by check_kernels.py.

Each function takes the index where a construct begins. It returns the index after the construct, or REFUSED if it is
not certain that XML allows it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fishweir.evaluate.byte_blocks import BLOCK, differences, either, is_between, is_byte, is_not, testing
from fishweir.evaluate.witnesses.automaton.escape_kernels import is_kept
from fishweir.evaluate.witnesses.automaton.piece_kernels import COPIED, PLAIN
from fishweir.evaluate.witnesses.automaton.scan_kernels import (
    AMP,
    APOSTROPHE,
    CLOSING,
    COLON,
    GREATER,
    LESS,
    NEWLINE,
    ONES,
    QUOTE,
    RETURN,
    SEMICOLON,
    TAB,
    TOPS,
    is_space,
    referred,
    zero_bytes,
)
from fishweir.jit import inlined, leaf_kernel, lean_kernel, trailing_zeros, word_at

LONGEST_NAME = 1000
REFUSED = -1

STARTS, FOLLOWS, _PLAIN, URI = 1, 2, 4, 8
"""Properties of a byte: may start a name, may continue a name, needs no check in text and values, may be in a URI."""


def _kinds() -> Any:
    kinds = np.zeros(256, np.uint8)
    for byte in range(128):
        one = chr(byte)
        kinds[byte] |= STARTS if one.isalpha() or one == "_" else 0
        kinds[byte] |= FOLLOWS if one.isalnum() or one in "_.-" else 0
        kinds[byte] |= _PLAIN if (byte >= 32 or one in "\t\n\r") and one not in "<&]\"'" else 0
        kinds[byte] |= URI if one.isalnum() or one in "._~/-+=?" else 0
    return kinds


KINDS = _kinds()
_CONTROLS = ONES * np.uint64(32)
_in_text = testing(
    either(
        is_not(either(is_between(32, 127), is_byte(NEWLINE), is_byte(TAB))),
        *(is_byte(mark) for mark in (LESS, AMP, GREATER, CLOSING)),
    )
)
_in_value = testing(either(is_not(is_between(32, 127)), *(is_byte(mark) for mark in (LESS, AMP, QUOTE, APOSTROPHE))))
_after_names = testing(
    is_not(
        either(
            is_between(ord("a"), ord("z"), ignored=32), is_between(ord("0"), ord("9")),
            *(is_byte(ord(mark)) for mark in "_.-"),
        )
    )
)  # fmt: skip


@inlined
def _until(test: Any, data: Any, i: int, stop: int) -> int:
    """The index of the next byte for which a test holds, or an earlier index near the end of the data."""
    while i < stop and i + BLOCK <= len(data):
        found = test(data, i)
        if found:
            return i + trailing_zeros(found)
        i += BLOCK
    return i


@lean_kernel
def after_character(data: Any, i: int, stop: int) -> int:
    """The index after a non-ASCII character that XML allows."""
    first = data[i]
    size = 2 if first >> 5 == 6 else 3 if first >> 4 == 14 else 4 if first >> 3 == 30 else 0
    if size == 0 or i + size > stop:
        return REFUSED
    code = first & (0x7F >> size)
    for k in range(1, size):
        if data[i + k] >> 6 != 2:
            return REFUSED
        code = code << 6 | data[i + k] & 0x3F
    shortest = 0x80 if size == 2 else 0x800 if size == 3 else 0x10000
    if code < shortest or not _is_character(code):
        return REFUSED
    return i + size


@inlined
def _is_character(code: int) -> bool:
    return (
        (code >= 0x10000 and code <= 0x10FFFF)
        or (code >= 0x20 and code < 0xD800)
        or (code >= 0xE000 and code < 0xFFFE)
        or code == 9
        or code == 10
        or code == 13
    )


@lean_kernel
def after_reference(data: Any, i: int, stop: int) -> int:
    end = i + 1
    while end < stop and end < i + 12 and data[end] != SEMICOLON:
        end += 1
    if end >= stop or data[end] != SEMICOLON:
        return REFUSED
    code = referred(data, i + 1, end)
    return end + 1 if code >= 0 and _is_character(code) else REFUSED


@leaf_kernel
def after_text(data: Any, i: int, stop: int, name: Any) -> int:
    """The index of the `<` that ends a text. Sets name[3] to what markup and values copy of it (piece_kernels.py)."""
    copied = COPIED | PLAIN
    while i < stop:
        i = _until(_in_text, data, i, stop)
        if i >= stop:
            return REFUSED
        byte = data[i]
        if byte == LESS:
            name[3] = copied
            return i
        if KINDS[byte] & _PLAIN or byte == QUOTE or byte == APOSTROPHE:
            if byte == RETURN:
                copied = 0
            elif byte == GREATER:
                copied &= PLAIN
            i += 1
        elif byte == AMP:
            first, i = i, after_reference(data, i, stop)
            copied &= COPIED if i >= 0 and is_kept(data, first) else 0
        elif byte == CLOSING:
            if i + 2 < stop and data[i + 1] == CLOSING and data[i + 2] == GREATER:
                return REFUSED
            i += 1
        elif byte >= 0x80:
            i = after_character(data, i, stop)
        else:
            return REFUSED
        if i < 0:
            return REFUSED
    return REFUSED


@leaf_kernel
def after_value(data: Any, i: int, stop: int, quote: int) -> int:
    """The index of the quote that ends a value."""
    while i < stop:
        i = _until(_in_value, data, i, stop)
        if i >= stop:
            return REFUSED
        byte = data[i]
        if byte == quote:
            return i
        if KINDS[byte] & _PLAIN or byte == QUOTE or byte == APOSTROPHE or byte == CLOSING:
            i += 1
        elif byte == AMP:
            i = after_reference(data, i, stop)
        elif byte >= 0x80:
            i = after_character(data, i, stop)
        else:
            return REFUSED
        if i < 0:
            return REFUSED
    return REFUSED


@leaf_kernel
def after_section(data: Any, i: int, stop: int, one: int, two: int, comment: bool) -> int:
    """The index after `one two >`. Checks all characters before it. A comment may have two dashes only at its end."""
    marks = ONES * np.uint64(one)
    while i + 2 < stop:
        if i + 8 <= stop:
            word = word_at(data, i)
            found = ((word - _CONTROLS) & ~word & TOPS) | (word & TOPS) | zero_bytes(word ^ marks)
            if not found:
                i += 8
                continue
            i += trailing_zeros(found) >> 3
            if i + 2 >= stop:
                return REFUSED
        byte = data[i]
        if byte == one and data[i + 1] == two:
            if data[i + 2] == GREATER:
                return i + 3
            if comment:
                return REFUSED
        if byte >= 0x80:
            i = after_character(data, i, stop)
            if i < 0:
                return REFUSED
        elif byte < 32 and not is_space(byte):
            return REFUSED
        else:
            i += 1
    return REFUSED


@inlined
def after_part(data: Any, i: int, stop: int) -> int:
    """The index after a name without a colon."""
    if i >= stop or not KINDS[data[i]] & STARTS:
        return REFUSED
    first, i = i, min(_until(_after_names, data, i, stop), stop)
    while i < stop and KINDS[data[i]] & FOLLOWS:
        i += 1
    return i if i - first <= LONGEST_NAME else REFUSED


@leaf_kernel
def after_name(data: Any, i: int, stop: int, name: Any) -> int:
    """The index after a name. Sets name[0] to the index of its colon, or of its start if it has none."""
    name[0] = i
    i = after_part(data, i, stop)
    if i >= 0 and i < stop and data[i] == COLON:
        name[0] = i
        i = after_part(data, i + 1, stop)
    return i


@leaf_kernel
def is_same(data: Any, one: int, one_end: int, other: int, other_end: int) -> bool:
    size = one_end - one
    if size != other_end - other:
        return False
    if size <= BLOCK and max(one, other) + BLOCK <= len(data):
        return differences(data, one, other) & ((np.uint64(1) << np.uint64(size)) - np.uint64(1)) == 0
    for k in range(one_end - one):
        if data[one + k] != data[other + k]:
            return False
    return True
