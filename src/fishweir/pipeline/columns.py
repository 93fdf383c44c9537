"""SQL select lists in columns: results are assembled from the texts of their documents, not one by one.

In: a shape and the streams of its sides. Out: the origin of each column of the select list; for each distinct document,
a text with its own columns, shared by all results of the document.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fishweir.algebra.feeds import Selection
from fishweir.algebra.formula import RelativePath
from fishweir.algebra.nodes import AllColumnsOutput, Shape, Step, StreamDefinition
from fishweir.algebra.values import to_text
from fishweir.pipeline.json_kernels import json_strings
from fishweir.pipeline.text_pieces import Piece, joined, of_rows

Column = tuple[str, int, str | RelativePath]
"""The column's name in the output, its side and its name there. For documents, the path below the document element."""


def column_list(shape: Any, sides: Sequence[StreamDefinition]) -> list[Column] | None:
    """The columns of a select list; None if the output is something else, or `*` of documents."""
    if isinstance(shape, Selection) and shape.output and not shape.joins:
        every = tuple((name, (Step(name),)) for name, _ in sides[0].columns)
        return _plain([(name, 0, _key(path, sides[0])) for name, path in shape.output.columns or every], sides)
    if not isinstance(shape, Shape) or shape.formula is None:
        return None
    often = Counter(
        name
        for part in shape.columns
        for name in ([n for n, _ in sides[part.block].columns] if isinstance(part, AllColumnsOutput) else [part.name])
    )
    found: list[Column] = []
    for part in shape.columns:
        if isinstance(part, AllColumnsOutput):
            if not sides[part.block].is_tuples:
                return None
            own = [name for name, _ in sides[part.block].columns]
            found += [(f"{part.name}.{name}" if often[name] > 1 else name, part.block, name) for name in own]
        else:
            found.append((part.name, part.block, _key(part.path, sides[part.block])))
    return _plain(found, sides)


def _key(path: RelativePath, stream: StreamDefinition) -> str | RelativePath:
    """The name of the column that a path leads to, empty if the path leads further; for documents, the path itself."""
    if not stream.is_tuples:
        return path
    return path[0].name if len(path) == 1 else ""


def _is_plain(path: str | RelativePath) -> bool:
    """Whether a path consists of child steps, possibly ending with an attribute."""
    axes = [step.axis for step in path if isinstance(step, Step) and step == Step(step.name, step.axis)]
    named = all(step.name != "*" for step in path if isinstance(step, Step))
    return bool(path) and named and axes in (["child"] * len(path), ["child"] * (len(path) - 1) + ["attribute"])


def _plain(columns: list[Column], sides: Sequence[StreamDefinition]) -> list[Column] | None:
    known = [{name for name, _ in stream.columns} for stream in sides]
    once = len({name for name, _, _ in columns}) == len(columns)
    there = (key in known[side] if sides[side].is_tuples else _is_plain(key) for _, side, key in columns)
    return columns if once and columns and all(there) else None


def parts_of(columns: Sequence[Column]) -> list[tuple[int, list[Column]]]:
    """The select list, split where the side changes."""
    return [(side, list(some)) for side, some in groupby(columns, key=lambda column: column[1])]


def texts(columns: Sequence[Column], values: Mapping[str | RelativePath, pa.Array]) -> pa.StringArray:
    """For each document, its part of a JSON object, without braces."""
    written: list[Piece] = []
    for name, _, key in columns:
        written += [f"{', ' if written else ''}{json.dumps(name)}: ", of_rows(json_texts(values[key]))]
    return joined(written, len(next(iter(values.values()))))


def json_texts(values: pa.Array) -> pa.StringArray:
    """Each value as JSON, as `json.dumps` writes it. JSON texts contain no line breaks, which can thus separate
    them.
    """
    if pa.types.is_integer(values.type) or pa.types.is_boolean(values.type):
        return pc.cast(values, pa.string()).fill_null("null")
    if not len(values):
        return pa.array([], pa.string())
    if pa.types.is_string(values.type):
        return json_strings(values)
    whole = json.dumps(values.to_pylist(), separators=("\n", ": "), default=to_text)
    return pa.array(whole[1:-1].split("\n"), pa.string())
