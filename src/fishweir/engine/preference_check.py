"""Checks preferences: rejects a preference for a pattern that the query does not have.

Most queries have no preference, so the code for patterns is loaded with the first one.
"""

from __future__ import annotations

from functools import lru_cache

from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import CreateQuery, Shape
from fishweir.algebra.preferences import Preference


def unknown_pattern(statement: CreateQuery) -> tuple[str, str] | None:
    """The error in a query's preference, and the word it refers to. Feeds and `select *` return whole items, so any
    name is allowed; joins are weighed as a whole."""
    shape, preference = statement.shape, statement.preference
    if preference is None or not isinstance(shape, Shape | Selection):
        return None
    from fishweir.shedding.patterns import is_alone

    if not is_alone(shape):
        return None
    if isinstance(shape, Selection) and not (shape.output and shape.output.columns):
        return None
    return _unknown(shape, preference)


@lru_cache(maxsize=10_000)
def _unknown(shape: Shape | Selection, preference: Preference) -> tuple[str, str] | None:
    from fishweir.shedding.patterns import to_tree
    from fishweir.shedding.suspension import needed_paths
    from fishweir.shedding.utility import unnamed

    tree = to_tree(shape)
    looked_for = [key.replace("..", ".").split(".") for key in needed_paths(shape)]
    wrong = (one for one in unnamed(tree, preference) if not any(keys[-len(one) :] == [*one] for keys in looked_for))
    names = next(wrong, None)
    if names is None:
        return None
    patterns = ", ".join(str(pattern) for pattern in tree.patterns)
    return f"prefers {'/'.join(names)}, which is not one of its patterns ({patterns})", names[-1]
