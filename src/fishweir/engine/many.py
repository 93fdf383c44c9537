"""`register_many`: queries or subscriptions from one statement and many rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fishweir.languages.bulk import to_rows
from fishweir.languages.many import parse_rows, parse_subscriptions
from fishweir.languages.subscriptions import is_subscription

if TYPE_CHECKING:
    from fishweir.engine.registration import Registration


def registered(registration: Registration, statement: str, rows: Any, now: float) -> Iterator[object]:
    """The stored queries or subscriptions, one by one."""
    if not is_subscription(statement.lstrip()):
        yield from registration.add_uniform(parse_rows(statement, to_rows(rows), now))
        return
    for some in parse_subscriptions(statement, to_rows(rows), now):
        registration.registering.subscribe([some])
        yield from some.texts
