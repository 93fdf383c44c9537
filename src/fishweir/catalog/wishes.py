"""What the living queries prefer, counted by shape: the shedder weighs preferences, not single queries."""

from __future__ import annotations

import json

import sqlalchemy as sa

from fishweir.algebra.codec import from_json
from fishweir.algebra.nodes import Shape
from fishweir.algebra.preferences import Preference
from fishweir.catalog.deliveries import subscriptions
from fishweir.catalog.schema import queries, shapes


def preferences(engine: sa.Engine) -> list[tuple[Shape, Preference | None, int]]:
    """Each shape with each preference that queries of it have, and their subscribers: a query counts as one, or by its
    subscriptions if it has several."""
    counted = (
        sa.select(shapes.c.shape, queries.c.preference, sa.func.count())
        .select_from(
            queries.join(shapes, queries.c.shape == shapes.c.id).outerjoin(
                subscriptions, subscriptions.c.query == queries.c.name
            )
        )
        .where(queries.c.dropped.is_(None))
        .group_by(shapes.c.id, shapes.c.shape, queries.c.preference)
    )
    with engine.connect() as connection:
        rows = connection.execute(counted).all()
    return [
        (from_json(json.loads(shape)), None if preference is None else from_json(json.loads(preference)), count)
        for shape, preference, count in rows
    ]
