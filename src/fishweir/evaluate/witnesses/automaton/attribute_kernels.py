"""Compiled checks of the attributes and namespaces of a start tag, used by check_kernels.py."""

from __future__ import annotations

from typing import Any

from fishweir.evaluate.witnesses.automaton.character_kernels import (
    FOLLOWS,
    KINDS,
    REFUSED,
    STARTS,
    URI,
    after_name,
    after_value,
    is_same,
)
from fishweir.evaluate.witnesses.automaton.name_kernels import is_declaration
from fishweir.evaluate.witnesses.automaton.scan_kernels import (
    APOSTROPHE,
    COLON,
    EQUALS,
    GREATER,
    HASH,
    QUOTE,
    SLASH,
    is_space,
)
from fishweir.jit import inlined, leaf_kernel, lean_kernel

MOST_ATTRIBUTES, MOST_DECLARATIONS = 64, 250


@inlined
def is_xml(data: Any, first: int, last: int) -> bool:
    return last - first == 3 and data[first] == 120 and data[first + 1] == 109 and data[first + 2] == 108


@lean_kernel
def is_declared(data: Any, first: int, last: int, declared: Any, count: int) -> bool:
    while count > 0:
        count -= 1
        if is_same(data, first, last, declared[count, 0], declared[count, 1]):
            return True
    return False


@lean_kernel
def _is_plain_uri(data: Any, first: int, last: int) -> bool:
    """Whether the bytes are certainly a URI: `scheme:rest`, `http://host/rest#rest`, or a name."""
    i = first
    if i >= last or not KINDS[data[i]] & STARTS or data[i] == 95:
        return False
    while i < last and (KINDS[data[i]] & FOLLOWS) and data[i] != 95:
        i += 1
    if i < last and data[i] == COLON:
        i += 1
        if i + 1 < last and data[i] == SLASH and data[i + 1] == SLASH:
            i += 2
            while i < last and (KINDS[data[i]] & FOLLOWS):
                i += 1
            if i < last and data[i] != SLASH and data[i] != HASH:
                return False
        else:  # as in urn:a:b
            while i < last and (data[i] == COLON or (KINDS[data[i]] & FOLLOWS)):
                i += 1
    elif i < last:
        return False
    while i < last and KINDS[data[i]] & URI:
        i += 1
    if i < last and data[i] == HASH:
        i += 1
        while i < last and KINDS[data[i]] & URI:
            i += 1
    if last - first >= 24 and data[first + 7] == 119 and data[first + 11] == 119:
        return i == last and not _is_reserved(data, first, last)
    return i == last


@lean_kernel
def _is_reserved(data: Any, first: int, last: int) -> bool:
    """Whether the URI is, or resembles, http://www.w3.org/XML/1998/namespace or http://www.w3.org/2000/xmlns/."""
    xml = last - first == 36 and data[first + 18] == 88 and data[first + 19] == 77
    return xml or (last - first == 29 and data[last - 1] == SLASH and data[last - 6] == 120)


@leaf_kernel
def after_attributes(data: Any, i: int, stop: int, declared: Any, declarations: int, found: Any, name: Any) -> int:
    """The index of the `>` or `/>` that ends a start tag, starting after its name. Sets name[1] to the number of
    declarations in force and name[2] to the number of attributes. Prefixes are checked once all declarations are
    known."""
    count = 0
    while True:
        spaced = i
        while i < stop and is_space(data[i]):
            i += 1
        if i + 1 >= stop:
            return REFUSED
        if data[i] == GREATER or data[i] == SLASH:
            name[1], name[2] = declarations, count
            return i if data[i] == GREATER or data[i + 1] == GREATER else REFUSED
        key = i
        i = after_name(data, i, stop, name)
        if spaced == key or i < 0 or count >= MOST_ATTRIBUTES:
            return REFUSED
        key_end, colon = i, name[0]
        while i < stop and is_space(data[i]):
            i += 1
        if i >= stop or data[i] != EQUALS:
            return REFUSED
        i += 1
        while i < stop and is_space(data[i]):
            i += 1
        if i >= stop or (data[i] != QUOTE and data[i] != APOSTROPHE):
            return REFUSED
        begin = i + 1
        i = after_value(data, begin, stop, data[i])
        if i < 0:
            return REFUSED
        if is_declaration(data, key, key_end):
            prefix = min(key + 6, key_end)
            if declarations >= MOST_DECLARATIONS or is_xml(data, prefix, key_end):
                return REFUSED
            if begin == i:
                if prefix < key_end:
                    return REFUSED
            elif not _is_plain_uri(data, begin, i):
                return REFUSED
            if is_declaration(data, prefix, key_end):
                return REFUSED
            declared[declarations, 0], declared[declarations, 1] = prefix, key_end
            declarations += 1
            colon = key
        found[count, 0], found[count, 1], found[count, 2] = key, key_end, colon
        for other in range(count):
            if is_same(data, key, key_end, found[other, 0], found[other, 1]):
                return REFUSED
        count += 1
        i += 1


@leaf_kernel
def prefixes_hold(data: Any, declared: Any, declarations: int, found: Any, count: int) -> bool:
    """Whether the prefixes of all attributes are declared, and certainly no two attributes have the same name by
    different prefixes."""
    for k in range(count):
        key, key_end, colon = found[k, 0], found[k, 1], found[k, 2]
        if colon == key:
            continue
        if is_xml(data, key, colon):
            if key_end - colon == 3:  # xml:id, to which libxml2 applies further checks
                return False
        elif not is_declared(data, key, colon, declared, declarations):
            return False
        for other in range(k):
            if found[other, 2] != found[other, 0]:
                if is_same(data, colon, key_end, found[other, 2], found[other, 1]):
                    return False
    return True
