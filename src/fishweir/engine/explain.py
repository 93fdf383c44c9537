"""`explain`: how a query is evaluated and what it shares, from the plan as it is now."""

from __future__ import annotations

from collections.abc import Sequence

from fishweir.algebra.annotations import AnnotationTemplate
from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.joins import JoinTemplate
from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.normal import ConstantCondition, NegatedCondition, Template, dotted
from fishweir.algebra.predicates import Predicate, show_constant
from fishweir.catalog.catalog import Query
from fishweir.catalog.subscribers import Subscription
from fishweir.engine.explain_annotations import annotation_groups, annotation_sizes, explain_annotation
from fishweir.engine.explain_filters import explain_filter, explain_plan
from fishweir.engine.explain_joins import explain_join, join_sizes, paths_over
from fishweir.engine.explain_many import explain_many, many_sizes
from fishweir.engine.explain_reached import Walked, explain_reached
from fishweir.evaluate.join.annotations.tables import AnnotationTable
from fishweir.evaluate.join.many.tables import ManyTable
from fishweir.evaluate.join.tables import JoinTable
from fishweir.evaluate.plan.segments import Segment
from fishweir.evaluate.select.constant_tables import Table, template_paths
from fishweir.evaluate.select.filters import FilterTable, predicate_paths
from fishweir.evaluate.select.region_rule import cluster_size
from fishweir.evaluate.select.regions import Pooled, sides
from fishweir.evaluate.statistics import PathStatistics, Statistics, path_key


def explain_query(
    query: Query,
    segments: Sequence[Segment],
    statistics: Statistics,
    walked: Walked,
    subscribers: Sequence[Subscription] = (),
) -> str:
    """Group, signature, size, what is shared, and the conjuncts left over."""
    lines = [f"query {query.name}"]
    for normal in to_normals(query.shape):
        template, constants = normal.template, constants_of(normal, query.constants)
        if isinstance(template, JoinTemplate) and len(template.sides) == 2:
            lines += explain_join(query.number, template, constants, segments, statistics, walked, query.dropped)
            continue
        if isinstance(template, JoinTemplate):
            lines += explain_many(query.number, template, constants, segments, walked, query.dropped)
            continue
        if isinstance(template, AnnotationTemplate):
            lines += explain_annotation(query.number, template, constants, segments, query.dropped)
            continue
        lines += [f"  reads     {template.source}", f"  shape     {template}"]
        found = _table_of(query.number, template, segments)
        if found is None or query.dropped is not None:
            return "\n".join([*lines, f"  dropped   by change {query.dropped}"])
        own = template_paths(template) if isinstance(template, Template) else predicate_paths(template)
        lines += [_paths(template.source, len(set(own)), segments), *explain_reached(template.source, own, walked)]
        if isinstance(found, FilterTable):
            assert isinstance(template, Predicate)
            lines += explain_filter(found, query.number, template, constants)
            continue
        pool = _pool_of(found, segments)
        if pool is None:
            lines += _group(found, constants, segments, statistics)
        else:
            lines += _box(found, pool, constants, segments, statistics)
    lines += _schedule(query)
    return "\n".join([*lines, *(f"  sends     {subscription}" for subscription in subscribers)])


def _paths(source: Source, own: int, segments: Sequence[Segment]) -> str:
    """How many distinct paths there are over the source, and how many of them the query reads."""
    shared = {path for s in segments for t in s.tables for path in paths_over(t, source)}
    return f"  paths     {own} of the {len(shared)} that queries of {source} read"


def _group(found: Table, constants: list[Constant], segments: Sequence[Segment], statistics: Statistics) -> list[str]:
    """The group of one conjunction of a query."""
    signature = found.anchor.signature(found.template)
    tables = [t for s in segments for t in s.tables if isinstance(t, Table)]
    group = [t for t in tables if t.anchor.signature(t.template) == signature]
    lines = ["  group", f"    signature {signature}", *_sizes(group), *_anchor(found, constants, statistics)]
    return [*lines, _left_over(found.template, found.residual, constants)]


def _box(
    found: Table, pool: Pooled, constants: list[Constant], segments: Sequence[Segment], statistics: Statistics
) -> list[str]:
    """The box of one conjunction of a query, among the boxes it is looked up with."""
    pools = [p for s in segments for p in s.pooled if p.signature == pool.signature]
    template, picked = found.template, sides(found.template)
    shown = " and ".join(_condition(template, template.constants[i], constants) for i in picked)
    clusters = cluster_size(pool, statistics)
    lines = ["  group", f"    signature {pool.signature}", *_box_sizes(pools), f"    sides     {shown}"]
    lines.append(f"    strategy  {pool.strategy}{f', data clusters of {clusters} (Ndc)' if clusters else ''}")
    left = tuple(i for i in range(len(template.constants)) if i not in picked)
    return [*lines, _left_over(template, left, constants)]


