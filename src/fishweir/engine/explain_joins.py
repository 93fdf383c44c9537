"""`explain` of a join: its signature, what it shares, what is enumerated and what is checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.normal import dotted
from fishweir.engine.explain_reached import Walked, explain_reached
from fishweir.evaluate.join.annotations.tables import AnnotationTable
from fishweir.evaluate.join.many.tables import ManyTable
from fishweir.evaluate.join.placement import costs, is_counted, is_movable
from fishweir.evaluate.join.tables import JoinTable
from fishweir.evaluate.plan.segments import AnyTable, Segment
from fishweir.evaluate.select.constant_tables import template_paths
from fishweir.evaluate.statistics import PathStatistics, Statistics, path_key
from fishweir.evaluate.witnesses.path_tables import Path


def explain_join(
    number: int,
    template: JoinTemplate,
    constants: Sequence[Constant],
    segments: Sequence[Segment],
    statistics: Statistics,
    walked: Walked,
    dropped: int | None,
) -> list[str]:
    tables = [t for s in segments for t in s.tables if isinstance(t, JoinTable)]
    found = next((t for t in tables if t.template == template and number in t.numbers), None)
    lines = [f"  reads     {template.left.source}, {template.right.source}", f"  left      {template.left}"]
    lines.append(f"  right     {template.right}")
    if found is None or dropped is not None:
        return [*lines, f"  dropped   by change {dropped}"]
    for side in (template.left, template.right):
        lines += explain_reached(side.source, template_paths(side), walked)
    group = [t for t in tables if t.template.signature == template.signature]
    lines += [f"  window    {_window(template, constants)}", "  group", f"    signature {template.signature}"]
    lines += [*join_sizes(group), _anchor(found, statistics)]
    if found.is_plain:
        lines.append("    decided   by the set of equal values of a pair, looked up once per set")
    else:
        lines.append("    decided   row by row: constants, comparisons or columns beside the equalities")
    if any(side.conditions for side in template.sides):
        lines.append(_placement(found, statistics))
    return [*lines, "  sees      pairs whose earlier document arrived after its registration"]


def _placement(table: JoinTable, statistics: Statistics) -> str:
    """Where the constants are checked, and what the cost model says of it by now."""
    where = "above the join, on its pairs" if table.above else "below the join, on documents"
    if not is_movable(table.template):
        return f"    constants {where}: not all of them can be checked on pairs"
    cost = costs(table.template, table.anchor, table.columns, statistics)
    by = "statistics" if is_counted(table.template, table.anchor, statistics) else "operator"
    return f"    constants {where} (steps a document, by {by}: {cost.below:,.1f} below, {cost.above:,.1f} above)"


def join_sizes(group: Sequence[JoinTable]) -> list[str]:
    shapes = len({table.template for table in group})
    return [
        f"    size      queries: {sum(table.size for table in group):,}, shapes: {shapes:,}",
        "    shared    the walk of the document, the retained values, one look-up per value, one row per pair",
    ]


def paths_over(table: AnyTable, source: Source) -> Iterable[Path]:
    """The paths that a table reads of a source."""
    if isinstance(table, JoinTable | ManyTable | AnnotationTable):
        return table.paths([source])
    return table.paths if table.source == source else ()


def _window(template: JoinTemplate, constants: Sequence[Constant]) -> str:
    return ", ".join(
        f"{side} waits {constants[window.end.index]:g} {'rows' if window.rows else 's'}"
        for side, window in zip(("left", "right"), template.windows, strict=True)
        if window.end is not None
    )


def _anchor(table: JoinTable, statistics: Statistics) -> str:
    template = table.template
    if table.anchor < 0:
        return "    chosen    no equality: all pairs within the window are looked at"
    edge = template.edges[table.anchor]
    ends = ((template.left, edge.left), (template.right, edge.right))
    known = [statistics.get(path_key(t.source, dotted(t.path(node))), PathStatistics()) for t, node in ends]
    why = f"{max(k.distinct for k in known):,.0f} distinct values" if any(k.count for k in known) else "order"
    return f"    chosen    {template.shown(edge)} is enumerated (most selective, by {why})"
