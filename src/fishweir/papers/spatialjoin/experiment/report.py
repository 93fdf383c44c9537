"""Terminal output: the tables of points, and the targets with the measurements."""

from __future__ import annotations

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fishweir.papers.experiment.closing import show_targets, warn_if_busy
from fishweir.papers.experiment.figures import Outcome, Target
from fishweir.papers.spatialjoin.experiment import joins
from fishweir.papers.spatialjoin.experiment.contest import NARROW, WIDE
from fishweir.papers.spatialjoin.experiment.measure import Point

PAPER_TABLE_3 = {
    4: {2_000: (100, 406), 4_000: (120, 391), 6_000: (120, 391), 8_000: (160, 381), 10_000: (200, 375)},
    8: {2_000: (200, 570), 4_000: (240, 526), 6_000: (360, 518), 8_000: (400, 510), 10_000: (400, 506)},
}
"""The paper's best Ndc and microseconds per tuple on its machine, by attributes and Nbatch."""
LEGEND = """\
Microseconds per tuple until all pairs are listed in memory: processor time of one thread (Spark: wall time), the least
of several repetitions; batches of 500 tuples (SJ-Batch: all), the pairs of each batch are freed before the next.
Registration in seconds (s). ratio: IBS to chosen; x: relative to chosen. ~: extrapolated from fewer tuples, since it
would have taken too long. 50%: only half of the attributes have a condition; otherwise all have. bitmaps: the
factorized form, which lists nothing. Figure 18: a tuple that probes the full window of the other stream; ratio:
relative to IBS-JS. Fishweir: the join stage as in the engine, from tuples to runs, pairs and the resulting state."""


def show(outcome: Outcome, console: Console) -> None:
    console.print(_by_work(outcome.find(experiment="figure 15"), "Figure 15: queries x attributes", "Nquery"))
    console.print(_by_work(outcome.find(experiment="figure 16"), "Figure 16: attributes with a condition", "Rpred"))
    console.print(_by_work(outcome.find(experiment="figure 17"), "Figure 17: skew of the tuples", "Rskew"))
    console.print(_joins(outcome.find(experiment=joins.EXPERIMENT)))
    console.print(_table_3(outcome.find(experiment="table 3")))
    console.print(_cluster_sizes(outcome.find(experiment="Ndc")))
    for regime in (WIDE, NARROW):
        console.print(_contest(outcome.find(experiment=regime), f"The {regime} regime"))
    console.print(LEGEND, style="dim")
    warn_if_busy(outcome.about, console)
    show_targets(outcome.targets, console)


def label_of(point: Point) -> str:
    if point.experiment == "figure 16":
        return f"{point.rpred:.0%}"
    if point.experiment == "figure 17":
        return point.data.split(" of ")[0] if point.rskew is None else f"{point.rskew:.0%}"
    half = "" if point.rpred == 1 else f", {point.rpred:.0%}"
    return f"{point.queries:,} x {point.attributes}{half}"


def _by_work(points: list[Point], title: str, first: str) -> Table:
    """A line per work; the ratio is IBS to chosen."""
    heads = (first, "matches", "SJ-Batch", "Ndc", "SJ-Imm.", "IBS", "chosen", "ratio")
    table = _table(heads, title)
    for label in dict.fromkeys(label_of(point) for point in points):
        by_name = {p.contestant.split(" ")[0]: p for p in points if label_of(p) == label}
        batch, chosen, ibs = by_name["sj-batch"], by_name["chosen"], by_name["ibs"]
        table.add_row(
            label,
            f"{chosen.matches_per_tuple:,.0f}",
            _us(batch),
            str(batch.ndc),
            _us(by_name["sj-immediate"]),
            _us(ibs),
            f"{chosen.contestant[8:-1]} {_us(chosen)}",
            f"{ibs.seconds_per_tuple / chosen.seconds_per_tuple:,.1f}x",
        )
    return table


def _joins(points: list[Point]) -> Table:
    """A line per number of queries and window; both ratios are to IBS-JS."""
    heads = ("window", "Nquery", "results", "IBS-JS", "SJ-Join", "Ndc", "ratio", "Fishweir", "ratio")
    table = _table(heads, "Figure 18: sliding window joins of two streams")
    for work in dict.fromkeys(p.work for p in points):
        of = {p.contestant: p for p in points if p.work == work}
        sj, own = of["sj-join"], of["fishweir"]
        table.add_row(
            f"{sj.window:,}",
            f"{sj.queries:,}",
            f"{own.matches_per_tuple:,.0f}",
            _us(of["ibs-js"]),
            _us(sj),
            str(sj.ndc),
            f"{sj.ratio:.1f}x",
            _us(own),
            f"{own.ratio:.1f}x",
        )
    return table


def _table_3(points: list[Point]) -> Table:
    heads = ("Nattr", "Nbatch", "Ndc found", "µs per tuple", "paper's Ndc", "paper's µs")
    queries = f", Nquery = {points[0].queries:,}" if points else ""
    table = _table(heads, f"Table 3: SJ-Batch{queries}")
    for p in points:
        paper = PAPER_TABLE_3.get(p.attributes, {}).get(p.batch or 0)
        theirs = [str(number) for number in paper] if paper else ["", ""]
        table.add_row(str(p.attributes), f"{p.batch:,}", str(p.ndc), _us(p), *theirs)
    return table


