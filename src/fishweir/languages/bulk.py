"""Many statements from one text and rows of values, for `register_many`.

In: a text with `$column` placeholders, and rows. Out: the texts of the statements. A placeholder is replaced with the
value's text, with quotes doubled, inside quotes; with the bare name in place of a name; with a path directly after a
source; and with a number or a quoted string elsewhere. No value can end its quotation, and no path its position:
outside its brackets it has only steps. A `$x` that is not a column is left unchanged: it is a variable of XML-QL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, Literal

import pyarrow as pa

from fishweir.algebra.values import to_text
from fishweir.errors import QueryError
from fishweir.languages.lexical import COMMENT, NAME, QUOTED, are_names, is_name, quote
from fishweir.records import dataclass

_TOKEN = re.compile(
    rf"(?P<comment>{COMMENT})|(?P<quoted>{QUOTED})"
    r"|(?P<head>\b(?:create\s+(?:(?:query|stream|feed)\s+)?|delete\s+|publish\s+))(?P<name>[\w.$-]*\$[\w.$-]*)"
    r"|\$(?P<bare>[^\W\d]\w*)",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"\$([^\W\d]\w*)")
_RANGE = re.compile(r"\[\s*range\s*$", re.IGNORECASE)
_SOURCE = re.compile(
    rf"(?:(?:\b(?:as|from)\s|[(}}]\s*|\A\s*){NAME}|\bstream\s*\(\s*(?:{QUOTED})\s*\))\Z", re.IGNORECASE
)
"""A stream followed by a path, in XSCL or XQuery: a name at the beginning of a query or of a side, or `stream('S')`."""
_CHUNK = 8192
_STEP = r"//?(?:@?(?:[^\W\d][\w.:]*+|\*)|\.)(?:-(?![->])[\w.:]++)*+(?:->[^\W\d]\w*+)?"
_INSIDE = rf"[^\[\]\"'“”;\#${{}}<-]|<(?!!)|-(?!-)|{QUOTED}"
_BRACKETS = rf"\[(?:{_INSIDE}|\[(?:{_INSIDE}|\[(?:{_INSIDE})*+\])*+\])*+\]"
_PATH = re.compile(rf"(?:{_STEP}(?:{_BRACKETS})*+)+")
"""A path in a column: brackets up to three deep. Nothing in it can end the statement or begin a clause."""
_RESERVED = {"query", "stream", "feed"}

Row = Mapping[str, Any]


class BadValue(ValueError):
    """A value cannot be inserted into a statement. The message names the column."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A placeholder in a text, as a function of a row. If it is a whole name or literal, it also has its column."""

    kind: Literal["name", "quoted", "literal", "path"]
    of: Callable[[Row], str]
    column: str = ""

    def all(self, rows: Sequence[Row]) -> list[str]:
        """The value for each row. Columns of plain texts or integers, the common case, need no call per row."""
        if self.column:
            values = [row[self.column] for row in rows]
            kinds = set(map(type, values))
            if self.kind == "name":
                if kinds == {str} and are_names(values) and _RESERVED.isdisjoint(map(str.lower, values)):
                    return values
            elif kinds == {str}:
                return (
                    [quote(value) for value in values] if any("'" in v for v in values) else [f"'{v}'" for v in values]
                )
            elif kinds == {int}:
                return list(map(str, values))
        return [self.of(row) for row in rows]


def render_rows(text: str, rows: Iterable[Row], columns: Iterable[str] | None = None, before: int = 0) -> Iterator[str]:
    """One text per row. The columns of the first row, unless given, determine which `$words` are placeholders.

    Raises QueryError with the row, counted from 1, and the column of a missing or invalid value.
    """
    parts: list[str | Part] | None = None
    for number, row in enumerate(rows, before + 1):
        if not isinstance(row, Mapping):
            raise QueryError(f"row {number} must be a mapping of columns to values, not {type(row).__name__}")
        if parts is None:
            parts = compile_text(text, row.keys() if columns is None else columns)
        try:
            yield "".join([part if isinstance(part, str) else part.of(row) for part in parts])
        except KeyError as error:
            raise QueryError(f"row {number}: there is no column {error}") from None
        except BadValue as error:
            raise QueryError(f"row {number}: {error}") from None


