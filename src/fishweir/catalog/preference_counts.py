"""Preferences of the active queries, counted by shape: the shedder weighs preferences, not individual queries."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from fishweir.algebra.codec import from_json
from fishweir.algebra.nodes import Shape
from fishweir.algebra.path_queries import own_shape
from fishweir.algebra.preferences import Preference
from fishweir.catalog.deliveries import subscriptions
from fishweir.catalog.schema import PATHS, queries, shapes

MAX_NAMES_LISTED = 500


def preferences(
    engine: sa.Engine, read: Collection[str] = ()
) -> list[tuple[Shape, Preference | None, int, bool, bool]]:
    """For each shape and preference of its queries: the number of subscribers, whether there are subscriptions, and
    whether some of the queries are in `read`. A query counts as one, or by its subscriptions if it has several."""
    delivered = sa.func.count(subscriptions.c.id)
    passed_on = queries.c.name.in_(list(read)) if len(read) <= MAX_NAMES_LISTED else sa.true()
    own = sa.case((shapes.c.normal_form == PATHS, queries.c.constants))  # of queries whose path is a constant
    counted = (
        sa.select(shapes.c.shape, own, queries.c.preference, sa.func.count(), delivered, sa.func.max(passed_on))
        .select_from(
            queries.join(shapes, queries.c.shape == shapes.c.id).outerjoin(
                subscriptions, (subscriptions.c.query == queries.c.name) & subscriptions.c.dropped.is_(None)
            )
        )
        .where(queries.c.dropped.is_(None))
        .group_by(shapes.c.id, shapes.c.shape, own, queries.c.preference)
    )
    with engine.connect() as connection:
        rows = connection.execute(counted).all()
    return [
        (_own(shape, constants), _decoded(preference), count, bool(sent), bool(passed))
        for shape, constants, preference, count, sent, passed in rows
    ]


def _own(shape: str, constants: str | None) -> Any:
    return _decoded(shape) if constants is None else own_shape(_decoded(shape), json.loads(constants))[0]


@lru_cache(maxsize=100_000)
def _decoded(text: str | None) -> Any:
    """Few of the texts are new when the catalog changes."""
    return None if text is None else from_json(json.loads(text))
