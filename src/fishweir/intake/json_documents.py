"""Converts JSON objects to XML documents that paths, columns and patterns can read.

An object becomes an element with a child for each member. An array becomes one child per value; an array inside an
array becomes an element with children `item`. Numbers and Boolean values are written as in tuples; null is omitted.
Names that XML does not allow are converted to valid ones. Files have one object per line, or consist of one object or
array.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from lxml import etree

from fishweir.algebra.documents import MAX_DOCUMENT
from fishweir.algebra.nodes import StreamDefinition
from fishweir.algebra.simple_paths import xml_name
from fishweir.algebra.values import to_text
from fishweir.intake.schema import file_problem, log_batch
from fishweir.intake.sources.lines import plain_rows
from fishweir.intake.sources.sections import Section, is_settled

DEEPEST = 200
ROWS = 1_000
LINES = 256 * 1024
"""The number of bytes of lines that are read together."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def json_document(value: Any, name: str) -> bytes:
    """The XML of an object. Raises ValueError if the value is not an object or is nested too deeply."""
    if not isinstance(value, Mapping):
        raise ValueError(f"expected an object, found {type(value).__name__}")
    root = etree.Element(xml_name(name))
    _fill(root, value, 0)
    text: bytes = etree.tostring(root, encoding="utf-8")
    return text


def _fill(element: Any, value: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError(f"nested more than {DEEPEST} levels deep")
    if isinstance(value, Mapping):
        for key, one in value.items():
            for part in one if isinstance(one, list | tuple) else [one]:
                if part is not None:
                    _fill(etree.SubElement(element, xml_name(str(key))), part, depth + 1)
    elif isinstance(value, list | tuple):
        for part in value:
            if part is not None:
                _fill(etree.SubElement(element, "item"), part, depth + 1)
    else:
        element.text = _NOT_XML.sub("\ufffd", to_text(value))


def json_document_batches(stream: StreamDefinition, section: Section, now: float) -> Iterator[pa.RecordBatch]:
    """The objects of a file as documents. Anything else becomes a problem entry at its position."""
    path = section.path
    with path.open("rb") as file:
        first = file.readline(MAX_DOCUMENT)
    if section.end or (first.endswith(b"\n") and _is_object(first)):
        yield from _line_batches(stream, section, now)
        return
    if first and not first.endswith(b"\n") and not is_settled(path):
        section.left = True
        return
    if path.stat().st_size > MAX_DOCUMENT:
        yield file_problem(stream, path, f"the JSON document has more than {MAX_DOCUMENT:,} bytes", now)
        return
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        is_lines = first.strip()[:1] == b"{"
        if first.strip() in (b"{", b"[") and not is_settled(path):
            section.left = True
        elif is_lines:
            yield from _line_batches(stream, section, now)
        else:
            yield file_problem(stream, path, f"not JSON: {error}", now)
        return
    values = found if isinstance(found, list) else [found]
    for start in range(0, len(values), ROWS):
        some = values[start : start + ROWS]
        yield _batch(stream, [(f"{path}, object {start + n}", b"", one) for n, one in enumerate(some, 1)], now)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _line_batches(stream: StreamDefinition, section: Section, now: float) -> Iterator[pa.RecordBatch]:
    for first, block in section.blocks(quoted=False, size=LINES):
        rows = [(f"{section.path}, line {first + at}", line, None) for at, line in plain_rows(block)]
        if rows:
            yield _batch(stream, rows, now)


def _batch(stream: StreamDefinition, rows: list[tuple[str, bytes, Any]], now: float) -> pa.RecordBatch:
    bodies: list[bytes] = []
    problems: list[str | None] = []
    for place, line, value in rows:
        try:
            bodies.append(json_document(json.loads(line) if line else value, stream.name))
            problems.append(None)
        except (ValueError, RecursionError) as error:
            bodies.append(line or json.dumps(value).encode())
            problems.append(f"{place}: not a JSON object: {error}")
    return log_batch(stream, len(rows), now, {"body": bodies, "problem": problems})
