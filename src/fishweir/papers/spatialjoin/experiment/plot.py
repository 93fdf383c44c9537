"""Draws figures 15 to 17 of Spatial Join CQ, Ndc, and the contest with outsiders; 18 is in `plot_joins`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fishweir.papers.experiment.figures import Outcome
from fishweir.papers.experiment.plot import load_pyplot
from fishweir.papers.spatialjoin.experiment.contest import NARROW, WIDE
from fishweir.papers.spatialjoin.experiment.measure import Point, time_label
from fishweir.papers.spatialjoin.experiment.plot_joins import draw_joins

LINES: dict[str, tuple[str, dict[str, Any]]] = {
    "ibs": ("IBS", {"color": "tab:red", "marker": "s"}),
    "sj-immediate": ("SJ-Immediate", {"color": "tab:orange", "marker": "D"}),
    "sj-batch": ("SJ-Batch", {"color": "tab:green", "marker": "^"}),
    "chosen": ("the strategy chosen", {"color": "tab:blue", "marker": "o"}),
}


def draw(outcome: Outcome, path: Path) -> None:
    """Draws three pictures. The names of the second and third have a suffix."""
    draw_paper(outcome, path)
    draw_joins(outcome, path.with_stem(f"{path.stem}-joins"))
    draw_contest(outcome, path.with_stem(f"{path.stem}-contest"))


def draw_paper(outcome: Outcome, path: Path) -> None:
    pyplot = load_pyplot()
    picture, axes = pyplot.subplots(2, 3, figsize=(15, 9))
    panels = axes.ravel()
    figure_15 = outcome.find(experiment="figure 15", rpred=1.0)
    for panel, attributes in zip(panels, sorted({p.attributes for p in figure_15}), strict=False):
        points = [p for p in figure_15 if p.attributes == attributes]
        _lines(panel, points, [p.queries for p in points])
        panel.set_title(f"Figure 15: Nattr = {attributes}, Rpred = 100%")
        panel.set_xscale("log")
        sizes = sorted({p.queries for p in points})
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
        panel.minorticks_off()
        panel.set_xlabel("Nquery, registered queries")
    _figure_16(panels[2], outcome.find(experiment="figure 16"))
    _figure_17(panels[3], outcome.find(experiment="figure 17"))
    _table_3(panels[4], outcome.find(experiment="table 3"))
    _cluster_sizes(panels[5], outcome.find(experiment="Ndc"))
    for panel in (*panels[:4], panels[5]):
        _time_axis(panel)
    handles, labels = panels[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="lower center", ncols=4, frameon=False, fontsize=11)
    about = outcome.about
    picture.suptitle(f"Spatial Join CQ, section 7, with Fishweir: one core of {about['cores']}", fontsize=13)
    picture.tight_layout(rect=(0, 0.04, 1, 0.98))
    picture.savefig(path, dpi=110)
    pyplot.close(picture)


def _lines(panel: Any, points: list[Point], across: list[Any], **style: Any) -> None:
    for contestant, (label, look) in LINES.items():
        line = [(p, x) for p, x in zip(points, across, strict=True) if p.contestant.startswith(contestant)]
        if line:
            panel.plot([x for _, x in line], [p.seconds_per_tuple for p, _ in line], label=label, **(look | style))


def _time_axis(panel: Any) -> None:
    panel.set_yscale("log")
    panel.yaxis.set_major_formatter(lambda seconds, _: time_label(seconds))
    panel.yaxis.set_minor_formatter(lambda seconds, _: time_label(seconds) if one_decade(panel) else "")
    panel.set_ylabel("time per tuple")
    panel.grid(True, which="major", alpha=0.35)


def one_decade(panel: Any) -> bool:
    low, high = panel.get_ylim()
    return bool(high < 12 * low)


def _figure_16(panel: Any, points: list[Point]) -> None:
    _lines(panel, points, [100 * (p.rpred or 0) for p in points])
    if points:
        panel.set_title(f"Figure 16: Nattr = {points[0].attributes}, Nquery = {points[0].queries:,}")
    panel.set_xlabel("Rpred, attributes with a condition (%)")


def _figure_17(panel: Any, points: list[Point]) -> None:
    drawn = [p for p in points if p.rskew is not None]
    _lines(panel, drawn, [100 * (p.rskew or 0) for p in drawn])
    real = [p for p in points if p.rskew is None]
    _lines(panel, real, [120] * len(real), markersize=9, linestyle="none")
    if points:
        panel.set_title(f"Figure 17: Nattr = {points[0].attributes}, Nquery = {points[0].queries:,}")
    ticks = sorted({round(100 * (p.rskew or 0)) for p in drawn})
    readings = "sensor\nreadings" if real and real[0].data.startswith("real") else "generated\nreadings"
    panel.set_xticks([*ticks, 120], [*map(str, ticks), readings])
    panel.axvline(110, color="gray", linewidth=0.6)
    panel.set_xlabel("Rskew, tuples within a tenth of the domain (%)")


def _table_3(panel: Any, points: list[Point]) -> None:
    for attributes, marker in zip(sorted({p.attributes for p in points}), "o^", strict=False):
        line = [p for p in points if p.attributes == attributes]
        times = [p.microseconds for p in line]
        (drawn,) = panel.plot([p.batch for p in line], times, marker=marker, label=f"Nattr = {attributes}")
        for p in line:
            place = {"textcoords": "offset points", "ha": "center", "color": drawn.get_color()}
            panel.annotate(f"Ndc {p.ndc}", (p.batch, p.microseconds), (0, 7 if attributes < 8 else -16), **place)
    if points:
        panel.set_title(f"Table 3: SJ-Batch, Nquery = {points[0].queries:,}, Ndc as found")
        batches = sorted({p.batch or 0 for p in points})
        panel.set_xticks(batches, [f"{batch:,}" for batch in batches])
    panel.set_xlabel("Nbatch, tuples in a batch")
    panel.set_ylabel("time per tuple (µs)")
    panel.set_ylim(0, 1.25 * max((p.microseconds for p in points), default=1.0))
    panel.margins(x=0.1)
    panel.legend(frameon=False, loc="lower left")
    panel.grid(True, alpha=0.35)


def _cluster_sizes(panel: Any, points: list[Point]) -> None:
    for data, color in zip(dict.fromkeys(p.data for p in points), ("tab:green", "tab:purple"), strict=False):
        fixed = [p for p in points if (p.data, p.note) == (data, "fixed")]
        label = data.split(" of ")[0]
        panel.plot([p.ndc for p in fixed], [p.seconds_per_tuple for p in fixed], color=color, marker=".", label=label)
        for p in points:
            if (p.data, p.note) == (data, "found"):
                label = f"found: {p.ndc}"
                panel.plot(
                    [p.ndc], [p.seconds_per_tuple], "*", color=color, markersize=16, label=label, linestyle="none"
                )
    if points:
        panel.set_title(f"Ndc: SJ-Batch, Nquery = {points[0].queries:,}, Nbatch = {points[0].batch:,}")
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_formatter(lambda size, _: f"{size:g}")
    panel.set_xlabel("Ndc, tuples in a data cluster")
    low, high = panel.get_ylim()
    panel.set_ylim(low, 2.5 * high)
    panel.legend(frameon=False, ncols=2, loc="upper right")


def draw_contest(outcome: Outcome, path: Path) -> None:
    """Draws a panel per work and a bar per contestant, the fastest on top."""
    pyplot = load_pyplot()
    points = [p for regime in (WIDE, NARROW) for p in outcome.find(experiment=regime)]
    works = list(dict.fromkeys(p.work for p in points))
    picture, axes = pyplot.subplots(2, 2, figsize=(15, 9), squeeze=False)
    for panel, work in zip(axes.ravel(), works, strict=False):
        found = sorted((p for p in points if p.work == work), key=lambda p: -p.seconds_per_tuple)
        colors = [_color(p) for p in found]
        names = ["IBS" if p.contestant == "ibs" else p.contestant for p in found]
        bars = panel.barh(names, [p.seconds_per_tuple for p in found], color=colors)
        words = [f" {time_label(p.seconds_per_tuple)}{_times(p)}" for p in found]
        panel.bar_label(bars, words, fontsize=9.5)
        panel.set_xscale("log")
        panel.set_xlim(found[-1].seconds_per_tuple / 3, 60 * found[0].seconds_per_tuple)
        panel.xaxis.set_major_formatter(lambda seconds, _: time_label(seconds))
        panel.set_title(f"{work}: {found[0].matches_per_tuple:,.4g} matches per tuple", fontsize=11)
        panel.set_xlabel("time per tuple")
        panel.grid(True, axis="x", alpha=0.35)
        panel.set_axisbelow(True)
    title = "The same pairs by other systems, one thread each (x: to chosen; ~: extrapolated; bitmaps list nothing)"
    picture.suptitle(title, fontsize=13)
    picture.tight_layout(rect=(0, 0, 1, 0.98))
    picture.savefig(path, dpi=110)
    pyplot.close(picture)


def _times(point: Point) -> str:
    mark = "~" if point.extrapolated else ""
    ratio = point.ratio or 0.0
    return "" if point.contestant.startswith("chosen") else f"  ({mark}{ratio:,.{0 if ratio >= 100 else 1}f}x)"


def _color(point: Point) -> str:
    if point.contestant.startswith("chosen"):
        return "tab:blue"
    return {"grid, bitmaps": "lightsteelblue", "ibs": "tab:red"}.get(point.contestant, "gray")
