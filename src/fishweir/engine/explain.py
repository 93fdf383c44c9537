"""`explain`: how a query is evaluated and what it shares, from the current plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.intervals import interval_text
from fishweir.algebra.nodes import Shape
from fishweir.catalog.catalog import Catalog, Query
from fishweir.catalog.subscribers import Subscription
from fishweir.engine.planning import Planning
from fishweir.engine.status import firing, moment
from fishweir.engine.timeliness import lateness_of
from fishweir.evaluate.group import ExplainContext, PlacedBundle
from fishweir.evaluate.plan.registry import KINDS
from fishweir.evaluate.plan.segments import Segment
from fishweir.evaluate.statistics import Statistics
from fishweir.evaluate.witnesses.explain import Walked
from fishweir.pipeline.batch import load_statistics
from fishweir.pipeline.commits import ResultsTable
from fishweir.pipeline.home import Home
from fishweir.pipeline.walk_counters import walk_counters_by_source


def explain_query(
    query: Query,
    segments: Sequence[Segment],
    statistics: Statistics,
    walked: Walked,
    subscribers: Sequence[Subscription] = (),
    late: Sequence[str] = (),
    waits: Sequence[str] = (),
) -> str:
    """How each alternative of a query is evaluated, when the query fires, and its actions. `waits` describes the
    absence that its documents wait for.
    """
    lines = [f"query {query.name}", *waits]
    groups = [group for segment in segments for group in segment.groups]
    for normal in to_normals(query.shape):
        kind = KINDS[normal.template.kind]
        about = ExplainContext(groups, _placed(segments, kind.name), statistics, walked, query.dropped)
        lines += kind.explain(query.number, normal.template, constants_of(normal, query.constants), about)
    if query.dropped is not None:
        return "\n".join(lines)
    if query.schedule.start is not None:
        since = moment(query.schedule.start)
        lines = [line.replace("after its registration", f"since {since}") for line in lines]
    actions = [f"  does      {one.action}" for one in subscribers if one.by_query]
    lines += [*late, f"  fires     {firing(query)}", *actions]
    if query.schedule.every and not actions:
        lines.append("  does      nothing: it has no action; its results can be read")
    return "\n".join([*lines, *(f"  delivers  {one}" for one in subscribers if not one.by_query)])


def explain_all(segments: Sequence[Segment]) -> str:
    """All groups, the largest first."""
    parts = [kind.describe(_placed(segments, name)) for name, kind in KINDS.items()]
    described = sorted((one for some, _ in parts for one in some), key=lambda one: -one.size)
    filled = sum(1 for segment in segments if segment.groups)
    lines = [f"{len(described)} groups in {filled} segments"]
    for one in described:
        lines += ["  group", f"    signature {one.signature}", *one.lines]
    return "\n".join([*lines, *(line for _, plans in parts for line in plans)])


def _placed(segments: Sequence[Segment], kind: str) -> list[PlacedBundle]:
    return [placed for segment in segments for placed in segment.placed if placed.groups[0].kind == kind]


def explain(home: Home, catalog: Catalog, table: ResultsTable, planning: Planning, query: Query | None) -> str:
    """The group of a query, or all groups: the planned ones, and those of the next micro-batch."""
    statistics = load_statistics(home)
    segments = planning.segments(statistics)
    if query is None:
        return explain_all(segments)
    walked = walk_counters_by_source(home, catalog.streams().values())
    late = lateness_of(home, catalog, table, query)
    waits = list(_absences(query))
    return explain_query(query, segments, statistics, walked, catalog.subscribers(query.name), late, waits)


def _absences(query: Query) -> Iterator[str]:
    """For a query with `NOT FOLLOWED BY`: how long its documents wait, and for what."""
    if isinstance(query.shape, Shape) and query.shape.unless is not None:
        end = query.shape.unless.windows[0].end
        assert end is not None
        window = interval_text(float(query.constants[end.index]))
        yield f"  absence   documents whose window of {window} has passed without a match,"
        yield f"            by the watermark of the second stream: {' '.join(query.text.split())}"
