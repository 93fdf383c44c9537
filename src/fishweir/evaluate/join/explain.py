"""`explain` of a join: its signature, sharing, the enumerated edge and the checked conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.nodes import Constant
from fishweir.algebra.normal import dotted
from fishweir.evaluate.group import ExplainContext, GroupSummary, PlacedBundle
from fishweir.evaluate.join.annotations.explain import explain_feeds
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.placement import costs, is_counted, is_movable
from fishweir.evaluate.join.shape_rule import by_anchor, shape_costs
from fishweir.evaluate.select.constant_tables import template_paths
from fishweir.evaluate.statistics import PathStatistics, Statistics, path_key
from fishweir.evaluate.witnesses.explain import explain_reached


def explain_join(
    number: int, template: JoinTemplate, constants: Sequence[Constant], about: ExplainContext
) -> list[str]:
    placed = [(bundle, table) for bundle in about.bundles for table in bundle.groups]
    mine = ((b, t) for b, t in placed if t.template == template and number in t.numbers)  # type: ignore[attr-defined]
    found: tuple[PlacedBundle, Any] | None = next(mine, None)
    lines = [*(explain_feeds(template, constants) if template.collects else _patterns(template))]
    if found is None or about.dropped is not None:
        return [*lines, f"  dropped   by change {about.dropped}"]
    if not template.collects:
        for side in dict.fromkeys(template.sides):
            lines += explain_reached(side.source, template_paths(side), about.walked)
        lines.append(f"  window    {_window(template, constants)}")
    tables: list[Any] = [table for _, table in placed]
    group = [t for t in tables if t.template.signature == template.signature]
    lines += ["  group", f"    signature {template.signature}", *_sizes(group)]
    lines += _decided(found[0], found[1], about.statistics)
    return [*lines, f"  sees      {_seen(template)} arrived after its registration"]


def _patterns(template: JoinTemplate) -> Iterator[str]:
    yield f"  reads     {', '.join(map(str, template.sources))}"
    for i, side in enumerate(template.sides, 1):
        yield f"  {('left', 'right')[i - 1] if template.is_of_two else f'side {i}':<9} {side}"


def _seen(template: JoinTemplate) -> str:
    if template.collects:
        return "items of its windows that"
    return f"{'pairs' if template.is_of_two else 'combinations'} whose earliest document"


HOW = {
    "edge-sets": "by the set of equal values of a pair, looked up once per set",
    "shapes": "by a hash join of its shape, over all its equalities together",
    "rows": "row by row: by constants, comparisons or columns in addition to equalities",
    "mjoin": "side by side, starting from each new document: by equal values first, else by the most selective lookup",
    "windows": "item by item, with all items in its windows",
}


def _decided(placed: PlacedBundle, table: Any, statistics: Statistics) -> list[str]:
    strategy, lines = placed.bundle.strategy, list[str]()
    if strategy == "shapes":
        lines.append(_by_shape(placed, table, statistics))
    elif table.is_of_two:
        lines.append(_anchor(table, statistics))
    lines.append(f"    decided   {HOW.get(strategy, f'by the strategy {strategy}')}")
    if not any(side.types for side in table.template.sides):
        return lines
    if not table.is_of_two:
        return [*lines, "    constants below the join, on documents"]
    return [*lines, _placement(table, statistics)]


def describe_joins(bundles: Sequence[PlacedBundle]) -> list[GroupSummary]:
    groups: dict[str, list[Any]] = {}
    for placed in bundles:
        table: Any
        for table in placed.groups:
            groups.setdefault(table.template.signature, []).append(table)
    return [GroupSummary(sum(t.size for t in some), signature, _sizes(some)) for signature, some in groups.items()]


def _placement(table: JoinTable, statistics: Statistics) -> str:
    """Where the constants are checked, with the current estimate of the cost model."""
    where = "above the join, on its pairs" if table.above else "below the join, on documents"
    if not is_movable(table.template):
        return f"    constants {where}: not all of them can be checked on pairs"
    cost = costs(table.template, table.anchor, table.columns, statistics)
    by = "statistics" if is_counted(table.template, table.anchor, statistics) else "operator"
    return f"    constants {where} (steps per document, by {by}: {cost.below:,.1f} below, {cost.above:,.1f} above)"


def _sizes(group: Sequence[Any]) -> list[str]:
    shapes = len({table.template for table in group})
    template = group[0].template
    kept = ("values", "pair") if template.is_of_two else ("rows", "combination")
    shared = f"the walk of the document, the retained {kept[0]}, one lookup per value, one row per {kept[1]}"
    if template.collects:
        shared = "the walk of the item, the filters of its source, the windows' values, one lookup per value"
    return [
        f"    size      queries: {sum(table.size for table in group):,}, shapes: {shapes:,}",
        f"    shared    {shared}",
    ]


def _window(template: JoinTemplate, constants: Sequence[Constant]) -> str:
    names = ("left", "right") if template.is_of_two else tuple(map(str, template.sources))
    return ", ".join(
        f"{side} waits {constants[window.end.index]:g} {'rows' if window.rows else 's'}"
        for side, window in zip(names, template.windows, strict=True)
        if window.end is not None
    )


def _by_shape(placed: PlacedBundle, table: JoinTable, statistics: Statistics) -> str:
    """Why the shape has its own hash join: the current estimate."""
    tables: dict[int, Any] = dict(enumerate(placed.groups))
    (shared,) = (
        [tables[i] for i in some] for some in by_anchor(tables).values() if any(tables[i] is table for i in some)
    )
    cost = shape_costs(shared, statistics)
    why = f"{cost.by_shape:,.0f} per shape, {cost.by_sets:,.0f} per set" if cost else "not counted"
    return f"    chosen    all edges are looked up together (steps per document, by statistics: {why})"


def _anchor(table: JoinTable, statistics: Statistics) -> str:
    template = table.template
    if table.anchor < 0:
        return "    chosen    no equality: all pairs within the window are scanned"
    edge = template.edges[table.anchor]
    ends = ((template.left, edge.left), (template.right, edge.right))
    known = [statistics.get(path_key(t.source, dotted(t.path(node))), PathStatistics()) for t, node in ends]
    why = f"{max(k.distinct for k in known):,.0f} distinct values" if any(k.count for k in known) else "order"
    return f"    chosen    {template.shown(edge)} is enumerated (most selective, by {why})"
