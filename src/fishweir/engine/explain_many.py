"""`explain` of a join of three and more streams: its signature, its windows, what it shares, how it is joined."""

from __future__ import annotations

from collections.abc import Sequence

from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.nodes import Constant
from fishweir.engine.explain_reached import Walked, explain_reached
from fishweir.evaluate.join.many.tables import ManyTable
from fishweir.evaluate.plan.segments import Segment
from fishweir.evaluate.select.constant_tables import template_paths


def explain_many(
    number: int,
    template: JoinTemplate,
    constants: Sequence[Constant],
    segments: Sequence[Segment],
    walked: Walked,
    dropped: int | None,
) -> list[str]:
    tables = [t for s in segments for t in s.tables if isinstance(t, ManyTable)]
    found = next((t for t in tables if t.template == template and number in t.numbers), None)
    lines = [f"  reads     {', '.join(map(str, template.sources))}"]
    lines += [f"  side {i}    {side}" for i, side in enumerate(template.sides, 1)]
    if found is None or dropped is not None:
        return [*lines, f"  dropped   by change {dropped}"]
    for side in dict.fromkeys(template.sides):
        lines += explain_reached(side.source, template_paths(side), walked)
    group = [t for t in tables if t.template.signature == template.signature]
    waits = (
        f"{source} waits {constants[window.end.index]:g} {'rows' if window.rows else 's'}"
        for source, window in zip(template.sources, template.windows, strict=True)
        if window.end is not None
    )
    lines += [f"  window    {', '.join(waits)}", "  group", f"    signature {template.signature}", *many_sizes(group)]
    lines.append("    decided   side by side from each new document: equal values first, else what leaves fewest")
    if any(side.conditions for side in template.sides):
        lines.append("    constants below the join, on documents")
    return [*lines, "  sees      combinations whose earliest arrived document came after its registration"]


def many_sizes(group: Sequence[ManyTable]) -> list[str]:
    shapes = len({table.template for table in group})
    return [
        f"    size      queries: {sum(table.size for table in group):,}, shapes: {shapes:,}",
        "    shared    the walk of the document, the retained rows, one look-up per value, one row per combination",
    ]
