"""Selection patterns that can be dropped alone (utility-driven shedding, section 2.2).

The paper's shed queries are sub-queries whose leaves are return or selection patterns. Without a selection pattern, its
condition is not checked: the query returns a superset of its results, and may cost more than before (section 3.2).
Results that do not satisfy their query are useless to most users, so a condition is given up only if all queries that
check it declare its utility in their preference. Such results name the condition (`left_out`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from fishweir.algebra.nodes import Shape
from fishweir.algebra.preferences import Preference
from fishweir.shedding.patterns import is_alone, to_tree
from fishweir.shedding.utility import named


def selection_at(shape: Any, preference: Preference | None, key: str) -> int | None:
    """The selection pattern of a query at a path, if its preference names it and the query does not need it."""
    if preference is None or not isinstance(shape, Shape) or not is_alone(shape) or shape.alternatives:
        return None
    if shape.formula is not None or any(node.absent for block in shape.blocks for node in block.pattern.walk()):
        return None
    tree = to_tree(shape)
    mentioned = [*(score.pattern for score in preference.by_pattern), *preference.ranking]
    places = {i for names in mentioned for i in named(tree, names)}
    return next((i for i in sorted(places) if _may_go(tree, i, key)), None)


def _may_go(tree: Any, place: int, key: str) -> bool:
    pattern = tree.patterns[place]
    is_leaf = not tree.children(place) and len(pattern.path) > len(tree.root)
    return bool(pattern.key == key and pattern.selected and not pattern.returned and is_leaf)


def relaxable_at(
    key: str, places: Set[int], groups: Sequence[Any], needed: Mapping[str, Set[int]]
) -> tuple[tuple[int, frozenset[int]], ...] | None:
    """The queries that check a condition at a path, with the pattern that each loses; None if one must check it."""
    if any(other.startswith(f"{key}.") for other in needed):
        return None
    found = []
    for place in sorted(places):
        group = groups[place]
        pattern = None if group.is_read else selection_at(group.shape, group.preference, key)
        if pattern is None:
            return None
        found.append((place, frozenset([pattern])))
    return tuple(found)
