"""Infix conditions of SQL: `title contains 'rock'`, for every keyword of the registry (algebra/operators.py).

sqlglot does not support them. A registered word between a column and a quoted text is replaced with the token of an
infix operator that sqlglot knows and that is otherwise unused here. The position of the text identifies the original
condition. A column or a number in place of the text is marked, too, so that it can be rejected there. A share as in
`similar(0.8) 'x'` is removed from the tokens and stored separately.
"""

from __future__ import annotations

import re

from sqlglot.tokens import Token, TokenType

from fishweir.algebra.operators import Condition, condition_written, keyword_pattern, keywords
from fishweir.records import dataclass

INFIX = TokenType.GLOB
_OWN = (TokenType.LIKE, TokenType.ILIKE)
"""Keywords of the registry that sqlglot itself reads as infix operators."""
_ENDS = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.R_PAREN)
_CONSTANTS = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.VAR)
_LEADS = (
    TokenType.DOT, TokenType.COMMA, TokenType.L_PAREN, TokenType.SELECT, TokenType.WHERE, TokenType.AND, TokenType.OR,
)  # fmt: skip
"""Tokens that cannot end an operand: a word after one is always a name."""


@dataclass(frozen=True, slots=True)
class Infix:
    """A condition as written: its keyword, and the number of its share, if any."""

    condition: Condition
    word: Token
    share: Token | None = None


def spelled(masked: str) -> str:
    """The text with keywords such as `starts-with` written as one word, `starts_with`, if a quoted text follows."""
    hyphened = tuple(word for word in keywords() if "-" in word)
    pattern = rf"(?<![\w.\"'-])(?:{keyword_pattern(hyphened)})(?=\s*')"
    return re.sub(pattern, lambda found: found[0].replace("-", "_"), masked, flags=re.IGNORECASE)


def marked(tokens: list[Token]) -> tuple[list[Token], dict[int, Infix]]:
    """The tokens with sqlglot's infix operator for each condition, and the conditions by the positions of their
    texts.
    """
    found: list[Token] = []
    infixes: dict[int, Infix] = {}
    at = 0
    while at < len(tokens):
        condition, size = _condition(tokens, at), 1
        if condition is not None:
            share = tokens[at + 2] if tokens[at + 1].token_type == TokenType.L_PAREN else None
            size = 4 if share else 1
            infixes[tokens[at + size].start] = Infix(condition, tokens[at], share)
        found.append(tokens[at] if condition is None else _as_infix(tokens[at]))
        at += size
    return found, infixes


def _condition(tokens: list[Token], at: int) -> Condition | None:
    """The condition of the word at a position between an operand and a text."""
    kind, before = tokens[at].token_type, tokens[at - 1].token_type if at else TokenType.SELECT
    if kind in (*_ENDS, *_OWN) or before in _LEADS:
        return None
    after = [token.token_type for token in tokens[at + 1 : at + 5]]
    with_share = after == [TokenType.L_PAREN, TokenType.NUMBER, TokenType.R_PAREN, TokenType.STRING]
    return condition_written(tokens[at].text) if with_share or (after and after[0] in _CONSTANTS) else None


def _as_infix(token: Token) -> Token:
    return Token(INFIX, token.text, token.line, token.col, token.start, token.end, token.comments)
