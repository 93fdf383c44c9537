"""Errors by who is at fault, all with one base class."""

from __future__ import annotations


class FishweirError(Exception):
    """Base class of all errors that Fishweir raises on purpose."""


class QueryError(FishweirError):
    """A statement is refused: unknown stream, duplicate name, unbound variable.

    If the position is known, the message gives line and column and shows the line with a caret. `text` is the whole
    script; `line` and `column` are positions in it, counted from 1.
    """

    def __init__(self, message: str, text: str = "", line: int | None = None, column: int | None = None) -> None:
        self.reason, self.line, self.column = message, line, column
        if line is not None and column is not None:
            message = f"line {line}, column {column}: {message}{caret(text, line, column)}"
        super().__init__(message)


class QuerySyntaxError(QueryError):
    """A statement does not parse. The message shows the position, the line with a caret, and what was expected."""


class SourceError(FishweirError):
    """A source cannot be read: missing file or folder, unreadable format."""


class SourceRefused(QueryError, SourceError):
    """A statement declares a source that cannot be read."""


class HomeError(FishweirError):
    """The home folder is in use by another job, was written by another version, or has lost or damaged files."""


class BacklogError(FishweirError):
    """Too many entries are waiting to be evaluated. The caller should publish again later."""


class CannotWrite(HomeError, OSError):
    """A file of the home cannot be written: no space, no permission. Callers that can wait try again."""

    def __init__(self, number: int, message: str) -> None:
        OSError.__init__(self, number, message)

    def __str__(self) -> str:
        return str(self.strerror)


def caret(text: str, line: int, column: int) -> str:
    """The offending line with a caret under the column, or an empty string if there is no source text."""
    lines = text.splitlines()
    if not 1 <= line <= len(lines):
        return ""
    shown = lines[line - 1].replace("\t", " ")
    start = max(0, min(column - 60, len(shown)))
    return f"\n  {shown[start : start + 120]}\n  {' ' * (column - 1 - start)}^"
