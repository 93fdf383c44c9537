"""Many statements from one text and rows of values, for `register_many`.

In come a text with `$column` placeholders and rows, out come the texts of the statements. A
placeholder becomes, inside quotes, the value's text with the quote doubled; in the place of a
name, the bare name; elsewhere a number or a quotation. No value can end the quotation it is in.
A `$x` that is not a column stays as it is: a variable of XML-QL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any

import pyarrow as pa

from fishweir.algebra.values import to_text
from fishweir.errors import QueryError
from fishweir.languages.lexical import COMMENT, QUOTED, is_name, quote

_TOKEN = re.compile(
    rf"(?P<comment>{COMMENT})|(?P<quoted>{QUOTED})"
    r"|(?P<head>\b(?:create\s+(?:(?:query|stream|feed)\s+)?|delete\s+|publish\s+))(?P<name>[\w.$-]*\$[\w.$-]*)"
    r"|\$(?P<bare>[^\W\d]\w*)",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"\$([^\W\d]\w*)")
_RANGE = re.compile(r"\[\s*range\s*$", re.IGNORECASE)
_CHUNK = 8192
_RESERVED = {"query", "stream", "feed"}

Part = Callable[[Mapping[str, Any]], str]


class _Missing(ValueError):
    """A value that cannot be put into a statement; the message names the column."""


def render_rows(text: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One text per row; the first row's columns decide which `$words` are placeholders.

    QueryError names the row, counted from 1, and the column of a missing or impossible value.
    """
    parts: list[str | Part] | None = None
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise QueryError(f"row {number} is not a mapping of columns to values but {type(row).__name__}")
        if parts is None:
            parts = compile_text(text, row.keys())
        try:
            yield "".join([part if isinstance(part, str) else part(row) for part in parts])
        except KeyError as error:
            raise QueryError(f"row {number}: there is no column {error}") from None
        except _Missing as error:
            raise QueryError(f"row {number}: {error}") from None


def compile_text(text: str, columns: Iterable[str]) -> list[str | Part]:
    """The text as fixed parts and functions of a row."""
    known = set(columns)
    parts: list[str | Part] = []
    position = 0
    for match in _TOKEN.finditer(text):
        if match["comment"] or (match["bare"] and match["bare"] not in known):
            continue
        parts.append(text[position : match.start()])
        position = match.end()
        if match["quoted"]:
            parts += _quoted_parts(match["quoted"], known)
        elif match["name"]:
            parts += [match["head"], _name_part(match["name"], known)]
        else:
            parts += _bare_parts(text, match, known)
    return [part for part in [*parts, text[position:]] if part]


def _quoted_parts(token: str, known: set[str]) -> list[str | Part]:
    mark = token[-1]

    def part(column: str) -> Part:
        return lambda row: _plain(row[column], column).replace(mark, mark * 2)

    return _alternate(token, known, part)


def _alternate(text: str, known: set[str], part: Callable[[str], Part]) -> list[str | Part]:
    """The fixed stretches of a text with a part for each placeholder between them."""
    parts: list[str | Part] = []
    position = 0
    for match in _PLACEHOLDER.finditer(text):
        if match[1] in known:
            parts += [text[position : match.start()], part(match[1])]
            position = match.end()
    return [*parts, text[position:]]


def _name_part(token: str, known: set[str]) -> Part:
    pieces = _alternate(token, known, lambda column: lambda row: _plain(row[column], column))

    def name(row: Mapping[str, Any]) -> str:
        text = "".join([piece if isinstance(piece, str) else piece(row) for piece in pieces])
        if not is_name(text) or text.lower() in _RESERVED:
            raise _Missing(f"'{text}' is not a name: a letter, then letters, digits, '_', '-' or '.'")
        return text

    return name


def _bare_parts(text: str, match: re.Match[str], known: set[str]) -> list[str | Part]:
    """A literal; a space keeps its quotation apart from a neighbour that would run into it."""
    column = match["bare"]
    before, after = text[: match.start()], text[match.end() :]
    glued = before[-1:] == "'" or before[-1:].isalnum() or before[-1:] == "_"
    following = after[:1] == "'" or bool(_PLACEHOLDER.match(after))
    in_window = (before.rstrip()[-1:] == "," and after.lstrip()[:1] == "}") or _RANGE.search(before)
    written = window if in_window else literal
    return [" " if glued else "", lambda row: written(row[column], column), " " if following else ""]


def literal(value: Any, column: str) -> str:
    """A number bare, all else quoted."""
    text = _plain(value, column)
    if isinstance(_python(value), (int, float, Decimal)) and not isinstance(_python(value), bool):
        return text
    return quote(text)


def window(value: Any, column: str) -> str:
    """A literal in the place of a join's window, which may be without end."""
    return "INF" if _python(value) == math.inf else literal(value, column)


def _plain(value: Any, column: str) -> str:
    """The value's text; a missing value (None, NaN, NaT, pandas.NA) has none."""
    if type(value) is str:
        return value
    value = _python(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        raise _Missing(f"the column '{column}' has no value")
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        raise _Missing(f"the column '{column}' has no finite number: {value}")
    return to_text(value)


def _python(value: Any) -> Any:
    """NumPy's scalars as Python's."""
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value


def to_rows(data: Any) -> Iterator[Mapping[str, Any]]:
    """Rows as dicts from dicts, Arrow tables, batches and readers, or a pandas DataFrame; in chunks."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return chain.from_iterable(batch.to_pylist() for batch in data.to_batches(max_chunksize=_CHUNK))
    if isinstance(data, pa.RecordBatchReader):
        return chain.from_iterable(to_rows(batch) for batch in data)
    if hasattr(data, "iloc") and hasattr(data, "to_dict"):
        starts = range(0, len(data), _CHUNK)
        return chain.from_iterable(data.iloc[i : i + _CHUNK].to_dict("records") for i in starts)
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
        raise QueryError(f"rows must be dicts, an Arrow table or a DataFrame, not {type(data).__name__}")
    return iter(data)
