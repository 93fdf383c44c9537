"""`explain`: how a query is evaluated and what it shares, from the plan as it is now."""

from __future__ import annotations

from collections.abc import Sequence

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.nodes import Constant
from fishweir.algebra.normal import ConstantCondition, NegatedCondition, Template, dotted
from fishweir.catalog.catalog import Query
from fishweir.sharing.plan import template_paths
from fishweir.sharing.segments import Segment
from fishweir.sharing.statistics import PathStatistics, Statistics, path_key
from fishweir.sharing.tables import Table


def explain_query(query: Query, segments: Sequence[Segment], statistics: Statistics) -> str:
    """Group, signature, size, what is shared, and the conjuncts left over."""
    lines = [f"query {query.name}"]
    for normal in to_normals(query.shape):
        lines += [f"  reads     {normal.template.source}", f"  shape     {normal.template}"]
        found = _table_of(query.number, normal.template, segments)
        if found is None or query.dropped is not None:
            return "\n".join([*lines, f"  dropped   by change {query.dropped}"])
        lines.append(_paths(normal.template, segments))
        lines += _group(found, constants_of(normal, query.constants), segments, statistics)
    return "\n".join([*lines, *_schedule(query)])


def _paths(template: Template, segments: Sequence[Segment]) -> str:
    """How many distinct paths there are over the source, and how many of them the query reads."""
    templates = {t.template for s in segments for t in s.tables if t.template.source == template.source}
    shared = {path for one in templates for path in template_paths(one)}
    return f"  paths     {len(template_paths(template))} of the {len(shared)} that queries of {template.source} read"


def _group(
    found: Table, constants: list[Constant], segments: Sequence[Segment], statistics: Statistics
) -> list[str]:
    """The group of one conjunction of a query."""
    signature = found.anchor.signature(found.template)
    group = [t for s in segments for t in s.tables if t.anchor.signature(t.template) == signature]
    lines = ["  group", f"    signature {signature}", *_sizes(group), *_anchor(found, constants, statistics)]
    residual: list[ConstantCondition | NegatedCondition] = [found.template.constants[i] for i in found.residual]
    left = [*residual, *found.template.negated]
    checks = [_condition(found.template, c, constants) for c in left]
    checks += [
        f"{dotted(found.template.path(j.left))} {j.op} {dotted(found.template.path(j.right))}"
        for j in found.template.joins
    ]
    return [*lines, f"  left over {' and '.join(checks) or 'nothing'}"]


def explain_all(segments: Sequence[Segment]) -> str:
    """All groups, the largest first."""
    groups: dict[str, list[Table]] = {}
    for segment in segments:
        for table in segment.tables:
            groups.setdefault(table.anchor.signature(table.template), []).append(table)
    ordered = sorted(groups.items(), key=lambda item: -sum(t.size for t in item[1]))
    filled = sum(1 for segment in segments if segment.tables)
    lines = [f"{len(groups)} groups in {filled} segments"]
    for signature, tables in ordered:
        lines += ["  group", f"    signature {signature}", *_sizes(tables)]
    return "\n".join(lines)


def _table_of(number: int, template: Template, segments: Sequence[Segment]) -> Table | None:
    tables = (table for segment in segments for table in segment.tables if table.template == template)
    return next((table for table in tables if number in table.numbers), None)


def _sizes(group: Sequence[Table]) -> list[str]:
    queries, outputs = sum(t.size for t in group), len(set().union(*(t.anchor_constants for t in group)))
    shapes = len({t.template for t in group})
    return [
        f"    size      queries: {queries:,}, shapes: {shapes:,}, different constants: {outputs:,}",
        "    shared    the walk of the document, one look-up per value, one output per constant",
    ]


def _anchor(table: Table, constants: list[Constant], statistics: Statistics) -> list[str]:
    if not table.anchor.conditions:
        return ["    chosen    no condition compares with a constant"]
    picked = [table.template.constants[i] for i in table.anchor.conditions]
    shown = " and ".join(_condition(table.template, c, constants) for c in picked)
    key = path_key(table.template.source, dotted(table.template.path(table.anchor.node)))
    known = statistics.get(key, PathStatistics())
    why = (
        f"statistics of {known.count:,} values, {known.distinct:,.0f} distinct" if known.count else "operator"
    )
    return [f"    chosen    {shown} (most selective, by {why})"]


def _condition(
    template: Template, condition: ConstantCondition | NegatedCondition, constants: list[Constant]
) -> str:
    constant = constants[condition.slot]
    return template.shown(condition, f'"{constant}"' if isinstance(constant, str) else f"{constant:g}")


def _schedule(query: Query) -> list[str]:
    schedule, action = query.schedule, query.action
    when = "on change" if not schedule.every else f"every {schedule.every:g} s"
    lines = [f"  fires     {when}"]
    if action:
        lines.append(f"  does      {' '.join((action.name, *action.arguments))}")
    return lines