def compile_text(text: str, columns: Iterable[str]) -> list[str | Part]:
    """The text as fixed parts and functions of a row."""
    names = set(columns)
    parts: list[str | Part] = []
    position = 0
    for match in _TOKEN.finditer(text):
        if match["comment"] or (match["bare"] and match["bare"] not in names):
            continue
        parts.append(text[position : match.start()])
        position = match.end()
        if match["quoted"]:
            parts += _quoted_parts(match["quoted"], names)
        elif match["name"]:
            parts += [match["head"], _name_part(match["name"], names)]
        else:
            parts += _bare_parts(text, match, names)
    return [part for part in [*parts, text[position:]] if part]


def _quoted_parts(token: str, columns: set[str]) -> list[str | Part]:
    mark = token[-1]

    def part(column: str) -> Part:
        return Part("quoted", lambda row: _plain(row[column], column).replace(mark, mark * 2))

    return _alternate(token, columns, part)


def _alternate(text: str, columns: set[str], part: Callable[[str], Part]) -> list[str | Part]:
    """The fixed parts of a text, with a part for each placeholder between them."""
    parts: list[str | Part] = []
    position = 0
    for match in _PLACEHOLDER.finditer(text):
        if match[1] in columns:
            parts += [text[position : match.start()], part(match[1])]
            position = match.end()
    return [*parts, text[position:]]


def _name_part(token: str, columns: set[str]) -> Part:
    pieces = _alternate(token, columns, lambda column: Part("name", lambda row: _plain(row[column], column)))

    def name(row: Row) -> str:
        text = "".join([piece if isinstance(piece, str) else piece.of(row) for piece in pieces])
        if not is_name(text) or text.lower() in _RESERVED:
            raise BadValue(f"'{text}' is not a name: a letter, then letters, digits, '_', '-' or '.'")
        return text

    whole = _PLACEHOLDER.fullmatch(token)
    return Part("name", name, whole[1] if whole else "")


def _bare_parts(text: str, match: re.Match[str], columns: set[str]) -> list[str | Part]:
    """A literal, with a space between its quotes and an adjacent word; or, directly after a source, a path, since no
    literal is possible there.
    """
    column = match["bare"]
    before, after = text[: match.start()], text[match.end() :]
    if _SOURCE.search(before):
        return [Part("path", lambda row: _path(row[column], column))]
    preceding = before[-1:] == "'" or before[-1:].isalnum() or before[-1:] == "_"
    following = after[:1] == "'" or bool(_PLACEHOLDER.match(after))
    in_window = (before.rstrip()[-1:] == "," and after.lstrip()[:1] == "}") or _RANGE.search(before)
    written = window if in_window else literal
    own = Part("literal", lambda row: written(row[column], column), "" if in_window else column)
    return [" " if preceding else "", own, " " if following else ""]


def _path(value: Any, column: str) -> str:
    text = _plain(value, column).strip()
    if not _PATH.fullmatch(text):
        raise BadValue(f"the value of the column '{column}' is not a path that begins with a slash: {text}")
    return text


def literal(value: Any, column: str) -> str:
    """A bare number, or a quoted text for anything else."""
    text = _plain(value, column)
    if isinstance(_python(value), (int, float, Decimal)) and not isinstance(_python(value), bool):
        return text
    return quote(text)


def window(value: Any, column: str) -> str:
    """A literal for the window of a join, which may be infinite."""
    return "INF" if _python(value) == math.inf else literal(value, column)


def _plain(value: Any, column: str) -> str:
    """The value's text. Raises an error if the value is missing (None, NaN, NaT, pandas.NA)."""
    if type(value) is str:
        return value
    value = _python(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        raise BadValue(f"the column '{column}' has no value")
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        raise BadValue(f"the value of the column '{column}' is not a finite number: {value}")
    return to_text(value)


def _python(value: Any) -> Any:
    """A Python scalar for a NumPy scalar."""
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value


def to_rows(data: Any) -> Iterator[Mapping[str, Any]]:
    """Rows as dicts, from dicts, Arrow tables, batches and readers, or a pandas DataFrame, in chunks."""
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