def _cluster_sizes(points: list[Point]) -> Table:
    """A line per data set: the size found, and how much the best fixed one would have saved."""
    table = _table(("tuples", "Ndc found", "µs per tuple", "best fixed Ndc", "µs per tuple", "found / best"), "Ndc")
    for data in dict.fromkeys(p.data for p in points):
        (found,) = (p for p in points if (p.data, p.note) == (data, "found"))
        best = min((p for p in points if (p.data, p.note) == (data, "fixed")), key=lambda p: p.seconds_per_tuple)
        ratio = found.seconds_per_tuple / best.seconds_per_tuple
        table.add_row(data.split(" of ")[0], str(found.ndc), _us(found), str(best.ndc), _us(best), f"{ratio:.2f}")
    return table


def _contest(points: list[Point], title: str) -> Table:
    """A line per contestant, three columns per work: time, time relative to chosen, registration."""
    names = list(dict.fromkeys(p.work for p in points))
    heads = [""]
    for name in names:
        head = name.split(", ", 1)[1].replace(", ", "\n")
        matches = next(p.matches_per_tuple for p in points if p.work == name)
        heads += [f"{head}\n{matches:,.2g} matches" if matches < 10 else f"{head}\n{matches:,.0f} matches", "x", "s"]
    table = _table(heads, title)
    for contestant in dict.fromkeys(_plain(p) for p in points):
        line = [contestant]
        for name in names:
            (p,) = (p for p in points if (p.work, _plain(p)) == (name, contestant))
            which = f"{p.contestant[8:-1]} " if contestant == "chosen" else ""
            line += [f"{which}{_us(p)}", _ratio(p), f"{p.build_seconds:.2f}"]
        table.add_row(*line)
    return table


def _ratio(point: Point) -> str:
    ratio = point.ratio or 0.0
    return f"{ratio:,.{0 if ratio >= 100 else 1}f}"


def _plain(point: Point) -> str:
    return "chosen" if point.contestant.startswith("chosen") else point.contestant


def _table(heads: Iterable[str], title: str) -> Table:
    table = Table(*heads, title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in table.columns:
        column.justify, column.no_wrap = "right", True
    return table


def _us(point: Point) -> str:
    amount = point.microseconds
    return f"{'~' if point.extrapolated else ''}{amount:,.0f}" if amount >= 100 else f"{amount:.1f}"


# Targets


def targets(outcome: Outcome, queries: int = 100_000) -> list[Target]:
    """Each target at the sizes it names. Targets are not measured in a quick run."""
    return [
        _against_ibs(outcome, queries, 1.0),
        _against_ibs(outcome, queries, 0.5),
        _against_ibs_js(outcome),
        *(_against_outsiders(outcome, queries, regime, least) for regime, least in ((WIDE, 3.0), (NARROW, 1.0))),
    ]


def _against_ibs(outcome: Outcome, queries: int, rpred: float) -> Target:
    name = f"chosen vs IBS at {queries:,} x 8, conditions on {rpred:.0%} of the attributes: at least 36x"
    found = outcome.find(experiment="figure 15", queries=queries, attributes=8, rpred=rpred)
    times = {p.contestant.split(" ")[0]: p for p in found}
    if "ibs" not in times or "chosen" not in times:
        return Target(name, "", None)
    ratio = times["ibs"].seconds_per_tuple / times["chosen"].seconds_per_tuple
    words = f"{times['ibs'].microseconds:.0f} to {times['chosen'].microseconds:.1f} µs: {ratio:.1f}x"
    return Target(name, words, ratio >= 36)


def _against_ibs_js(outcome: Outcome, window: int = 10_000) -> Target:
    """The least of the ratios counts, whatever the number of queries."""
    name = f"SJ-Join vs IBS-JS with windows of {window:,}: at least 7x"
    found = outcome.find(experiment=joins.EXPERIMENT, window=window, contestant="sj-join")
    if not found:
        return Target(name, "", None)
    least = min(found, key=lambda p: p.ratio or 0)
    most = max(p.ratio or 0 for p in found)
    words = f"{least.ratio:.1f}x ({least.queries:,} queries) to {most:.1f}x"
    return Target(name, words, (least.ratio or 0) >= 7)


def _against_outsiders(outcome: Outcome, queries: int, regime: str, least: float) -> Target:
    """The worst of the regime's works counts."""
    goal = f"at least {least:g}x the best of the others" if least > 1 else "ahead of all others"
    name = f"chosen in the {regime} regime: {goal}"
    worst: tuple[float, str] | None = None
    points = outcome.find(experiment=regime, queries=queries)
    for work in dict.fromkeys(p.work for p in points):
        others = [p for p in points if p.work == work and not p.contestant.startswith(("chosen", "ibs", "grid"))]
        best = min(others, key=lambda p: p.ratio or 0)
        ratio = best.ratio or 0.0
        if worst is None or ratio < worst[0]:
            worst = ratio, f"{best.contestant} is next, {ratio:.1f}x ({work})"
    return Target(name, worst[1], worst[0] > 1 and worst[0] >= least) if worst else Target(name, "", None)
