"""The lexical elements of all languages: quoted text, names, numbers, comparisons, comments.

`terminals.lark` contains the same patterns for the grammars; a test keeps the two in sync. Quotes are `"…"`, `'…'` and
typographic `“…”` (the NiagaraCQ paper also opens with `”`); a doubled closing quote represents one. An apostrophe right
after a letter or digit (`Day's_range`) does not open a quotation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fishweir.algebra.nodes import Operator
from fishweir.algebra.values import COMPARE, to_number

QUOTED = r'"[^"]*+(?:""[^"]*+)*+"|(?<!\w)\'[^\']*+(?:\'\'[^\']*+)*+\'|[“”][^”]*+(?:””[^”]*+)*+”'
NAME = r"[^\W\d_](?:[\w.]|-(?!-))*+"
NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.])"
OPERATOR = r"<=|>=|!=|<>|[=<>≤≥≠]"
VARIABLE = r"\$[^\W\d_]\w*"
TEXT = r"(?:[^\s<>\"“”'$#;-]|-(?!-))(?:[^<>\"“”'$#;-]|-(?!-)|(?<=\w)')*+"
"""Bare text inside an element; a comment, a quotation, a tag or a variable ends it."""

COMMENT = r"--[^\n]*+|\#[^\n]*+|<!--(?s:.*?)-->"
GAP = rf"(?:\s|{COMMENT})"
"""One space or comment, as allowed between any two words."""

OPENING_QUOTES = "\"'“”"
_NAME = re.compile(NAME)
_SPELLINGS: dict[str, Operator] = {**{op: op for op in COMPARE}, "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}


def unquote(token: str) -> str:
    """The text between the quotes, with doubled quotes replaced by single ones."""
    quote = token[-1]
    inner = token[1:-1]
    return inner.replace(quote * 2, quote) if quote in inner else inner


def plain(literal: str) -> str:
    """The text of a quoted or bare word."""
    return unquote(literal) if literal[0] in OPENING_QUOTES else str(literal)


def quote(text: str, mark: str = "'") -> str:
    """The text as a quotation, for use in any statement."""
    return f"{mark}{text.replace(mark, mark * 2)}{mark}"


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def are_names(texts: Iterable[str]) -> bool:
    return all(map(_NAME.fullmatch, texts))


def to_operator(token: str) -> Operator:
    """The comparison of an OPERATOR token."""
    return _SPELLINGS[token]


def to_constant(literal: str) -> float | None:
    """The number of a literal; None if it is not a number or too large for a double."""
    number = to_number(literal)
    return None if number is None or number - number != 0 else number
