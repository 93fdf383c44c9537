"""Comparisons between an item and an item of a window: the features they read, and which of them allow a lookup."""

from __future__ import annotations

from dataclasses import dataclass

from fishweir.algebra.annotations import AnnotationCondition
from fishweir.algebra.normal import ANY_ROOT
from fishweir.evaluate.join.annotations.features import Feature

KEPT = {
    "=": ("text", "text"), "!=": ("text", "text"), "similar": ("words", "words"), "contains": ("words", "words"),
    "references": ("references", "link"), "extends": ("extends", "link"), "shares-link": ("links", "link"),
    "<": ("number", "number"), "<=": ("number", "number"), ">": ("number", "number"), ">=": ("number", "number"),
}  # fmt: skip
"""The features that a comparison reads from the item and from the window's item."""

EQUALITIES = ("=", "shares-link", "references", "extends")
"""The comparisons that hold if both items have a feature in common."""


@dataclass(frozen=True)
class Compared:
    """A comparison between a feature of items and a feature of a window's items."""

    left: Feature
    op: str
    right: Feature


def compared(condition: AnnotationCondition) -> Compared:
    left, right = KEPT[condition.op]
    return Compared(
        Feature((ANY_ROOT, *condition.left), left), condition.op, Feature((ANY_ROOT, *condition.right), right)
    )
