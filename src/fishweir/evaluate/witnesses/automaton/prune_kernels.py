"""Compiled kernel that prunes a document to some paths.

In: the bytes of a well-formed document, and a tree of steps. Out: the bytes without the subtrees that no step enters.
Tags on the way to retained nodes stay unchanged, with their namespaces. A subtree that cannot contain anything needed
is skipped without reading its tags. A subtree below a descendant step may contain something needed; it is written first
and removed again if it does not.
"""

from __future__ import annotations

from typing import Any

from fishweir.evaluate.witnesses.automaton.scan_kernels import (
    BANG,
    COLON,
    DASH,
    GREATER,
    QUESTION,
    SLASH,
    SPACE,
    after_other,
    next_less,
    skip_subtree,
    tag_end,
)
from fishweir.jit import inlined, lean_kernel

ABOVE, DEEP, FLAGS, NAME, END, STEP = range(6)
"""Columns of a step: the bit of the step above, whether it is a descendant step, what it keeps, and the range of its
name's bytes."""
KEPT, WHOLE = 1, 2
"""Flags of a step: the element itself is needed; its whole content is needed too."""
MATCHED, ABOVE_ALL, OUT, NUMBER, NEEDED, LEVEL = range(6)
"""Columns of a stack level: the steps that ended at the element, those that ended there or above, the bytes and
elements written before it, and whether it stays."""
NOT_POSSIBLE = -1
"""The document has a DTD or is too deep."""


@inlined
def _is_named(data: Any, first: int, last: int, names: Any, begin: int, end: int) -> bool:
    same = last - first == end - begin
    k = 0
    while same and k < last - first:
        same = data[first + k] == names[begin + k]
        k += 1
    return same


@inlined
def _copied(data: Any, first: int, last: int, into: Any, out: int) -> int:
    for k in range(first, last):
        into[out + k - first] = data[k]
    return out + last - first


@lean_kernel
def prune(data: Any, steps: Any, names: Any, start: int, wanted: Any, stack: Any, into: Any) -> int:
    """Writes the pruned document and returns its length in bytes. `start` has the steps that ended above the document
    element. `wanted` are ascending numbers of retained elements, which are replaced by their numbers in the pruned
    document."""
    stop, i, copied, out, depth, number, written, asked = len(data), 0, 0, 0, 0, 0, 0, 0
    below = 0
    for k in range(len(steps)):
        if steps[k, DEEP]:
            below |= steps[k, ABOVE]
    stack[0, MATCHED], stack[0, ABOVE_ALL], stack[0, NEEDED] = start, start, 1
    while True:
        i = next_less(data, i, stop)
        if i >= stop:
            break
        mark = data[i + 1]
        if mark == SLASH:
            end = tag_end(data, i + 2, stop) + 1
            if stack[depth, NEEDED]:
                stack[depth - 1, NEEDED] = 1
            else:
                out, written, copied = stack[depth, OUT], stack[depth, NUMBER], end
            depth, i = depth - 1, end
            continue
        if mark == QUESTION or mark == BANG:
            if depth == 0 and mark == BANG and data[i + 2] != DASH:
                return NOT_POSSIBLE
            i = after_other(data, i, stop)
            continue
        if depth + 1 >= len(stack):
            return NOT_POSSIBLE
        first = last = i + 1
        local = first
        while data[last] > GREATER or not (data[last] == GREATER or data[last] == SLASH or data[last] <= SPACE):
            if data[last] == COLON:
                local = last + 1
            last += 1
        above, any_above = stack[depth, MATCHED], stack[depth, ABOVE_ALL]
        matched, flags = 0, 0
        for k in range(len(steps)):
            if steps[k, ABOVE] & (any_above if steps[k, DEEP] else above):
                if steps[k, NAME] == steps[k, END] or _is_named(
                    data, local, last, names, steps[k, NAME], steps[k, END]
                ):
                    matched |= 2 << k
                    flags |= steps[k, FLAGS]
        end = tag_end(data, last, stop)
        empty = data[end - 1] == SLASH
        if flags & WHOLE or (matched == 0 and depth > 0 and not any_above & below):
            place, inner = end + 1, 0
            if not empty:
                place, inner = skip_subtree(data, end + 1, stop, first, last)
            if flags & WHOLE:
                while asked < len(wanted) and wanted[asked] <= number + inner:
                    wanted[asked] += written - number
                    asked += 1
                stack[depth, NEEDED] = 1
                written += 1 + inner
            else:
                out = _copied(data, copied, i, into, out)
                copied = place
            number, i = number + 1 + inner, place
            continue
        if asked < len(wanted) and wanted[asked] == number:
            wanted[asked] = written
            asked += 1
        out = _copied(data, copied, i, into, out)
        copied = i
        if empty:
            if flags & KEPT or depth == 0:
                stack[depth, NEEDED] = 1
                written += 1
            else:
                copied = end + 1
        else:
            depth += 1
            stack[depth, MATCHED], stack[depth, ABOVE_ALL] = matched, any_above | matched
            stack[depth, OUT], stack[depth, NUMBER] = out, written
            stack[depth, NEEDED] = depth == 1 or flags & KEPT
            written += 1
        number, i = number + 1, end + 1
    return _copied(data, copied, stop, into, out)
