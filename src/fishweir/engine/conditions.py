"""Determines whether the conditions of an SQL query can exclude each other."""

from __future__ import annotations

from fishweir.algebra.emptiness import Emptiness, emptiness_of
from fishweir.algebra.feeds import FeedQuery, Selection
from fishweir.algebra.formula import Or
from fishweir.algebra.nodes import Shape


def emptiness(shape: Shape | Selection | FeedQuery) -> Emptiness | None:
    """The emptiness of conditions on columns; None for feeds, whose items may have several values at a path, each
    satisfying a different condition.
    """
    if isinstance(shape, Selection) and shape.columns:
        return emptiness_of(Or(tuple(part.formula for part in shape.filters)))
    if isinstance(shape, Shape) and shape.formula is not None:
        return emptiness_of(shape.formula)
    return None
