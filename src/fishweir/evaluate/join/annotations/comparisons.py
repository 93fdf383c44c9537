"""Comparisons between an item and an item of a window: the features they read, and which of them allow a lookup."""

from __future__ import annotations

from dataclasses import dataclass

from fishweir.algebra.joins import Edge, JoinTemplate
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
class FeatureComparison:
    """A comparison between a feature of items and a feature of a window's items."""

    left: Feature
    op: str
    right: Feature


def feature_comparison(template: JoinTemplate, edge: Edge) -> FeatureComparison:
    left, right = KEPT[edge.op]
    ends = template.sides[edge.left_side].path(edge.left), template.sides[edge.right_side].path(edge.right)
    return FeatureComparison(Feature(ends[0], left), edge.op, Feature(ends[1], right))
