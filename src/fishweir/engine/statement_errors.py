"""Errors that are found when statements are bound, with a position in the statement's text."""

from __future__ import annotations

import re
from typing import Protocol

from fishweir.errors import QueryError


class HasPosition(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def line(self) -> int: ...


def statement_error(
    statement: HasPosition, reason: str, word: str = "", after: str = "", kind: type[QueryError] = QueryError
) -> QueryError:
    """An error with line, column and caret at the position of the word in the text, after the word `after`."""
    text = statement.text
    begin = _find(text, after, 0) if after else 0
    at = _find(text, word, max(begin, 0)) if word else -1
    if at < 0:
        return kind(reason)
    before = text[:at]
    line, column = statement.line + before.count("\n"), at - (before.rfind("\n") + 1) + 1
    return kind(reason, "\n" * (statement.line - 1) + text, line, column)


def quoted(statement: HasPosition, word: str) -> str:
    """The word with its quotes in the text, if any."""
    return next((text for text in (f"'{word}'", f'"{word}"', f"“{word}”") if text in statement.text), word)


def _find(text: str, word: str, start: int) -> int:
    """The position of the word as a whole word, otherwise anywhere; -1 if it is not found."""
    whole = re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w.-])", re.IGNORECASE).search(text, start)
    return whole.start() if whole else text.lower().find(word.lower(), start)
