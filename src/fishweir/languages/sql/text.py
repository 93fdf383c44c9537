"""The text of an SQL query, prepared for sqlglot: comments, strings and windows masked, unsupported features rejected.

sqlglot uses different quotes and comments than Fishweir's scripts. It therefore gets a text of the same length in which
comments are blank, strings have harmless content and `.5` is one token. Binders read the real text at a token's
position. A window in brackets, `[range 10 seconds]`, becomes blank and is read by `joins`. Conditions on texts, `x
contains 'a'`, become an infix operator that sqlglot knows (`infix`). Outer joins, subqueries, grouping and other
unsupported features are rejected by their keywords, with the position.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from sqlglot import Tokenizer
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from fishweir.languages.lexical import COMMENT, QUOTED, unquote
from fishweir.languages.sql.infix import Infix, marked, spelled
from fishweir.languages.statement_text import Rejected
from fishweir.records import dataclass

_MASKED = re.compile(rf"(?P<comment>{COMMENT})|(?P<quoted>{QUOTED})|(?P<point>(?<![\w.\"'”])\.(?=[0-9]))")
_CLAUSES = {"distinct", "publish", "pref", "do", "start", "every", "expire", "expires"}
_BEFORE_OPERANDS = {
    TokenType.DOT, TokenType.COMMA, TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.WHERE, TokenType.FROM,
    TokenType.ALIAS, TokenType.SELECT, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT,
    TokenType.GTE, TokenType.BETWEEN, TokenType.IN, TokenType.LIKE, TokenType.IS, TokenType.L_PAREN,
    TokenType.DASH, TokenType.PLUS, TokenType.STAR, TokenType.SLASH,
}  # fmt: skip
"""Tokens that precede a column or a constant: after them `every` is a name, elsewhere it begins a clause."""

_JOINS = "only inner joins are supported: write 'R [range 10 seconds] join S [range 10 seconds] on ...'"
_OUTER = (
    TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.NATURAL, TokenType.LATERAL, TokenType.OUTER,
    TokenType.SEMI, TokenType.ANTI, TokenType.ASOF,
)  # fmt: skip
_REFUSED = {
    **dict.fromkeys(_OUTER, _JOINS),
    TokenType.GROUP_BY: "'group by' is not supported by this version: a query selects single tuples",
    TokenType.HAVING: "'having' is not supported by this version: a query selects single tuples",
    TokenType.ORDER_BY: "'order by' is not supported: results are in arrival order",
    TokenType.SORT_BY: "'sort by' is not supported: results are in arrival order",
    TokenType.CLUSTER_BY: "'cluster by' is not supported: results are in arrival order",
    TokenType.DISTRIBUTE_BY: "'distribute by' is not supported by this version",
    TokenType.TABLE_SAMPLE: "'tablesample' is not supported by this version",
    TokenType.LIMIT: "'limit' is not supported: a standing query has no last result",
    TokenType.OFFSET: "'offset' is not supported: a standing query has no first result",
    TokenType.FETCH: "'fetch' is not supported: a standing query has no last result",
    TokenType.DISTINCT: "'distinct' is not supported by this version",
    TokenType.UNION: "'union' is not supported by this version: write two queries",
    TokenType.EXCEPT: "'except' is not supported by this version",
    TokenType.INTERSECT: "'intersect' is not supported by this version",
    TokenType.WITH: "'with' is not supported by this version: a query reads one stream",
    TokenType.OVER: "window functions ('over') are not supported by this version",
    TokenType.WINDOW: "window functions are not supported by this version",
    TokenType.QUALIFY: "'qualify' is not supported by this version",
}


class _Tokenizer(Tokenizer):
    SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {
        **Tokenizer.SINGLE_TOKENS, "≤": TokenType.LTE, "≥": TokenType.GTE, "≠": TokenType.NEQ,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bracket:
    """`[...]` after a stream's name: the positions of its brackets."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SqlText:
    """A query's text as written and masked for sqlglot, its tokens, the start of the clauses after it, and its
    windows."""

    text: str
    masked: str
    tokens: tuple[Token, ...]
    end: int
    brackets: tuple[Bracket, ...] = ()
    infixes: Mapping[int, Infix] = field(default_factory=dict)
    """Conditions on texts, by the positions of their constants."""

    def at(self, start: int, end: int) -> str:
        """The original text at a token's position."""
        return self.text[start : end + 1]

    def name(self, start: int, end: int) -> str:
        word = self.at(start, end)
        return unquote(word) if word[0] in "\"'“”`" else word

    def first(self, kind: TokenType) -> Token | None:
        return next((token for token in self.tokens if token.token_type == kind), None)


