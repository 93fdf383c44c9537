"""The kinds of groups, by name. The `kind` of a template names the kind that plans it."""

from __future__ import annotations

from fishweir.evaluate.distinct.kind import DistinctKind
from fishweir.evaluate.group import Kind
from fishweir.evaluate.join.kind import JoinKind
from fishweir.evaluate.select.filter_kind import Filters
from fishweir.evaluate.select.kind import Selections

KINDS: dict[str, Kind] = {kind.name: kind for kind in (Selections(), Filters(), JoinKind(), DistinctKind())}
"""The kinds in the order in which a segment holds their groups and a micro-batch evaluates them: a kind comes after the
kinds that match for it."""


def register_kind(kind: Kind) -> None:
    """Adds a kind. Spark's workers add it when they read a segment with groups of this kind: they import its
    `module`."""
    KINDS[kind.name] = kind
