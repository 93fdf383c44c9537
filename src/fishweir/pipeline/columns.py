"""Select lists of SQL over tuples, in columns: a result is text of its documents put together, not made one by one.

In: a shape and the streams of its sides. Out: where each column of the select list comes from; of each distinct
document a text with its own columns, which all results it is in share.
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
from fishweir.algebra.nodes import AllColumnsOutput, Shape, StreamDefinition
from fishweir.algebra.values import to_text

Column = tuple[str, int, str]
"""Its name in the output, the side it is of and its name there."""


def column_list(shape: Any, sides: Sequence[StreamDefinition]) -> list[Column] | None:
    """The columns of a select list over tuples; None where the output is something else."""
    if not all(stream.is_tuples for stream in sides):
        return None
    if isinstance(shape, Selection) and shape.output and not shape.joins:
        every = tuple((name, ((name,))) for name, _ in sides[0].columns)
        return _plain([(name, 0, _name(path)) for name, path in shape.output.columns or every], sides)
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
            own = [name for name, _ in sides[part.block].columns]
            found += [(f"{part.name}.{name}" if often[name] > 1 else name, part.block, name) for name in own]
        else:
            found.append((part.name, part.block, _name(part.path)))
    return _plain(found, sides)


def _name(path: Sequence[Any]) -> str:
    """The column that a path leads to; no name of one where it leads further."""
    if len(path) != 1:
        return ""
    return path[0] if isinstance(path[0], str) else str(path[0].name)


def _plain(columns: list[Column], sides: Sequence[StreamDefinition]) -> list[Column] | None:
    known = [{name for name, _ in stream.columns} for stream in sides]
    once = len({name for name, _, _ in columns}) == len(columns)
    return columns if once and columns and all(key in known[side] for _, side, key in columns) else None


def parts_of(columns: Sequence[Column]) -> list[tuple[int, list[Column]]]:
    """The select list cut where the side changes."""
    return [(side, list(some)) for side, some in groupby(columns, key=lambda column: column[1])]


def texts(columns: Sequence[Column], values: Mapping[str, pa.Array]) -> pa.StringArray:
    """Of each document its share of a JSON object, without braces."""
    written: list[Any] = []
    for place, (name, _, key) in enumerate(columns):
        written += [f"{', ' if place else ''}{json.dumps(name)}: ", json_texts(values[key])]
    return pc.binary_join_element_wise(*written, "")


def json_texts(values: pa.Array) -> pa.StringArray:
    """Each value as JSON, as `json.dumps` writes it. A line break is in no JSON text: it can separate them."""
    if pa.types.is_integer(values.type) or pa.types.is_boolean(values.type):
        return pc.cast(values, pa.string()).fill_null("null")
    if not len(values):
        return pa.array([], pa.string())
    whole = json.dumps(values.to_pylist(), separators=("\n", ": "), default=to_text)
    return pa.array(whole[1:-1].split("\n"), pa.string())
