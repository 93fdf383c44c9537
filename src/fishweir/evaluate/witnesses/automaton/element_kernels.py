"""The pass over serialized documents, compiled: elements, attributes and text as arrays.

In: the bytes of documents as lxml writes them: well formed, names as they stand with prefixes, no DTD. Out: elements in
preorder with parent and end, attributes, and all character data of a document in one piece, so that the string value of
any element is a stretch of it. Names are numbers of a table that lives on (elements.py): a name is its local part with
the number of its namespace, whatever prefix stands for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fishweir.evaluate.jit import inlined, lean_kernel

ELEMENT, ATTRIBUTE, NAMESPACE = 0, 1, 2
"""What a row of the table of names is."""

NO_NAMESPACE, XML_NAMESPACE = 0, 1
"""Numbers that are taken from the beginning; the second is what the prefix `xml` always means."""

DONE, FULL, UNKNOWN = 0, 1, 2
"""How a pass ended: all documents are read, the table of names has to grow, or these are no serialized documents."""

_SPACE, _QUOTE, _AMP, _HASH, _SLASH, _COLON, _SEMICOLON = 32, 34, 38, 35, 47, 58, 59
_LESS, _EQUALS, _GREATER, _QUESTION, _BANG, _OPENING, _CLOSING, _DASH = 60, 61, 62, 63, 33, 91, 93, 45
_OFFSET, _PRIME, _GOLDEN = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15)


@lean_kernel
def intern(
    data: Any,
    first: int,
    last: int,
    kind: int,
    space: int,
    slots: Any,
    hashes: Any,
    names: Any,
    arena: Any,
    used: Any,
) -> int:
    """The number of a name, a new one at its first occurrence; -1 if the table is full."""
    hashed = (_OFFSET ^ np.uint64(kind)) * _PRIME
    hashed = (hashed ^ np.uint64(space)) * _PRIME
    for i in range(first, last):
        hashed = (hashed ^ np.uint64(data[i])) * _PRIME
    mask = len(slots) - 1
    slot = int((hashed * _GOLDEN) >> np.uint64(32)) & mask
    while slots[slot] >= 0:
        number = slots[slot]
        if hashes[number] == hashed and names[number, 0] == kind and names[number, 1] == space:
            start = names[number, 2]
            same = names[number, 3] - start == last - first
            i = first
            while same and i < last:
                same = arena[start + i - first] == data[i]
                i += 1
            if same:
                return int(number)
        slot = (slot + 1) & mask
    number, start = used[0], used[1]
    if number >= len(hashes) or start + last - first > len(arena):
        return -1
    for i in range(first, last):
        arena[start + i - first] = data[i]
    names[number, 0], names[number, 1], names[number, 2], names[number, 3] = kind, space, start, start + last - first
    hashes[number] = hashed
    slots[slot] = number
    used[0], used[1] = number + 1, start + last - first
    return int(number)


@lean_kernel
def place_names(slots: Any, hashes: Any, count: int) -> None:
    """Fills an empty table with names 1 to count."""
    mask = len(slots) - 1
    for number in range(1, count):
        slot = int((hashes[number] * _GOLDEN) >> np.uint64(32)) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number


@inlined
def _put_character(code: int, into: Any, at: int) -> int:
    """A character as UTF-8."""
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


@inlined
def _referred(data: Any, first: int, last: int) -> int:
    """The character that `&...;` stands for, by what is between; -1 for one that XML does not know by itself."""
    if data[first] == _HASH:
        code, hexadecimal = 0, data[first + 1] == 120
        for i in range(first + 2 if hexadecimal else first + 1, last):
            digit = int(data[i])
            digit = digit - 48 if digit < 58 else (digit & 0xDF) - 55
            code = code * (16 if hexadecimal else 10) + digit
        return code
    length, one, two = last - first, data[first], data[first + 1]
    if length == 2 and two == 116:
        return _LESS if one == 108 else _GREATER if one == 103 else -1
    if one == 97:
        return _AMP if length == 3 and two == 109 else 39 if length == 4 and two == 112 else -1
    return _QUOTE if length == 4 and one == 113 else -1


@lean_kernel
def take_text(data: Any, first: int, last: int, into: Any, at: int) -> int:
    """Character data without references; where it ends, or -1 for an unknown reference."""
    i = first
    while i < last:
        if data[i] != _AMP:
            into[at] = data[i]
            at, i = at + 1, i + 1
            continue
        end = i + 1
        while end < last and data[end] != _SEMICOLON:
            end += 1
        code = _referred(data, i + 1, end) if end < last and end > i + 2 else -1
        if code < 0:
            return -1
        at = _put_character(code, into, at)
        i = end + 1
    return at


@inlined
def _after(data: Any, i: int, stop: int, one: int, two: int) -> int:
    """The place after the next `one two >`; `stop` where there is none."""
    while i < stop and not (data[i] == _GREATER and data[i - 1] == two and data[i - 2] == one):
        i += 1
    return min(i + 1, stop)


@inlined
def _is_declaration(data: Any, first: int, last: int) -> bool:
    """`xmlns` or `xmlns:...`."""
    return (
        last - first >= 5
        and data[first] == 120
        and data[first + 1] == 109
        and data[first + 2] == 108
        and data[first + 3] == 110
        and data[first + 4] == 115
        and (last - first == 5 or data[first + 5] == _COLON)
    )


@inlined
def _space_of(data: Any, first: int, last: int, declared: Any, context: int) -> int:
    """The number of the namespace of a prefix, by the nearest of the declarations in force."""
    while context >= 0:
        start, end = declared[context, 1], declared[context, 2]
        same = end - start == last - first
        for i in range(end - start if same else 0):
            same &= data[start + i] == data[first + i]
        if same:
            return int(declared[context, 3])
        context = declared[context, 0]
    return XML_NAMESPACE if last > first else NO_NAMESPACE


@lean_kernel
def _name(
    data: Any,
    first: int,
    last: int,
    kind: int,
    declared: Any,
    context: int,
    slots: Any,
    hashes: Any,
    names: Any,
    arena: Any,
    used: Any,
) -> int:
    """The number of a name with the namespace that its prefix has here; attributes without one are in none."""
    colon = first
    while colon < last and data[colon] != _COLON:
        colon += 1
    if colon < last:
        space = _space_of(data, first, colon, declared, context)
        return intern(data, colon + 1, last, kind, space, slots, hashes, names, arena, used)
    space = _space_of(data, first, first, declared, context) if kind == ELEMENT else NO_NAMESPACE
    return intern(data, first, last, kind, space, slots, hashes, names, arena, used)


@lean_kernel
def _read_tag(
    data: Any,
    i: int,
    above: int,
    now: Any,
    slots: Any,
    hashes: Any,
    names: Any,
    arena: Any,
    used: Any,
    elements: Any,
    contexts: Any,
    declared: Any,
    attributes: Any,
    values: Any,
) -> int:
    """Reads a start tag from its name on; the place where it ends, or what is wrong as -FULL, -UNKNOWN."""
    element, attribute, value = now[0], now[1], now[3]
    name, context = i, contexts[above] if above >= 0 else -1
    while data[i] != _SPACE and data[i] != _GREATER and data[i] != _SLASH:
        i += 1
    name_end = i
    while data[i] == _SPACE:
        key = i + 1
        while data[i] != _EQUALS:
            i += 1
        key_end, quote, begin = i, data[i + 1], i + 2
        i = begin
        while data[i] != quote:
            i += 1
        i += 1
        if _is_declaration(data, key, key_end):
            space = NO_NAMESPACE
            if begin < i - 1:
                space = intern(data, begin, i - 1, NAMESPACE, 0, slots, hashes, names, arena, used)
                if space < 0:
                    return -FULL
            declared[now[4], 0], declared[now[4], 1] = context, min(key + 6, key_end)
            declared[now[4], 2], declared[now[4], 3] = key_end, space
            context, now[4] = now[4], now[4] + 1
            continue
        attributes[attribute, 0], attributes[attribute, 1], attributes[attribute, 2] = key, value, key_end
        value = take_text(data, begin, i - 1, values, value)
        if value < 0:
            return -UNKNOWN
        attribute += 1
    contexts[element] = context
    elements[element, 0] = _name(data, name, name_end, ELEMENT, declared, context, slots, hashes, names, arena, used)
    if elements[element, 0] < 0:
        return -FULL
    elements[element, 1], elements[element, 3], elements[element, 4] = above, now[1], now[2]
    for k in range(now[1], attribute):  # only now are all declarations known
        attributes[k, 0] = _name(
            data, attributes[k, 0], attributes[k, 2], ATTRIBUTE, declared, context, slots, hashes, names, arena, used
        )
        if attributes[k, 0] < 0:
            return -FULL
        attributes[k, 2] = attributes[k + 1, 1] if k + 1 < attribute else value
    now[0], now[1], now[3] = element + 1, attribute, value
    return i


@lean_kernel
def read_documents(
    data: Any,
    starts: Any,
    slots: Any,
    hashes: Any,
    names: Any,
    arena: Any,
    used: Any,
    elements: Any,
    contexts: Any,
    declared: Any,
    attributes: Any,
    texts: Any,
    values: Any,
    firsts: Any,
    totals: Any,
) -> int:
    """Reads documents from number totals[0] on. A row of `elements` is name, parent, end, first attribute, and where
    its text begins and ends in `texts`; a row of `attributes` is name and where its value begins and ends in `values`.
    A row of `declared` is the declaration in force before it, where its prefix is, the namespace; `contexts` are those
    in force in each element. `totals` are the documents, elements, attributes, bytes of text, of values, and
    declarations so far."""
    now = totals[6:]
    for document in range(totals[0], len(starts) - 1):
        for k in range(5):
            now[k] = totals[1 + k]
        firsts[document] = now[0]
        i, stop, open_ = starts[document], starts[document + 1], -1
        while i < stop:
            if data[i] != _LESS:
                end = i
                while end < stop and data[end] != _LESS:
                    end += 1
                text = take_text(data, i, end, texts, now[2])
                if text < 0:
                    return UNKNOWN
                now[2], i = text, end
            elif data[i + 1] == _SLASH:
                if open_ < 0:
                    return UNKNOWN
                elements[open_, 2], elements[open_, 5] = now[0], now[2]
                open_ = elements[open_, 1]
                while data[i] != _GREATER:
                    i += 1
                i += 1
            elif data[i + 1] == _QUESTION:
                while data[i] != _GREATER or data[i - 1] != _QUESTION:
                    i += 1
                i += 1
            elif data[i + 1] == _BANG and data[i + 2] == _DASH:
                i = _after(data, i + 6, stop, _DASH, _DASH)
            elif data[i + 1] == _BANG and data[i + 2] == _OPENING:
                end = _after(data, i + 11, stop, _CLOSING, _CLOSING)
                for k in range(i + 9, end - 3):
                    texts[now[2]] = data[k]
                    now[2] += 1
                i = end
            elif data[i + 1] == _BANG:
                return UNKNOWN
            else:
                element = now[0]
                i = _read_tag(
                    data,
                    i + 1,
                    open_,
                    now,
                    slots,
                    hashes,
                    names,
                    arena,
                    used,
                    elements,
                    contexts,
                    declared,
                    attributes,
                    values,
                )
                if i < 0:
                    return -i
                if data[i] == _SLASH:
                    elements[element, 2], elements[element, 5] = now[0], now[2]
                    i += 2
                else:
                    open_ = element
                    i += 1
        if open_ >= 0 or now[0] == firsts[document]:
            return UNKNOWN
        totals[0] = document + 1
        for k in range(5):
            totals[1 + k] = now[k]
    firsts[len(starts) - 1] = totals[1]
    return DONE
