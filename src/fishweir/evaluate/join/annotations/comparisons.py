"""Comparisons between an item and one of a window: what of their values each needs, and which can be looked up."""

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
"""What of the values a comparison needs, of the item and of the window's."""

EQUALITIES = ("=", "shares-link", "references", "extends")
"""Those that hold where some feature is common to both."""


@dataclass(frozen=True)
class Compared:
    """A comparison between a feature of items and one of a window's items."""

    left: Feature
    op: str
    right: Feature


def compared(condition: AnnotationCondition) -> Compared:
    left, right = KEPT[condition.op]
    return Compared(
        Feature((ANY_ROOT, *condition.left), left), condition.op, Feature((ANY_ROOT, *condition.right), right)
    )
