"""The rows of text files: finds the ends of rows, and the rows of a block with an invalid row."""

from __future__ import annotations

import re

BLOCK = 4 * 1024 * 1024
MAX_ROW = 64 * 1024 * 1024

_FIELD = rb'(?:"[^"]*+(?:""[^"]*+)*+"?[^,\n]*+|[^,\n]*+)'
CSV_ROW = re.compile(_FIELD + rb"(?:," + _FIELD + rb")*+\n?")
"""One row of CSV: as in Arrow, quotes have a meaning only at the start of a field."""

BLANK_LINE = re.compile(rb"(?m)^[ \t\r]*\n")
OTHER_LINE = re.compile(rb"(?m)^[ \t\r]*[^ \t\r\n{]")
"""A line of JSON that does not start an object."""


def last_break(data: bytes, quoted: bool) -> int:
    """The end of the last complete row, or 0; an oversized row is split."""
    cut = data.rfind(b"\n") + 1
    whole = cut
    if quoted and data.count(b'"', 0, cut) % 2:
        starts = [found.start() for found in CSV_ROW.finditer(data) if found.group()]
        whole = starts[-1]
    return whole or (0 if len(data) < MAX_ROW else cut or len(data))


def csv_rows(block: bytes) -> list[tuple[int, bytes]]:
    """The rows of a CSV block that are not blank: line within the block, text without its line break."""
    if b'"' not in block:
        lines = enumerate(block.split(b"\n"))
        return [(line, text.rstrip(b"\r")) for line, text in lines if text.strip(b"\r")]
    rows: list[tuple[int, bytes]] = []
    line = 0
    for found in CSV_ROW.finditer(block):
        text = found.group()
        if text.strip(b"\r\n"):
            rows.append((line, text.rstrip(b"\r\n")))
        line += text.count(b"\n")
    return rows


def plain_rows(block: bytes) -> list[tuple[int, bytes]]:
    """The lines of a block that are not blank: line within the block, text without its line break."""
    return [(line, text.strip()) for line, text in enumerate(block.split(b"\n")) if text.strip()]


def line_count(block: bytes) -> int:
    """The number of lines of a block that are not blank, without a Python loop."""
    text = block.strip()
    return text.count(b"\n") + 1 - len(BLANK_LINE.findall(text)) if text else 0
