"""`explain` for selections: the group of a query, its lookup, and the conditions that remain to be checked."""

from __future__ import annotations

from collections.abc import Sequence

from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.normal import ConstantCondition, NegatedCondition, Template, dotted
from fishweir.algebra.predicates import Predicate, show_constant
from fishweir.evaluate.bundles import requested_strategy
from fishweir.evaluate.group import ExplainContext, GroupSummary, PlacedBundle
from fishweir.evaluate.select.constant_tables import Table, template_paths
from fishweir.evaluate.select.explain_filters import explain_filter, explain_plan
from fishweir.evaluate.select.filters import FilterTable, predicate_paths
from fishweir.evaluate.select.region_rule import kernel_detail
from fishweir.evaluate.select.regions import RegionSet, sides
from fishweir.evaluate.statistics import PathStatistics, path_key
from fishweir.evaluate.witnesses.explain import explain_reached
from fishweir.evaluate.witnesses.path_tables import Path


def explain_selection(
    number: int, template: Template, constants: Sequence[Constant], about: ExplainContext
) -> list[str]:
    """The group, its signature and size, what is shared, and the remaining conjuncts."""
    lines = [f"  reads     {template.source}", f"  shape     {template}"]
    placed = [(p, table) for p in about.bundles for table in p.groups if isinstance(table, Table)]
    found = next(((p, t) for p, t in placed if t.template == template and number in t.numbers), None)
    if found is None or about.dropped is not None:
        return [*lines, f"  dropped   by change {about.dropped}"]
    lines += _paths(template.source, template_paths(template), about)
    if found[0].bundle.parameter:
        return [*lines, *_box(found[1], found[0], constants, about)]
    return [*lines, *_group(found[1], [table for _, table in placed], constants, about)]


def explain_filters(
    number: int, predicate: Predicate, constants: Sequence[Constant], about: ExplainContext
) -> list[str]:
    lines = [f"  reads     {predicate.source}", f"  shape     {predicate}"]
    mine = (p for p in about.bundles if p.groups[0].source == predicate.source and number in p.groups[0].members)  # type: ignore[attr-defined]
    found = next(mine, None)
    if found is None or about.dropped is not None:
        return [*lines, f"  dropped   by change {about.dropped}"]
    lines += _paths(predicate.source, predicate_paths(predicate), about)
    table, title = _planned(found)
    return [*lines, *explain_filter(table, number, predicate, list(constants), title)]


def describe_filters(bundles: Sequence[PlacedBundle]) -> list[str]:
    """The plan of each source's filters."""
    return [line for placed in bundles for line in explain_plan(*_planned(placed))]


def _planned(placed: PlacedBundle) -> tuple[FilterTable, str]:
    """A source's filters as planned by its strategy, and the name of the plan."""
    requested = requested_strategy(placed.bundle)
    table = placed.groups[0] if requested is None else requested.operator(placed).table
    assert isinstance(table, FilterTable)
    return table, "VCA with VCB" if requested is None else requested.title


def _paths(source: Source, own: dict[Path, bool], about: ExplainContext) -> list[str]:
    """The number of distinct paths of the source, how many of them the query reads, and how often they were reached."""
    shared = {path for group in about.groups for path in group.paths([source])}
    first = f"  paths     {len(set(own))} of the {len(shared)} that queries of {source} read"
    return [first, *explain_reached(source, own, about.walked)]


def _group(found: Table, tables: Sequence[Table], constants: Sequence[Constant], about: ExplainContext) -> list[str]:
    """The group of one conjunction of a query."""
    signature = found.anchor.signature(found.template)
    group = [t for t in tables if t.anchor.signature(t.template) == signature]
    lines = ["  group", f"    signature {signature}", *_sizes(group), *_anchor(found, constants, about)]
    return [*lines, _left_over(found.template, found.residual, constants)]


