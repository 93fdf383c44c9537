"""`explain` of the sides of a join that collects: its items, its windows, and the enumerated comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.nodes import Constant
from fishweir.algebra.texts import SIMILAR
from fishweir.evaluate.join.annotations.comparisons import EQUALITIES


def explain_feeds(template: JoinTemplate, constants: Sequence[Constant]) -> Iterator[str]:
    rest = iter(constants)
    items, *windows = (
        [f"{one.source}: {one.shown([next(rest) for _ in one.types])}" for one in side.filters]
        for side in template.sides
    )
    for text, meets in zip(items, template.sides[0].meets, strict=True):
        joins = " and ".join(f"join {template.collects[side - 1] + 1}" for side in meets)
        yield f"  reads     {text}, {f'annotated by {joins}' if joins else 'by their filters alone'}"
    for side, filters in enumerate(windows, 1):
        compared = " and ".join(map(template.shown, template.edges_of(side))) or "all"
        yield f"  join {template.collects[side - 1] + 1}    last {_reach(template, side, constants)} with {compared}"
        yield from (f"    window  {text}" for text in filters)
        yield f"    chosen  {_anchor(template, side, constants)}"


def _reach(template: JoinTemplate, side: int, constants: Sequence[Constant]) -> str:
    window = template.windows[side]
    assert window.end is not None, "a feed's window has a length"
    length = float(constants[window.end.index])
    return f"{length:,.0f} items" if window.rows else f"{length:g} s"


def _anchor(template: JoinTemplate, side: int, constants: Sequence[Constant]) -> str:
    positive = [edge for edge in template.edges_of(side) if edge.positive]
    for edge in positive:
        if edge.op in EQUALITIES:
            return f"{template.shown(edge)} is looked up"
    for edge in positive:
        share = SIMILAR if edge.share < 0 else float(constants[edge.share])
        if edge.op == "similar" and share > 0:
            return f"{template.shown(edge)}, at least {share:g}, is looked up by its rarest words"
    return "all items of the window are scanned"
