"""Compiled kernels for scanning the bytes of XML, shared by the check and the walk.

All functions expect well-formed bytes. The check (check_kernels.py) uses only those that never read beyond `stop`.
Searches for one of a few marks process eight bytes at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fishweir.evaluate.byte_blocks import BLOCK, copy_block, either, is_byte, testing
from fishweir.jit import inlined, leaf_kernel, lean_kernel, trailing_zeros, word_at

TAB, NEWLINE, RETURN, SPACE = 9, 10, 13, 32
BANG, QUOTE, HASH, AMP, APOSTROPHE, DASH, SLASH = 33, 34, 35, 38, 39, 45, 47
COLON, SEMICOLON, LESS, EQUALS, GREATER, QUESTION, OPENING, CLOSING = 58, 59, 60, 61, 62, 63, 91, 93

ONES, TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_LESSES, _GREATERS = ONES * np.uint64(LESS), ONES * np.uint64(GREATER)
_QUOTES, _APOSTROPHES = ONES * np.uint64(QUOTE), ONES * np.uint64(APOSTROPHE)
_written_differently = testing(either(*(is_byte(mark) for mark in (LESS, GREATER, AMP, RETURN))))


@inlined
def zero_bytes(word: Any) -> Any:
    """Sets the top bit of each zero byte. Bits after the first zero byte may be wrong."""
    return (word - ONES) & ~word & TOPS


@inlined
def _next(data: Any, i: int, stop: int, mark: int, marks: Any) -> int:
    """The index of the next mark, or `stop`. `marks` is a word of eight of them."""
    while i + 8 <= stop and not zero_bytes(word_at(data, i) ^ marks):
        i += 8
    if i + 8 <= stop:
        i += trailing_zeros(zero_bytes(word_at(data, i) ^ marks)) >> 3
    while i < stop and data[i] != mark:
        i += 1
    return i


@lean_kernel
def next_less(data: Any, i: int, stop: int) -> int:
    """The index of the next `<`, or `stop`."""
    return _next(data, i, stop, LESS, _LESSES)


@lean_kernel
def tag_end(data: Any, i: int, stop: int) -> int:
    """The index of the `>` that ends a tag, ignoring those inside values."""
    while i < stop:
        while i + 8 <= stop:
            word = word_at(data, i)
            found = (
                zero_bytes(word ^ _GREATERS) | zero_bytes(word ^ _QUOTES) | zero_bytes(word ^ _APOSTROPHES)
            )  # each is correct about its own first byte, and the lowest bit set is one of these
            if found:
                i += trailing_zeros(found) >> 3
                break
            i += 8
        mark = data[i]
        if mark == GREATER:
            return i
        i += 1
        if mark == QUOTE or mark == APOSTROPHE:
            while i < stop and data[i] != mark:
                i += 1
            i += 1
    return stop


@leaf_kernel
def copy_bytes(data: Any, first: int, last: int, into: Any, at: int) -> int:
    """Copies bytes. Returns the end of the copy. What is in `into` after it is undefined."""
    end = at + last - first
    while first + BLOCK <= len(data) and at + BLOCK <= len(into) and first < last:
        copy_block(data, first, into, at)
        first, at = first + BLOCK, at + BLOCK
    while first < last:
        into[at] = data[first]
        first, at = first + 1, at + 1
    return end


@leaf_kernel
def copy_plain(data: Any, i: int, stop: int, into: Any, at: int) -> int:
    """Copies bytes up to the next `<`, `>`, `&` or carriage return, or fewer near the end of the data. Returns their
    number. What is in `into` after them is undefined."""
    first = i
    while i < stop and i + BLOCK <= len(data) and at + BLOCK <= len(into):
        copy_block(data, i, into, at)
        found = _written_differently(data, i)
        if found:
            return min(i + trailing_zeros(found), stop) - first
        i, at = i + BLOCK, at + BLOCK
    return min(i, stop) - first


@lean_kernel
def next_greater(data: Any, i: int, stop: int) -> int:
    """The index of the next `>`, or `stop`."""
    return _next(data, i, stop, GREATER, _GREATERS)


@lean_kernel
def after_other(data: Any, i: int, stop: int) -> int:
    """The index after a comment, a CDATA section or a processing instruction that begins here."""
    if data[i + 1] == QUESTION:
        mark, twice, i = QUESTION, False, i + 3
    elif data[i + 2] == DASH:
        mark, twice, i = DASH, True, i + 6
    else:
        mark, twice, i = CLOSING, True, i + 11
    while True:
        i = next_greater(data, i, stop)
        if i >= stop or (data[i - 1] == mark and (not twice or data[i - 2] == mark)):
            return min(i + 1, stop)
        i += 1


@inlined
def _is_name(data: Any, i: int, first: int, last: int) -> bool:
    """Whether a tag has this name, from its first character on."""
    same = data[i] == data[first]
    k = 1
    while same and k < last - first:
        same = data[i + k] == data[first + k]
        k += 1
    after_it = data[i + last - first] if same else 0
    return same and (after_it == GREATER or after_it == SLASH or after_it <= SPACE)


@lean_kernel
def skip_subtree(data: Any, i: int, stop: int, first: int, last: int) -> tuple[int, int]:
    """Skips from after a start tag with the name between `first` and `last` to after its end tag. Returns that index
    and the number of elements in between. Only tags with that name can end the subtree, and no value contains a `<`, so
    other tags are only counted."""
    depth, count = 1, 0
    while True:
        i = next_less(data, i, stop)
        mark = data[i + 1]
        if mark == SLASH:
            i += 2
            if _is_name(data, i, first, last):
                depth -= 1
                if depth == 0:
                    while data[i] != GREATER:
                        i += 1
                    return i + 1, count
        elif mark == BANG or mark == QUESTION:
            i = after_other(data, i, stop)
        else:
            count += 1
            i += 1
            if _is_name(data, i, first, last):
                i = tag_end(data, i, stop)
                depth += data[i - 1] != SLASH


@inlined
def is_space(byte: int) -> bool:
    return byte == SPACE or byte == NEWLINE or byte == TAB or byte == RETURN


@inlined
def put_character(code: int, into: Any, at: int) -> int:
    """Writes a character as UTF-8. Returns the end of the output."""
    if code < 0x80:
        into[at] = code
        return at + 1
    if code < 0x800:
        into[at], into[at + 1] = 0xC0 | code >> 6, 0x80 | code & 0x3F
        return at + 2
    if code < 0x10000:
        into[at], into[at + 1], into[at + 2] = 0xE0 | code >> 12, 0x80 | code >> 6 & 0x3F, 0x80 | code & 0x3F
        return at + 3
    into[at], into[at + 1] = 0xF0 | code >> 18, 0x80 | code >> 12 & 0x3F
    into[at + 2], into[at + 3] = 0x80 | code >> 6 & 0x3F, 0x80 | code & 0x3F
    return at + 4


@lean_kernel
def referred(data: Any, first: int, last: int) -> int:
    """The character that `&...;` denotes, given the text in between; -1 if it is not predefined in XML."""
    length = last - first
    if length < 2:
        return -1
    one, two = data[first], data[first + 1]
    if one == HASH:
        base = 16 if two == 120 else 10
        begin = first + 2 if two == 120 else first + 1
        code = 0
        for i in range(begin, last):
            byte = int(data[i])
            digit = byte - 48 if byte < 58 else (byte | 32) - 87 if byte > 64 else -1
            if digit < 0 or digit >= base or code > 0x10FFFF:
                return -1
            code = code * base + digit
        return code if begin < last else -1
    if length == 2:
        return -1 if two != 116 else LESS if one == 108 else GREATER if one == 103 else -1
    if length == 3:
        return AMP if one == 97 and two == 109 and data[first + 2] == 112 else -1
    if length == 4 and two == 117 and data[first + 2] == 111 and data[first + 3] == 116:
        return QUOTE if one == 113 else -1
    if length == 4 and two == 112 and data[first + 2] == 111 and data[first + 3] == 115:
        return APOSTROPHE if one == 97 else -1
    return -1


@leaf_kernel
def take_text(data: Any, i: int, stop: int, into: Any, at: int) -> tuple[int, int]:
    """Copies character data up to the next `<`. Returns the index of the `<` and the end of the copy. References are
    resolved, and a line end becomes one newline."""
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
            at = put_character(referred(data, i + 1, end), into, at)
            i = end
        elif byte == RETURN:
            if i + 1 >= stop or data[i + 1] != NEWLINE:
                into[at] = NEWLINE
                at += 1
        else:
            into[at] = byte
            at += 1
        i += 1
    return i, at


@lean_kernel
def take_verbatim(data: Any, i: int, stop: int, into: Any, at: int) -> int:
    """Copies the content of a CDATA section. Returns the end of the copy."""
    while True:
        plain = copy_plain(data, i, stop, into, at)
        i, at = i + plain, at + plain
        if i >= stop:
            break
        if data[i] != RETURN:
            into[at] = data[i]
            at += 1
        elif data[i + 1] != NEWLINE:
            into[at] = NEWLINE
            at += 1
        i += 1
    return at


@lean_kernel
def take_value(data: Any, i: int, stop: int, into: Any, at: int) -> int:
    """Copies the value of an attribute, with white space normalized as in XML. Returns the end of the copy."""
    while i < stop:
        byte = data[i]
        if byte == AMP:
            end = i + 2
            while data[end] != SEMICOLON:
                end += 1
            at = put_character(referred(data, i + 1, end), into, at)
            i = end
        elif byte == RETURN and data[i + 1] == NEWLINE:
            pass  # the newline becomes the space
        else:
            into[at] = SPACE if byte < SPACE else byte
            at += 1
        i += 1
    return at