def _box(found: Table, placed: PlacedBundle, constants: Sequence[Constant], about: ExplainContext) -> list[str]:
    """The box of one conjunction of a query, among the boxes that it is looked up with."""
    region_set = _region_set(placed)
    region_sets = [p for p in map(_region_set, _regional(about.bundles)) if p.signature == region_set.signature]
    template, picked = found.template, sides(found.template)
    shown = " and ".join(_condition(template, template.constants[i], constants) for i in picked)
    detail = kernel_detail(region_set, about.statistics)
    lines = ["  group", f"    signature {region_set.signature}", *_box_sizes(region_sets), f"    sides     {shown}"]
    lines.append(f"    strategy  {region_set.strategy}{f', {detail}' if detail else ''}")
    left = tuple(i for i in range(len(template.constants)) if i not in picked)
    return [*lines, _left_over(template, left, constants)]


def describe_tables(bundles: Sequence[PlacedBundle]) -> list[GroupSummary]:
    """All groups by signature, and all sets of boxes."""
    groups: dict[str, list[Table]] = {}
    region_sets: dict[str, list[RegionSet]] = {}
    for placed in bundles:
        if placed.bundle.parameter:
            region_sets.setdefault(_region_set(placed).signature, []).append(_region_set(placed))
            continue
        for table in placed.groups:
            assert isinstance(table, Table)
            groups.setdefault(table.anchor.signature(table.template), []).append(table)
    found = [GroupSummary(sum(t.size for t in tables), s, _sizes(tables)) for s, tables in groups.items()]
    return found + [GroupSummary(sum(p.size for p in some), s, _box_sizes(some)) for s, some in region_sets.items()]


def _regional(bundles: Sequence[PlacedBundle]) -> list[PlacedBundle]:
    return [placed for placed in bundles if placed.bundle.parameter and isinstance(placed.groups[0], Table)]


def _region_set(placed: PlacedBundle) -> RegionSet:
    requested_strategy(placed.bundle)  # registers its kernel
    return RegionSet.of(placed)


def _left_over(template: Template, conditions: Sequence[int], constants: Sequence[Constant]) -> str:
    """The conditions that are checked after the lookup."""
    left: list[ConstantCondition | NegatedCondition] = [template.constants[i] for i in conditions]
    checks = [_condition(template, c, constants) for c in (*left, *template.negated)]
    checks += [template.shown_join(join) for join in template.joins]
    checks += [absence.shown([show_constant(constant) for constant in constants]) for absence in template.absent]
    return f"  remaining {' and '.join(checks) or 'nothing'}"


def _box_sizes(region_sets: Sequence[RegionSet]) -> list[str]:
    shapes = len({t.template for p in region_sets for t in p.tables})
    return [
        f"    size      queries: {sum(p.size for p in region_sets):,}, shapes: {shapes:,}",
        "    shared    the walk of the document, the binding, one join of each tuple with the boxes of all queries",
    ]


def _sizes(group: Sequence[Table]) -> list[str]:
    queries, outputs = sum(t.size for t in group), len(set().union(*(t.anchor_constants for t in group)))
    shapes = len({t.template for t in group})
    return [
        f"    size      queries: {queries:,}, shapes: {shapes:,}, distinct constants: {outputs:,}",
        "    shared    the walk of the document, one lookup per value, one output per constant",
    ]


def _anchor(table: Table, constants: Sequence[Constant], about: ExplainContext) -> list[str]:
    if not table.anchor.conditions:
        return ["    chosen    no condition compares with a constant"]
    picked = [table.template.constants[i] for i in table.anchor.conditions]
    shown = " and ".join(_condition(table.template, c, constants) for c in picked)
    key = path_key(table.template.source, dotted(table.template.path(table.anchor.node)))
    known = about.statistics.get(key, PathStatistics())
    why = f"statistics of {known.count:,} values, {known.distinct:,.0f} distinct" if known.count else "operator"
    return [f"    chosen    {shown} (most selective, by {why})"]


def _condition(
    template: Template, condition: ConstantCondition | NegatedCondition, constants: Sequence[Constant]
) -> str:
    return template.shown(condition, show_constant(constants[condition.slot]))
