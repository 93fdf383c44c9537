"""SQL over one stream or several: `select columns from R where ...` (Spatial Join CQ, sections 2 and 6).

In: the text of a query. Out: a Selection, or the Shape of a join, with its constants. sqlglot parses; `text` prepares
the text and rejects unsupported features; `columns`, `conditions` and `joins` bind.
"""

from __future__ import annotations

import re
from dataclasses import replace

from lark import v_args
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.parser import Parser
from sqlglot.tokens import TokenType

from fishweir.algebra.feeds import Filter, Selection
from fishweir.algebra.formula import TRUE, Formula
from fishweir.algebra.nodes import Shape
from fishweir.languages.grammar import Grammar
from fishweir.languages.roses.literals import Constants, Parsed
from fishweir.languages.schedule import Clauses, ScheduleTransformer
from fishweir.languages.sql.columns import Scope, scope_of
from fishweir.languages.sql.conditions import Conditions
from fishweir.languages.sql.joins import bind_join
from fishweir.languages.sql.text import SqlText, read_text
from fishweir.languages.statement_text import Rejected, StatementText

_SUPPORTED = {"expressions", "from_", "from", "where", "kind", "hint", "joins"}
_END = "the end of the statement"
_MISSING = re.compile(r"Required keyword: '(\w+)' missing for <class '[\w.]*?(\w+)'>")
_EXPECTING = re.compile(r"Expect(?:ing|ed) (\S+)$")


@v_args(inline=True)
class ClausesTransformer(ScheduleTransformer):
    """Converts trees of sql_clauses.lark to Clauses."""

    def start(self, clauses: Clauses) -> Clauses:
        return clauses


CLAUSES = Grammar("sql/clauses.lark", ClausesTransformer())


def parse_query(piece: StatementText) -> Parsed[Selection] | Parsed[Shape]:
    """A query and the clauses after it. Raises Rejected with the position if it does not parse or bind."""
    query = read_text(piece.text)
    select = _parse(query)
    source = _source(select, query)
    constants = Constants()
    if select.args.get("joins"):
        join = bind_join(select, source, query, constants)
        clauses = _clauses(piece, query.end)
        return constants.parsed(join, clauses)
    scope = scope_of(source, query)
    if query.brackets:
        reason = "windows are only for joins: a query over one stream processes each tuple as it arrives"
        raise Rejected(reason, query.brackets[0].start)
    output = scope.output(select.expressions)
    formula = _formula(select, scope, constants)
    clauses = _clauses(piece, query.end)
    return constants.parsed(lambda slots: Selection((Filter(scope.source, formula),), output, slots, True), clauses)


def _formula(select: exp.Select, scope: Scope, constants: Constants) -> Formula:
    where = select.args.get("where")
    return TRUE if where is None else Conditions(scope, constants).bind(where.this)


def _parse(query: SqlText) -> exp.Select:
    parser = Parser(error_level=ErrorLevel.IMMEDIATE, error_message_context=len(query.text) + 1)
    try:
        (tree,) = parser.parse(list(query.tokens), query.masked)
    except ParseError as error:
        raise _unparsed(error, query) from None
    except ValueError:
        raise Rejected("expected one query", 0, syntax=True) from None
    if not isinstance(tree, exp.Select):
        raise Rejected("expected 'select'", 0, syntax=True)
    return tree


def _source(select: exp.Select, query: SqlText) -> exp.Expr:
    """The query's first source; everything except columns, source and condition has already been rejected."""
    unknown = {key for key, value in select.args.items() if value} - _SUPPORTED
    if unknown:
        raise Rejected(f"'{min(unknown)}' is not supported by this version", 0)
    source = select.find(exp.From)
    if source is None:
        raise Rejected("expected 'from' and the name of a stream", query.end, syntax=True)
    if not select.expressions:
        keyword = query.first(TokenType.FROM)
        at = keyword.start if keyword else 0
        raise Rejected("expected '*' or columns, found 'from'", at, syntax=True)
    found: exp.Expr = source.this
    return found


def _clauses(piece: StatementText, end: int) -> Clauses:
    rest = piece.rest(end)
    if not rest.text.strip():  # most queries have no clauses and do not load their grammar
        return Clauses(expire_at=end, distinct_at=end)
    try:
        clauses: Clauses = CLAUSES.parse(rest)
    except Rejected as rejected:
        raise Rejected(rejected.reason, rejected.at + end, rejected.syntax) from None
    return replace(clauses, expire_at=clauses.expire_at + end, distinct_at=clauses.distinct_at + end)


def _unparsed(error: ParseError, query: SqlText) -> Rejected:
    """sqlglot's error as a Fishweir error: the position, and what was expected there."""
    found = error.errors[0]
    description, at, word = found["description"] or "", len(found["start_context"] or ""), found["highlight"] or ""
    missing, expecting = _MISSING.match(description), _EXPECTING.match(description)
    if (missing or expecting or "table name" in description) and query.tokens and at >= query.tokens[-1].start:
        at, word = len(query.masked.rstrip()), ""
    if expecting:
        expected = f"'{expecting[1]}'"
    elif "table name" in description:
        expected = "the name of a stream"
    elif missing:
        expected = "a condition" if missing[2] == "Where" else "a column or a constant"
    else:
        expected = _continuation(query, at)
    return Rejected(f"expected {expected}, found {_shown(word)}", at, syntax=True)


def _continuation(query: SqlText, at: int) -> str:
    """What may follow a complete part of a query, depending on the clause at the position."""
    where, source = query.first(TokenType.WHERE), query.first(TokenType.FROM)
    if where is not None and where.start < at:
        return "a comparison, 'and', 'or' or the end of the query"
    if source is not None and source.start < at:
        return "'where' or the end of the query"
    return "',' or 'from'"


def _shown(word: str) -> str:
    return f"'{word}'" if word else _END
