"""Splits a script into statements, with errors that refer to positions in the whole script.

In: the text of a script. Out: pieces, the statements without their `;` and without surrounding spaces and comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fishweir.errors import QueryError, QuerySyntaxError
from fishweir.languages.lexical import COMMENT, GAP, QUOTED
from fishweir.records import dataclass

_CONTENT = rf"[^;\"'“”#<-]++|{QUOTED}|(?<=\w)'|<(?!!--)|-(?!-)"
_INNER_COMMENTS = rf"(?:(?:{COMMENT})\s*+)++(?!;|\Z)"
_STATEMENT = re.compile(rf"{GAP}*+((?:{_CONTENT}|{_INNER_COMMENTS})*+){GAP}*+(;|\Z)?")


class Rejected(Exception):
    """The error in a piece, and its offset; becomes a QueryError with line and column."""

    def __init__(self, reason: str, at: int, syntax: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.at, self.syntax = reason, at, syntax


@dataclass(frozen=True, slots=True)
class StatementText:
    """A part of a script; `subject` names its owner in error messages, as in `query Q1`."""

    script: str
    start: int
    end: int
    subject: str = ""

    @property
    def text(self) -> str:
        return self.script[self.start : self.end]

    def rest(self, offset: int, subject: str = "") -> StatementText:
        """The piece from an offset on."""
        return StatementText(self.script, self.start + offset, self.end, subject or self.subject)

    def error(self, rejected: Rejected) -> QueryError:
        """The error for the user, positioned in the whole script."""
        line, column = line_and_column(self.script, min(self.start + rejected.at, self.end))
        reason = f"{self.subject}: {rejected.reason}" if self.subject else rejected.reason
        kind = QuerySyntaxError if rejected.syntax else QueryError
        return kind(reason, self.script, line, column)


def line_and_column(script: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, from 1; lines are split as by `str.splitlines`, as for the caret."""
    lines = f"{script[:offset]}^".splitlines()
    return len(lines), len(lines[-1])


class ScriptPieces(Iterator[StatementText]):
    """The statements of a script in order; empty ones are skipped. The next one is read at `position`, which a caller
    may move behind statements that it has read itself.
    """

    def __init__(self, script: str) -> None:
        self.script = script
        self.position = len("\ufeff") if script.startswith("\ufeff") else 0

    def __next__(self) -> StatementText:
        script = self.script
        while self.position < len(script):
            match = _STATEMENT.match(script, self.position)
            assert match is not None, "the pattern matches the empty text"
            body, stop = match.groups()
            if stop is None:
                raise _unclosed(script, match.end())
            self.position = match.end()
            if body:
                start = match.start(1)
                return StatementText(script, start, start + len(body.rstrip()))
        raise StopIteration


def _unclosed(script: str, at: int) -> QueryError:
    what = "comment" if script.startswith("<!--", at) else "quoted text"
    closing = {"<": "-->", "“": "”"}.get(script[at], script[at])
    reason = f"the {what} that begins here is not closed: expected {closing}"
    return StatementText(script, 0, len(script)).error(Rejected(reason, at, syntax=True))
