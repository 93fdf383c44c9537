"""The kinds of groups, by name. A template says by its `kind` which of them plans it."""

from __future__ import annotations

from fishweir.evaluate.distinct.kind import DistinctKind
from fishweir.evaluate.group import Kind
from fishweir.evaluate.join.kind import JoinKind
from fishweir.evaluate.select.filter_kind import Filters
from fishweir.evaluate.select.kind import Selections

KINDS: dict[str, Kind] = {kind.name: kind for kind in (Selections(), Filters(), JoinKind(), DistinctKind())}
"""In the order in which a segment holds their groups and a micro-batch evaluates them: a kind that others match for
comes after them."""


def register_kind(kind: Kind) -> None:
    """Adds a kind. Spark's workers do so when they read a segment that has groups of it: they import its `module`."""
    KINDS[kind.name] = kind
