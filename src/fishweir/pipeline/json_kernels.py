"""Compiled kernel that writes texts as JSON strings, in the way `json.dumps` does.

In: a column of texts. Out: a column of JSON: each text in quotes, with ASCII escapes; `null` for a missing text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from fishweir.jit import lean_kernel

GROWTH = 6
"""The maximum growth factor of a byte."""
_SHORT = np.zeros(128, np.uint8)
"""The letter of each character that has a short escape."""
_SHORT[[8, 9, 10, 12, 13, 34, 92]] = np.frombuffer(b'btnfr"\\', np.uint8)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


@lean_kernel
def _put_escape(code: int, into: Any, at: int) -> int:
    into[at], into[at + 1] = 92, 117
    for k in range(4):
        into[at + 2 + k] = _HEX[code >> (12 - 4 * k) & 15]
    return at + 6


@lean_kernel
def write_strings(data: Any, offsets: Any, there: Any, into: Any, ends: Any) -> None:
    """Writes each text between two offsets. Sets `ends` to the ends of the output."""
    at = 0
    for text in range(len(offsets) - 1):
        if not there[text]:
            into[at], into[at + 1], into[at + 2], into[at + 3] = 110, 117, 108, 108
            at += 4
            ends[text] = at
            continue
        into[at] = 34
        at += 1
        i, stop = offsets[text], offsets[text + 1]
        while i < stop:
            byte = int(data[i])
            if byte >= 32 and byte < 127 and byte != 34 and byte != 92:
                into[at] = byte
                at, i = at + 1, i + 1
            elif byte < 128:
                i += 1
                if _SHORT[byte]:
                    into[at], into[at + 1] = 92, _SHORT[byte]
                    at += 2
                else:
                    at = _put_escape(byte, into, at)
            elif byte < 0xE0:
                at = _put_escape((byte & 0x1F) << 6 | (int(data[i + 1]) & 0x3F), into, at)
                i += 2
            else:
                code = (int(data[i + 1]) & 0x3F) << 6 | (int(data[i + 2]) & 0x3F)
                if byte < 0xF0:
                    at = _put_escape((byte & 0x0F) << 12 | code, into, at)
                    i += 3
                else:
                    code = ((byte & 0x07) << 18 | code << 6 | (int(data[i + 3]) & 0x3F)) - 0x10000
                    at = _put_escape(0xD800 | code >> 10, into, at)
                    at = _put_escape(0xDC00 | (code & 0x3FF), into, at)
                    i += 4
        into[at] = 34
        at += 1
        ends[text] = at


def json_strings(texts: pa.StringArray) -> pa.StringArray:
    """Each text as JSON."""
    _, starts, held = texts.buffers()
    offsets = np.frombuffer(starts, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(held if held is not None else b"", np.uint8)
    for array in (offsets, data):
        array.setflags(write=False)  # the kernel needs only one type
    there = texts.is_valid().to_numpy(zero_copy_only=False)
    into = np.empty(GROWTH * int(offsets[-1] - offsets[0]) + 4 * len(texts), np.uint8)
    ends = np.zeros(len(texts) + 1, np.int32)
    write_strings(data, offsets, there, into, ends[1:])
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(into[: ends[-1]]))
