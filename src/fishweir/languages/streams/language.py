"""`create stream`: parses the statement's text into a valid StreamDefinition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from lark import Token, v_args

from fishweir.algebra.nodes import StreamDefinition
from fishweir.algebra.simple_paths import parse_path
from fishweir.errors import QueryError
from fishweir.languages.grammar import Grammar
from fishweir.languages.lexical import plain
from fishweir.languages.schedule import ScheduleTransformer
from fishweir.languages.statement_text import Rejected, StatementText

_ALIASES = {
    "int": "int integer long bigint smallint tinyint",
    "double": "double float real decimal numeric",
    "string": "string text varchar char",
    "boolean": "boolean bool",
    "timestamp": "timestamp datetime",
}
TYPES = {alias: name for name, aliases in _ALIASES.items() for alias in aliases.split()}
FORMATS = ("xml", "csv", "json", "parquet", "feed")
LATER_FORMATS = ("kafka",)
ADDED_FORMATS: set[str] = set()
"""Formats of programs, which check the clauses of such streams themselves."""
_EXTENSIONS = {".jsonl": "json", ".ndjson": "json", ".rss": "feed", ".atom": "feed"} | {
    f".{name}": name for name in FORMATS if name != "feed"
}


@dataclass(slots=True)
class StreamSyntax:
    """The parts of a statement as written; `at` contains their positions."""

    name: Token
    values: dict[str, Any] = field(default_factory=dict)
    at: dict[str, int] = field(default_factory=dict)

    def add(self, clause: Token, values: dict[str, Any]) -> None:
        """Adds a clause's values; each clause may be given once."""
        keyword = clause.lower().split()[0]
        if keyword in self.at:
            raise Rejected(f"'{keyword}' is given twice", _at(clause), syntax=True)
        self.at[keyword] = _at(clause)
        self.values |= values


Clause = tuple[Token, dict[str, Any]]


@v_args(inline=True)
class StreamTransformer(ScheduleTransformer):
    """Converts trees of streams.lark to StreamSyntax."""

    def start(self, _create: Token, _stream: Token, name: Token, *clauses: Clause) -> StreamSyntax:
        syntax = StreamSyntax(name)
        for keyword, values in clauses:
            syntax.add(keyword, values)
        return syntax

    def columns(self, *columns: tuple[Token, str]) -> Clause:
        names = [plain(name) for name, _ in columns]
        for index, (name, _) in enumerate(columns):
            if names[index] in names[:index]:
                raise Rejected(f"the column '{names[index]}' is given twice", _at(name))
        first = columns[0][0]
        return first.update(value="columns"), {"columns": tuple((plain(n), t) for n, t in columns)}

    def column(self, name: Token, type_name: Token) -> tuple[Token, str]:
        kind = TYPES.get(type_name.partition("(")[0].strip().lower())
        if kind is None:
            choices = ", ".join(_ALIASES)
            raise Rejected(f"'{type_name}' is not a type: expected {choices}", _at(type_name))
        if not plain(name).strip():
            raise Rejected("the column has no name", _at(name))
        return name, kind

    def source(self, keyword: Token, path: Token, *rest: Any) -> Clause:
        if not plain(path).strip():
            raise Rejected("the path is empty", _at(path))
        found: dict[str, Any] = {"path": plain(path)}
        for word, value in zip(rest[::2], rest[1::2], strict=True):
            found[word.lower()] = _format(value) if word.type == "FORMAT" else value
        return keyword, found

    def rows(self, keyword: Token, path: Token, *rest: Any) -> Clause:
        found: dict[str, Any] = {"rows": _path(path, element=True)}
        for word, value in zip(rest[::2], rest[1::2], strict=True):
            found[word.lower()] = _path(value) if word.type == "KEY" else value
        return keyword, found

    def split(self, keyword: Token, _on: Token, path: Token, *rest: Any) -> Clause:
        found: dict[str, Any] = {"split": _path(path, element=True)}
        return keyword, found | {"every": rest[-1]} if rest else found

    def timestamp(self, keyword: Token, path: Token, *late: Any) -> Clause:
        found: dict[str, Any] = {"timestamp": plain(path)}
        return keyword, found | {"late": late[-1]} if late else found

    def conforms(self, keyword: Token, dtd: Token) -> Clause:
        if not plain(dtd).strip():
            raise Rejected("the DTD has no name", _at(dtd))
        return keyword, {"dtd": plain(dtd)}

    def shed(self, keyword: Token, _allowed: Token) -> Clause:
        return keyword, {"shed_allowed": True}

    def make_up(self, keyword: Token, _up: Token, _within: Token, interval: float) -> Clause:
        return keyword, {"make_up": interval}


def _format(word: Token) -> str:
    name = word.lower()
    if name in LATER_FORMATS:
        raise Rejected(f"the format '{name}' is not supported by this version", _at(word))
    if name not in FORMATS and name not in ADDED_FORMATS:
        raise Rejected(f"'{word}' is not a format: expected {', '.join((*FORMATS, *sorted(ADDED_FORMATS)))}", _at(word))
    return name