def _left_over(template: Template, conditions: Sequence[int], constants: list[Constant]) -> str:
    """What is checked after the look-up."""
    left: list[ConstantCondition | NegatedCondition] = [template.constants[i] for i in conditions]
    checks = [_condition(template, c, constants) for c in (*left, *template.negated)]
    checks += [template.shown_join(join) for join in template.joins]
    checks += [absence.shown([show_constant(constant) for constant in constants]) for absence in template.absent]
    return f"  left over {' and '.join(checks) or 'nothing'}"


def explain_all(segments: Sequence[Segment]) -> str:
    """All groups, the largest first."""
    groups: dict[str, list[Table]] = {}
    plans: list[str] = []
    joins: dict[str, list[JoinTable]] = {}
    many: dict[str, list[ManyTable]] = {}
    pools: dict[str, list[Pooled]] = {}
    notes: list[AnnotationTable] = []
    for segment in segments:
        for pool in segment.pooled:
            pools.setdefault(pool.signature, []).append(pool)
        together = {i for pool in segment.pools for i in pool.tables}
        for table in (t for i, t in enumerate(segment.tables) if i not in together):
            if isinstance(table, FilterTable):
                plans += explain_plan(table)
                continue
            if isinstance(table, JoinTable):
                joins.setdefault(table.template.signature, []).append(table)
                continue
            if isinstance(table, ManyTable):
                many.setdefault(table.template.signature, []).append(table)
                continue
            if isinstance(table, AnnotationTable):
                notes.append(table)
                continue
            groups.setdefault(table.anchor.signature(table.template), []).append(table)
    sized = [(sum(t.size for t in tables), signature, _sizes(tables)) for signature, tables in groups.items()]
    sized += [(sum(p.size for p in some), signature, _box_sizes(some)) for signature, some in pools.items()]
    sized += [(sum(t.size for t in some), signature, join_sizes(some)) for signature, some in joins.items()]
    sized += [(sum(t.size for t in some), signature, many_sizes(some)) for signature, some in many.items()]
    sized += [(size, signature, annotation_sizes(size)) for signature, size in annotation_groups(notes).items()]
    filled = sum(1 for segment in segments if segment.tables)
    lines = [f"{len(sized)} groups in {filled} segments"]
    for _, signature, shown in sorted(sized, key=lambda item: -item[0]):
        lines += ["  group", f"    signature {signature}", *shown]
    return "\n".join([*lines, *plans])


def _pool_of(table: Table, segments: Sequence[Segment]) -> Pooled | None:
    pools = (pool for segment in segments for pool in segment.pooled)
    return next((pool for pool in pools if any(t is table for t in pool.tables)), None)


def _box_sizes(pools: Sequence[Pooled]) -> list[str]:
    shapes = len({t.template for p in pools for t in p.tables})
    return [
        f"    size      queries: {sum(p.size for p in pools):,}, shapes: {shapes:,}",
        "    shared    the walk of the document, the binding, one join of a tuple with the boxes of all queries",
    ]


def _table_of(number: int, template: Template | Predicate, segments: Sequence[Segment]) -> Table | FilterTable | None:
    """Where a query is: with its template, or among the filters of its source."""
    for table in (table for segment in segments for table in segment.tables):
        if isinstance(table, JoinTable | ManyTable | AnnotationTable):
            continue
        if isinstance(table, Table):
            mine = table.template == template and number in table.numbers
        else:
            mine = isinstance(template, Predicate) and table.source == template.source and number in table.members
        if mine:
            return table
    return None


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
    why = f"statistics of {known.count:,} values, {known.distinct:,.0f} distinct" if known.count else "operator"
    return [f"    chosen    {shown} (most selective, by {why})"]


def _condition(template: Template, condition: ConstantCondition | NegatedCondition, constants: list[Constant]) -> str:
    constant = constants[condition.slot]
    return template.shown(condition, show_constant(constant))


def _schedule(query: Query) -> list[str]:
    schedule, action = query.schedule, query.action
    when = "on change" if not schedule.every else f"every {schedule.every:g} s"
    lines = [f"  fires     {when}"]
    if action:
        lines.append(f"  does      {' '.join((action.name, *action.arguments))}")
    return lines
