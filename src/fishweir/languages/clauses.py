"""Parses clauses without a query: an administrator's defaults, or new actions for a registered query."""

from __future__ import annotations

from fishweir.languages.schedule import Clauses
from fishweir.languages.statement_text import Rejected, StatementText


def parse_clauses(text: str, subject: str = "") -> Clauses:
    """The clauses `do ... start ... every ... expire ...`. Raises QuerySyntaxError or QueryError with the position."""
    from fishweir.languages.sql.language import CLAUSES

    piece = StatementText(text, 0, len(text), subject)
    try:
        clauses: Clauses = CLAUSES.parse(piece)
        if clauses.publish is not None:
            raise Rejected("'publish' is only allowed in a query", 0)
        return clauses
    except Rejected as rejected:
        raise piece.error(rejected) from None