def read_text(text: str) -> SqlText:
    """The query, separated from its clauses. Raises Rejected for unsupported features."""
    masked = spelled(_MASKED.sub(_mask, text))
    tokens = _tokens(masked)
    brackets = _brackets(tokens)
    if brackets:
        for bracket in brackets:
            masked = masked[: bracket.start] + " " * (bracket.end + 1 - bracket.start) + masked[bracket.end + 1 :]
        tokens = _tokens(masked)
    count = _length(tokens)
    end = tokens[count].start if count < len(tokens) else len(text)
    tokens, infixes = marked(tokens[:count])
    found = SqlText(text, masked[:end], tuple(tokens), end, brackets, infixes)
    _refuse(found)
    return found


def _tokens(masked: str) -> list[Token]:
    try:
        return _Tokenizer().tokenize(masked)
    except TokenError as error:
        raise Rejected(f"the text is not valid SQL: {str(error).partition(chr(10))[0]}", 0, syntax=True) from None


def _brackets(tokens: list[Token]) -> tuple[Bracket, ...]:
    """The windows of the from clause, which ends at `where`."""
    found: list[Bracket] = []
    start, in_from = None, False
    for token in tokens:
        in_from = token.token_type != TokenType.WHERE and (in_from or token.token_type == TokenType.FROM)
        if not in_from:
            continue
        if token.token_type == TokenType.L_BRACKET:
            start = token.start
        elif token.token_type == TokenType.R_BRACKET and start is not None:
            found.append(Bracket(start, token.end))
            start = None
    if start is not None:
        raise Rejected("expected ']' after the window", len(tokens) and tokens[-1].end + 1, syntax=True)
    return tuple(found)


def _mask(match: re.Match[str]) -> str:
    found = match[0]
    if match["comment"]:
        return re.sub(r"\S", " ", found)
    if match["point"]:
        return "0"
    return found if found[0] == '"' else f"'{'x' * (len(found) - 2)}'"


def _length(tokens: list[Token]) -> int:
    """The number of tokens of the query; the clauses begin after `from`, outside parentheses."""
    depth, in_from = 0, False
    for index, token in enumerate(tokens):
        kind, before = token.token_type, tokens[index - 1].token_type if index else TokenType.DOT
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        in_from = in_from or kind == TokenType.FROM
        is_clause = token.text.lower() in _CLAUSES and kind not in (TokenType.STRING, TokenType.IDENTIFIER)
        if in_from and depth == 0 and is_clause and before not in _BEFORE_OPERANDS:
            return index
    return len(tokens)


def _refuse(query: SqlText) -> None:
    before = None
    for index, token in enumerate(query.tokens):
        kind = token.token_type
        if before not in (TokenType.DOT, TokenType.ALIAS):
            if kind in _REFUSED:
                raise Rejected(_REFUSED[kind], token.start)
            if kind == TokenType.SELECT and index > 0:
                raise Rejected("subqueries are not supported by this version", token.start)
            if kind == TokenType.FROM and before == TokenType.COMMA:
                raise Rejected("expected a column, found 'from'", token.start, syntax=True)
        before = kind