def _path(token: Token, element: bool = False) -> str:
    """The text of a valid path; with `element`, one that ends at an element."""
    try:
        path = parse_path(plain(token))
    except QueryError as error:
        raise Rejected(error.reason, _at(token)) from None
    if element and path.steps[-1].axis == "attribute":
        raise Rejected(f"'{plain(token)}' names an attribute: expected a path to elements", _at(token))
    return plain(token)


def _at(token: Token) -> int:
    return token.start_pos or 0


GRAMMAR = Grammar("streams/streams.lark", StreamTransformer())


def parse_stream(piece: StatementText) -> StreamDefinition:
    """The definition in a `create stream` statement. Raises Rejected if it contradicts itself."""
    syntax: StreamSyntax = GRAMMAR.parse(piece)
    if not plain(syntax.name).strip():
        raise Rejected("the stream has no name", _at(syntax.name))
    if "path" in syntax.values and "format" not in syntax.values:
        syntax.values["format"] = _inferred_format(syntax)
    stream = StreamDefinition(plain(syntax.name), **syntax.values)
    for check in _CHECKS:
        check(stream, syntax)
    return stream


def _inferred_format(syntax: StreamSyntax) -> str:
    extension = PurePosixPath(urlsplit(syntax.values["path"]).path).suffix.lower()
    if extension in _EXTENSIONS:
        return _EXTENSIONS[extension]
    if "columns" in syntax.values:
        reason = f"the format of '{syntax.values['path']}' is unknown: add format csv, json or parquet"
        raise Rejected(reason, syntax.at["from"])
    return "xml"


def _check_format(stream: StreamDefinition, syntax: StreamSyntax) -> None:
    if stream.format == "xml" and stream.columns:
        reason = "a stream of XML documents cannot have columns; use format csv, json or parquet"
        raise Rejected(reason, syntax.at["columns"])
    if stream.path and "://" in stream.path and stream.format not in ADDED_FORMATS:
        _check_url(stream, syntax)
    if stream.format == "feed":
        _check_feed(stream, syntax)
    elif stream.format == "json" and not stream.columns:
        if clause := next((clause for clause in ("split", "rows") if clause in syntax.at), None):
            raise Rejected(f"'{clause}' is for XML; each JSON object is a document", syntax.at[clause])
    elif stream.format not in (None, "xml", *ADDED_FORMATS) and not stream.columns:
        reason = f"the format '{stream.format}' needs columns: create stream {stream.name} (COLUMN TYPE, ...)"
        raise Rejected(reason, syntax.at["from"])


def _check_url(stream: StreamDefinition, syntax: StreamSyntax) -> None:
    reason = bad_place(stream.path or "")
    if reason:
        raise Rejected(reason, syntax.at["from"])


def _check_feed(stream: StreamDefinition, syntax: StreamSyntax) -> None:
    for clause in ("columns", "split", "rows"):
        if clause in syntax.at:
            raise Rejected(
                f"the items of a feed have a fixed format: '{clause}' cannot be used with it", syntax.at[clause]
            )


def bad_place(place: str) -> str | None:
    """The error in the location of a feed or an XML document, or None."""
    try:
        url = urlsplit(place)
        url.port  # noqa: B018 (it raises)
    except ValueError as error:
        return f"'{place}' is not a URL: {error}"
    if "://" not in place or (url.scheme == "file" and url.netloc in ("", "localhost")):
        return None
    if url.scheme not in ("http", "https"):
        return f"'{place}' cannot be fetched: expected http, https or file"
    if any(character.isspace() for character in place):
        return f"'{place}' is not a URL: it contains white space"
    return None if url.hostname else f"'{place}' does not name a host"


def _check_rows(stream: StreamDefinition, syntax: StreamSyntax) -> None:
    for clause in ("split", "rows"):
        if clause in syntax.at and stream.columns:
            raise Rejected(f"'{clause}' is for XML and cannot be used with columns", syntax.at[clause])
    if stream.rows is None:
        on_the_web = stream.format == "feed" or "://" in (stream.path or "")
        if stream.every is not None and not on_the_web and stream.format not in ADDED_FORMATS:
            reason = "'every' needs 'rows', format feed or a URL; other files are read as they appear"
            raise Rejected(reason, syntax.at["from"])
        return
    if stream.key is None:
        raise Rejected("'rows' needs 'key' and the path of the rows' key", syntax.at["rows"])
    if stream.path is None:
        raise Rejected("'rows' needs 'from': it watches a file that changes", syntax.at["rows"])
    if stream.split is not None:
        raise Rejected("'split on' and 'rows' cannot be combined: 'rows' already splits the file", syntax.at["split"])


def _check_timestamp(stream: StreamDefinition, syntax: StreamSyntax) -> None:
    if stream.timestamp is None:
        return
    if not stream.columns:
        try:
            parse_path(stream.timestamp)
        except QueryError as error:
            raise Rejected(error.reason, syntax.at["timestamp"]) from None
    elif stream.timestamp not in dict(stream.columns):
        names = ", ".join(name for name, _ in stream.columns)
        raise Rejected(f"'{stream.timestamp}' is not a column; the columns are {names}", syntax.at["timestamp"])


_CHECKS: tuple[Callable[[StreamDefinition, StreamSyntax], None], ...] = (
    _check_format,
    _check_rows,
    _check_timestamp,
)
