"""Columns and sources of SQL: names, `book.author`, quoted paths `"a/b/@c"`, and the select list.

A column's qualifier is dropped if it is the name or alias of the source; the rest is the path of an element below the
document element. Registration checks whether the stream has such a column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from sqlglot import exp

from fishweir.algebra.feeds import ColumnsOutput
from fishweir.algebra.formula import RelativePath
from fishweir.algebra.nodes import Source, Step
from fishweir.algebra.simple_paths import parse_path
from fishweir.errors import QueryError
from fishweir.languages.sql.text import SqlText
from fishweir.languages.statement_text import Rejected
from fishweir.records import dataclass

AGGREGATES = "aggregates are not supported by this version: a query selects single tuples"


@dataclass(frozen=True, slots=True)
class Word:
    """An identifier as written, with its position."""

    text: str
    start: int
    quoted: bool


@dataclass(frozen=True, slots=True)
class Columns(ABC):
    """Reads the columns of a query from its text."""

    query: SqlText

    @abstractmethod
    def path(self, node: exp.Expr) -> RelativePath:
        """The path of a column. Raises Rejected if there is none."""

    def place(self, node: exp.Expr) -> int:
        """The start of an expression; for a call, that of its first argument or of the query."""
        starts = [found.meta["start"] for found in node.walk() if "start" in found.meta]
        return min(starts, default=0)

    def words(self, node: exp.Expr) -> list[Word]:
        """The identifiers of a column in the order of the text."""
        return words(node, self.query)

    def column(self, node: exp.Expr) -> tuple[str, RelativePath]:
        """A column of the select list: its name in the output and its path."""
        if isinstance(node, exp.Alias):
            (alias,) = words(node.args["alias"], self.query)
            _refuse_empty(alias)
            return alias.text, self.column(node.this)[1]
        self.refuse_unless_column(node)
        path = self.path(node)
        return path[-1].name, path

    def refuse_unless_column(self, node: exp.Expr) -> None:
        if isinstance(node, exp.AggFunc):
            raise Rejected(AGGREGATES, self.place(node))
        if isinstance(node, exp.Func):
            raise Rejected("functions are not supported by this version", self.place(node))
        if not is_column(node):
            raise Rejected("expected a column: a name, or a path such as book.author", self.place(node))


@dataclass(frozen=True, slots=True)
class Scope(Columns):
    """The query's text and its one source, by name and alias."""

    source: Source
    names: frozenset[str]

    def path(self, node: exp.Expr) -> RelativePath:
        parts = self.words(node)
        if len(parts) > 1 and parts[0].text.lower() in self.names:
            parts = parts[1:]
        return steps_of(parts)

    def is_all(self, node: exp.Expr) -> bool:
        """`*` or `R.*`."""
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return all(word.text.lower() in self.names for word in self.words(node))
        return isinstance(node, exp.Star)

    def output(self, nodes: list[exp.Expr]) -> ColumnsOutput:
        if len(nodes) == 1 and self.is_all(nodes[0]):
            return ColumnsOutput()
        found: dict[str, RelativePath] = {}
        for node in nodes:
            if self.is_all(node):
                raise Rejected("expected either '*' or columns, not both", self.place(node))
            name, path = self.column(node)
            if name in found:
                raise Rejected(f"the column '{name}' is given twice: name one with 'as'", self.place(node))
            found[name] = path
        return ColumnsOutput(tuple(found.items()))


def scope_of(table: exp.Expr, query: SqlText) -> Scope:
    """The source of a from clause. Raises Rejected unless it is one stream."""
    extra = {key for key, value in table.args.items() if value} - {"this", "db", "catalog", "alias"}
    start = min((word.start for word in words(table, query)), default=0)
    if not isinstance(table, exp.Table) or extra or not isinstance(table.this, exp.Identifier):
        raise Rejected("expected the name of one stream after 'from'", start)
    name = ".".join(word.text for word in words(table, query, ("catalog", "db", "this")))
    if not name.strip():
        raise Rejected("the source has no name", start)
    alias = table.args.get("alias")
    aliases = [word.text for word in words(alias, query)] if alias else []
    return Scope(query, Source(name), frozenset(word.lower() for word in (name, *aliases)))


def is_column(node: exp.Expr) -> bool:
    if isinstance(node, exp.Dot):
        return is_column(node.this) and isinstance(node.expression, exp.Identifier)
    return isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier)


def words(
    node: exp.Expr, query: SqlText, keys: tuple[str, ...] = ("catalog", "db", "table", "this", "expression")
) -> list[Word]:
    return list(_identifiers(node, query, keys))


def _identifiers(node: exp.Expr, query: SqlText, keys: tuple[str, ...]) -> Iterator[Word]:
    if isinstance(node, exp.Identifier):
        start, end = node.meta["start"], node.meta["end"]
        yield Word(query.name(start, end), start, bool(node.args.get("quoted")))
        return
    for key in keys:
        child = node.args.get(key)
        if isinstance(child, exp.Expr):
            yield from _identifiers(child, query, keys)


def steps_of(words: list[Word]) -> RelativePath:
    return tuple(step for word in words for step in _steps(word))


def _steps(word: Word) -> RelativePath:
    """The steps of a name, or of a quoted path below the document element."""
    _refuse_empty(word)
    if not word.quoted or not ("/" in word.text or word.text.startswith("@")):
        return (Step(word.text),)
    try:
        path = parse_path(word.text)
    except QueryError as error:
        raise Rejected(error.reason, word.start) from None
    if path.absolute or word.text.startswith("//"):
        reason = f"'{word.text}' must be a path below the document element: write a/b or a/@b, without '/' before it"
        raise Rejected(reason, word.start)
    return path.steps


def _refuse_empty(word: Word) -> None:
    if not word.text.strip():
        raise Rejected("the column has no name", word.start)
