"""Helpers for the tests of the languages: cases from fixture files, and checks of refused statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fishweir.errors import QueryError
from fishweir.languages.statement_text import Rejected, ScriptPieces, StatementText

FIXTURES = Path(__file__).parent / "fixtures"


def fixture_cases(folder: str = ".") -> Iterator[object]:
    """The query and the algebra of each case: `=== title`, the query, `---`, the algebra."""
    for file in sorted((FIXTURES / folder).glob("*.txt")):
        for case in file.read_text(encoding="utf-8").split("=== ")[1:]:
            title, _, rest = case.partition("\n")
            query, _, algebra = rest.partition("\n---\n")
            yield pytest.param(query, algebra.strip(), id=f"{file.stem}: {title}")


def check_refused(
    before: str,
    statement: str,
    place: str,
    kind: type[QueryError],
    words: str,
    parse: Callable[[StatementText], object],
) -> None:
    """Checks that the second statement of a script is refused with this message, and the caret at the last `place` or
    at the end."""
    piece = list(ScriptPieces(f"{before};\n   {statement} ;"))[1]
    with pytest.raises(Rejected) as caught:
        parse(piece)
    error = piece.error(caught.value)
    column = 4 + (statement.rindex(place) if place else len(statement))
    assert type(error) is kind
    assert words in error.reason
    assert (error.line, error.column) == (2, column)
    assert str(error).split("\n")[2].strip() == "^"
