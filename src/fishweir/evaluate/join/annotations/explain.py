"""`explain` of an annotation join: items, windows, sharing, and the enumerated comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fishweir.algebra.annotations import AnnotationTemplate, AnnotationWindow, share_of
from fishweir.algebra.nodes import Constant
from fishweir.evaluate.group import Described, Explained, Placed
from fishweir.evaluate.join.annotations.annotation_tables import AnnotationTable
from fishweir.evaluate.join.annotations.comparisons import EQUALITIES


def explain_annotation(
    number: int, template: AnnotationTemplate, constants: Sequence[Constant], about: Explained
) -> list[str]:
    lines = []
    for role, joins in enumerate(template.primaries):
        under = f", annotated by {_joins(template, joins)}" if joins else ", by their filters alone"
        lines += [f"  reads     {text}{under}" for text in _sides(template, role, constants)]
    shares = [float(share) for share in constants[template.first_share :]]
    for i, window in enumerate(template.windows):
        lines.append(f"  join {window.join + 1}    {window.shown()}")
        lines += [f"    window  {text}" for text in _sides(template, template.role(i), constants)]
        lines.append(f"    chosen  {_anchor(window, shares)}")
    tables: list[Any] = [table for placed in about.bundles for table in placed.groups]
    if about.dropped is not None or not any(number in table.numbers for table in tables):
        return [*lines, f"  dropped   by change {about.dropped}"]
    size = annotation_groups(tables)[template.signature]
    lines += ["  group", f"    signature {template.signature}", *annotation_sizes(size)]
    return [*lines, "  sees      items of its windows that arrived after its registration"]


def annotation_groups(tables: Sequence[AnnotationTable]) -> Counter[str]:
    """The number of queries with each signature."""
    found: Counter[str] = Counter()
    for table in tables:
        found[table.template.signature] += table.size
    return found


def describe_annotations(bundles: Sequence[Placed]) -> list[Described]:
    tables: list[Any] = [table for placed in bundles for table in placed.groups]
    sizes = annotation_groups(tables)
    return [Described(size, signature, annotation_sizes(size)) for signature, size in sizes.items()]


def annotation_sizes(size: int) -> list[str]:
    return [
        f"    size      queries: {size:,}",
        "    shared    the walk of the item, the filters of its source, the windows' values, one look-up per value",
    ]


def _sides(template: AnnotationTemplate, role: int, constants: Sequence[Constant]) -> list[str]:
    found = []
    for side in template.of_role(role):
        own = list(constants[side.span])
        found.append(f"{side.predicate.source}: {side.predicate.shown(own)}")
    return found


def _joins(template: AnnotationTemplate, windows: Sequence[int]) -> str:
    return " and ".join(f"join {template.windows[window].join + 1}" for window in windows)


def _anchor(window: AnnotationWindow, shares: list[float]) -> str:
    positive = [condition for condition in window.conditions if condition.positive]
    for condition in positive:
        if condition.op in EQUALITIES:
            return f"{condition.shown()} is looked up"
    for condition in positive:
        if condition.op == "similar" and share_of(condition, shares) > 0:
            return f"{condition.shown()}, at least {share_of(condition, shares):g}, is looked up by its rarest words"
    return "all items of the window are looked at"
