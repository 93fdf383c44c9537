"""Draws figure 18 of Spatial Join CQ: a panel per window, and the speed-up of SJ-Join over IBS-JS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fishweir.papers.experiment.figures import Outcome
from fishweir.papers.experiment.plot import load_pyplot
from fishweir.papers.spatialjoin.experiment import joins
from fishweir.papers.spatialjoin.experiment.measure import Point, time_label

LINES: dict[str, tuple[str, dict[str, Any]]] = {
    "ibs-js": ("IBS-JS", {"color": "tab:red", "marker": "s"}),
    "sj-join": ("SJ-Join", {"color": "tab:green", "marker": "^"}),
    "fishweir": ("Fishweir's join stage", {"color": "tab:blue", "marker": "o"}),
}
PAPER = {100: 2.6, 1_000: 3.9, 10_000: 6.9}
"""The greatest speed-up of SJ-Join in the paper, by window."""


def draw_joins(outcome: Outcome, path: Path) -> None:
    pyplot = load_pyplot()
    points = outcome.find(experiment=joins.EXPERIMENT)
    windows = sorted({p.window or 0 for p in points})
    picture, axes = pyplot.subplots(1, len(windows) + 1, figsize=(5 * (len(windows) + 1), 5), squeeze=False)
    times = [p.seconds_per_tuple for p in points]
    for panel, window in zip(axes[0], windows, strict=False):
        of_window = [p for p in points if p.window == window]
        for contestant, (label, look) in LINES.items():
            line = [p for p in of_window if p.contestant == contestant]
            panel.plot([p.queries for p in line], [p.seconds_per_tuple for p in line], label=label, **look)
        panel.set_title(f"Figure 18: Sizesw = {window:,}")
        panel.set_yscale("log")
        panel.set_ylim(min(times) / 2, max(times) * 2)
        panel.yaxis.set_major_formatter(lambda seconds, _: time_label(seconds))
        panel.set_ylabel("time per tuple")
        _queries_axis(panel, of_window)
    axes[0][0].legend(frameon=False)
    _ratios(axes[0][-1], points, windows)
    about = f"{points[0].attributes} attributes per stream, all with a condition" if points else ""
    picture.suptitle(f"Sliding window joins of two streams, {about}; one core of {outcome.about['cores']}", fontsize=13)
    picture.tight_layout(rect=(0, 0, 1, 0.98))
    picture.savefig(path, dpi=110)
    pyplot.close(picture)


def _ratios(panel: Any, points: list[Point], windows: list[int]) -> None:
    for window, color in zip(windows, ("tab:gray", "tab:olive", "tab:green"), strict=False):
        line = [p for p in points if (p.window, p.contestant) == (window, "sj-join")]
        label = f"Sizesw = {window:,}"
        panel.plot([p.queries for p in line], [p.ratio for p in line], color=color, marker="^", label=label)
        if window in PAPER:
            label = f"paper, at most: {PAPER[window]}"
            panel.axhline(PAPER[window], color=color, linestyle=":", linewidth=1.2, label=label)
    panel.set_title("IBS-JS / SJ-Join")
    panel.set_ylim(0, 1.35 * max((p.ratio or 0 for p in points if p.contestant == "sj-join"), default=1.0))
    panel.set_ylabel("times faster")
    panel.legend(frameon=False, fontsize=9, loc="upper left", ncols=2)
    _queries_axis(panel, points)


def _queries_axis(panel: Any, points: list[Point]) -> None:
    panel.set_xscale("log")
    sizes = sorted({p.queries for p in points})
    panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
    panel.minorticks_off()
    panel.set_xlabel("Nquery, registered queries")
    panel.grid(True, which="major", alpha=0.35)
