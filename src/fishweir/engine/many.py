"""`register_many`: queries or subscriptions from one statement and many rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from fishweir.algebra.feeds import Subscribe
from fishweir.errors import QueryError
from fishweir.languages.bulk import render_rows, to_rows
from fishweir.languages.many import parse_rows
from fishweir.languages.script import parse_script
from fishweir.languages.subscriptions import SHARED, is_subscription

if TYPE_CHECKING:
    from fishweir.engine.registration import Registration

CHUNK = 20_000


def registered(registration: Registration, statement: str, rows: Any, now: float) -> Iterator[object]:
    """The stored queries or subscriptions, one by one."""
    if not is_subscription(statement.lstrip()):
        yield from registration.add_uniform(parse_rows(statement, to_rows(rows), now))
        return
    texts = render_rows(statement.strip().removesuffix(";").rstrip(), to_rows(rows))
    while some := list(islice(texts, CHUNK)):
        statements = [one for text in some for one in _subscriptions(text, now)]
        registration.registering.subscribe(statements)
        yield from statements


def _subscriptions(text: str, now: float) -> list[Subscribe]:
    if (found := SHARED.find(text, 1)) is not None:
        return [found]
    statements = parse_script(text, now)
    subscriptions = [statement for statement in statements if isinstance(statement, Subscribe)]
    if len(subscriptions) < len(statements):
        raise QueryError(f"register_many accepts only queries and subscriptions, and not both: {text[:80]}")
    return subscriptions
