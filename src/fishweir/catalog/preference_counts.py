"""Preferences of the active queries, counted by shape: the shedder weighs preferences, not individual queries."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from fishweir.algebra.codec import from_json
from fishweir.algebra.nodes import Shape
from fishweir.algebra.path_queries import own_shape
from fishweir.algebra.preferences import Preference
from fishweir.catalog.database import Database
from fishweir.catalog.schema import PATHS

MAX_NAMES_LISTED = 500


def preferences(
    database: Database, read: Collection[str] = ()
) -> list[tuple[Shape, Preference | None, int, bool, bool]]:
    """For each shape and preference of its queries: the number of subscribers, whether there are subscriptions, and
    whether some of the queries are in `read`. A query counts as one, or by its subscriptions if it has several."""
    is_read = "case when queries.name in :read then 1 else 0 end" if len(read) <= MAX_NAMES_LISTED else "1"
    own = "case when shapes.normal_form = :paths then queries.constants end"  # for queries whose path is a constant
    with database.connect() as connection:
        rows = connection.execute(
            f"""
            select shapes.shape, {own}, queries.preference, count(*), count(subscriptions.id), max({is_read})
            from queries join shapes on queries.shape = shapes.id
                left join subscriptions on subscriptions.query = queries.name and subscriptions.dropped is null
            where queries.dropped is null
            group by shapes.id, shapes.shape, {own}, queries.preference
            """,
            paths=PATHS,
            read=list(read),
        )
    return [
        (_own(shape, constants), _decoded(preference), count, bool(sent), bool(passed))
        for shape, constants, preference, count, sent, passed in rows
    ]


def _own(shape: str, constants: str | None) -> Any:
    return _decoded(shape) if constants is None else own_shape(_decoded(shape), json.loads(constants))[0]


@lru_cache(maxsize=100_000)
def _decoded(text: str | None) -> Any:
    """Decodes a text; cached because few texts are new when the catalog changes."""
    return None if text is None else from_json(json.loads(text))
