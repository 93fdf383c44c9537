"""Terminal output: a table per figure, and the targets with the measurements."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fishweir.papers.experiment.closing import show_targets, warn_if_busy
from fishweir.papers.experiment.figures import Outcome, Target
from fishweir.papers.mmqjp.experiment.contestants import (
    FAST,
    SEQUENTIAL,
    SEQUENTIAL_SQL,
    SPARK_PLAIN,
    SPARK_VIEWS,
    VIEWS,
)
from fishweir.papers.mmqjp.experiment.measure import Point
from fishweir.papers.mmqjp.experiment.through_spark import STREAM_JOIN

TITLES = {
    "figure 8": ("Figure 8: two-level schema", "queries"),
    "figure 9": ("Figure 9: two-level schema", "leaves"),
    "figure 10": ("Figure 10: two-level schema", "Zipf"),
    "figure 11": ("Figure 11: three-level schema", "queries"),
    "figure 12": ("Figure 12: three-level schema", "joins"),
    "figure 13": ("Figure 13: three-level schema", "Zipf"),
    "figure 16": ("Figure 16: the RSS stream", "queries"),
    "stream": ("A stream of the two-level schema", "queries"),
    "through Spark": ("The RSS stream through Spark, end to end", "queries"),
    "retained": ("Through Spark, by documents retained", "documents"),
}
STREAMS = ("figure 16", "stream", "through Spark", "retained")
LEGEND = """\
Milliseconds of the join for the second of two documents: the mean of up to 10 repetitions, with the state restored each
time as in the paper; in brackets the first time, before anything about the pair is cached. For streams: documents per
second; in brackets the number of documents after which the contestant was stopped, because {patience:g} s had passed.
With more documents retained, its rate would drop further. All computed results agree.
~: extrapolated (Sequential from a sample of the queries). -: not run at that size (Spark SQL takes a second or two per
template). templates: with ordered sides; in brackets up to exchange of the sides, as section 6.1 of the paper seems to
count them (it has 22 for 100,000 queries of the three-level schema). register: seconds of the first contestant, part of
which the others share. stream: 100,000 queries as published, one row of RT each, in batches."""


def show(outcome: Outcome, console: Console) -> None:
    for experiment in TITLES:
        points = outcome.find(experiment=experiment)
        if points:
            console.print(_table(experiment, points))
    console.print(_views(outcome.find(experiment="figure 8"), "Figure 14: views, two-level"))
    console.print(_views(outcome.find(experiment="figure 11"), "Figure 15: views, three-level"))
    console.print(LEGEND.format(patience=outcome.about["patience"]), style="dim", markup=False)
    warn_if_busy(outcome.about, console)
    show_targets(outcome.targets, console)


def _table(experiment: str, points: list[Point]) -> Table:
    names = list(dict.fromkeys(p.contestant for p in points))
    title, across = TITLES[experiment]
    table = _plain((across, "templates", "results", "register", *(name.replace(", ", "\n") for name in names)), title)
    for x in dict.fromkeys(p.x for p in points):
        line = {p.contestant: p for p in points if p.x == x}
        first = next(iter(line.values()))
        cells = [_cell(line.get(name), experiment) for name in names]
        table.add_row(
            f"{x:,g}" if x < 1e6 else f"{x:,.0f}",
            _templates(first),
            f"{first.results:,}",
            f"{first.register_seconds:.2f}",
            *cells,
        )
    return table


def _templates(point: Point) -> str:
    return "" if point.templates is None else f"{point.templates} ({point.templates_exchanged})"


def _cell(point: Point | None, experiment: str) -> str:
    if point is None:
        return "-"
    mark = "~" if point.extrapolated else ""
    if experiment in STREAMS:
        stopped = f" ({point.documents:,})" if point.stopped else ""
        return f"{mark}{_short(point.documents_per_second)}{stopped}"
    cold = "" if point.cold_seconds is None else f" ({_short(1000 * point.cold_seconds)})"
    return f"{mark}{_short(1000 * point.seconds)}{cold}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _views(points: list[Point], title: str) -> Table:
    """The times at the largest number of queries: without views, with views, and the part for the views."""
    table = _plain(("contestant", "queries", "join ms", "of which STR, RL and RR"), title)
    largest = max((p.queries for p in points), default=0)
    for p in points:
        if p.queries == largest and p.contestant not in (SEQUENTIAL, SEQUENTIAL_SQL):
            views = "" if p.views_seconds is None else f"{1000 * p.views_seconds:.1f}"
            table.add_row(p.contestant, f"{p.queries:,}", f"{1000 * p.seconds:,.1f}", views)
    return table


def _plain(heads: tuple[str, ...], title: str) -> Table:
    table = Table(*heads, title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in table.columns:
        column.justify = "right"
    return table


# Targets


def targets(outcome: Outcome, queries: int = 100_000) -> list[Target]:
    """The targets at the sizes they name. They are not measured in a quick run, or without the fast strategy."""
    return [
        *(_faster(outcome, figure, queries, SEQUENTIAL, 1000) for figure in ("figure 8", "figure 11", "stream")),
        *(_faster(outcome, figure, queries, VIEWS, 10) for figure in ("figure 8", "figure 11", "stream")),
        _than_spark(outcome),
        _flat(outcome),
    ]


def _than_spark(outcome: Outcome, least: float = 5) -> Target:
    name = f"RSS through Spark: at least {least:g}x the documents per second of {STREAM_JOIN}"
    rates = {p.contestant: p.documents_per_second for p in outcome.find(experiment="through Spark")}
    if not rates:
        return Target(name, "", None)
    ratio = rates[FAST] / rates[STREAM_JOIN]
    return Target(name, f"{rates[STREAM_JOIN]:,.0f} to {rates[FAST]:,.0f}: {ratio:.1f}x", ratio >= least)


def _flat(outcome: Outcome, least: float = 0.7) -> Target:
    name = f"ten times the documents retained: at least {least:g} of the documents per second"
    points = sorted(outcome.find(experiment="retained"), key=lambda p: p.x)
    if len(points) < 2:
        return Target(name, "", None)
    few, many = (p.documents_per_second for p in points)
    words = f"{few:,.0f} at {points[0].x:,.0f}, {many:,.0f} at {points[1].x:,.0f}: {many / few:.2f}"
    return Target(name, words, many / few >= least)


def _faster(outcome: Outcome, figure: str, queries: int, other: str, least: float) -> Target:
    name = f"{figure}, {queries:,} queries: {FAST} at least {least:,g}x faster than {other}"
    times = {p.contestant: p for p in outcome.find(experiment=figure, queries=queries)}
    if FAST not in times or other not in times:
        return Target(name, "", None)
    ratio = times[other].seconds / times[FAST].seconds
    guess = "extrapolated " if times[other].extrapolated else ""
    words = f"{guess}{1000 * times[other].seconds:,.1f} to {1000 * times[FAST].seconds:.3f} ms: {ratio:,.0f}x"
    cold = times[other].cold_seconds, times[FAST].cold_seconds
    if cold[0] is not None and cold[1]:
        words += f"; first time {cold[0] / cold[1]:,.0f}x"
    return Target(name, words, ratio >= least)


STYLES = {
    SEQUENTIAL: {"color": "tab:red", "marker": "s"},
    SEQUENTIAL_SQL: {"color": "tab:pink", "marker": "x"},
    SPARK_PLAIN: {"color": "tab:brown", "marker": "v"},
    SPARK_VIEWS: {"color": "tab:purple", "marker": "P"},
    "MMQJP, DuckDB": {"color": "tab:orange", "marker": "D"},
    VIEWS: {"color": "tab:green", "marker": "^"},
    FAST: {"color": "tab:blue", "marker": "o"},
}
