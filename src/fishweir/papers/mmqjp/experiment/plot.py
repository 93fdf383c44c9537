"""Draws figures 8 to 16 of MMQJP from the measurements; 14 and 15 as bars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fishweir.papers.experiment.figures import Outcome
from fishweir.papers.experiment.plot import load_pyplot
from fishweir.papers.mmqjp.experiment.contestants import SEQUENTIAL, SEQUENTIAL_SQL
from fishweir.papers.mmqjp.experiment.measure import Point
from fishweir.papers.mmqjp.experiment.report import STYLES, TITLES
from fishweir.papers.spatialjoin.experiment.plot import one_decade, time_label

FIGURES = [experiment for experiment in TITLES if experiment.startswith("figure")]
LOGARITHMIC = ("figure 8", "figure 11", "figure 16")


def draw(outcome: Outcome, path: Path) -> None:
    pyplot = load_pyplot()
    picture, axes = pyplot.subplots(3, 3, figsize=(16, 13))
    panels = axes.ravel()
    sampled = {p.contestant for p in outcome.figures if p.extrapolated}
    for panel, experiment in zip(panels[:7], FIGURES, strict=True):
        _lines(panel, experiment, outcome.find(experiment=experiment), sampled)
    _bars(panels[7], outcome.find(experiment="figure 8"), "Figure 14: views, two-level")
    _bars(panels[8], outcome.find(experiment="figure 11"), "Figure 15: views, three-level")
    handles: dict[str, Any] = {}
    for panel in panels[:7]:
        handles |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    picture.legend(handles.values(), handles.keys(), loc="lower center", ncols=4, frameon=False, fontsize=11)
    about = outcome.about
    heading = f"MMQJP, section 6, with Fishweir: one core of {about['cores']}; RSS: {about['data']}\n"
    heading += "dotted: the first time that the second document is processed, before anything about the pair is cached"
    picture.suptitle(heading, fontsize=12)
    picture.tight_layout(rect=(0, 0.05, 1, 0.98))
    picture.savefig(path, dpi=100)
    pyplot.close(picture)


def _lines(panel: Any, experiment: str, points: list[Point], sampled: set[str]) -> None:
    title, across = TITLES[experiment]
    stream = experiment == "figure 16"
    for name in dict.fromkeys(p.contestant for p in points):
        line = [p for p in points if p.contestant == name]
        panel.plot(
            [p.x for p in line],
            [p.documents_per_second if stream else p.seconds for p in line],
            label=f"{name} (extrapolated)" if name in sampled else name,
            linestyle="--" if any(p.extrapolated for p in line) else "-",
            **STYLES.get(name, {}),
        )
        cold = [(p.x, p.cold_seconds) for p in line if p.cold_seconds is not None]
        if cold:
            color = STYLES.get(name, {}).get("color")
            panel.plot(*zip(*cold, strict=True), color=color, linewidth=0.8, alpha=0.6, linestyle=":")
    panel.set_title(title)
    panel.set_xlabel(across)
    panel.set_yscale("log")
    if experiment in LOGARITHMIC:
        panel.set_xscale("log")
    if stream:
        panel.set_ylabel("documents per second")
        stopped = [(p.x, p.documents_per_second) for p in points if p.stopped]
        if stopped:
            panel.plot(*zip(*stopped, strict=True), "o", markersize=13, markerfacecolor="none", color="gray")
            panel.set_title(f"{title}\n(circled: stopped before the end of the stream)")
    else:
        panel.set_ylabel("time of the join")
        panel.yaxis.set_major_formatter(lambda seconds, _: time_label(seconds))
        panel.yaxis.set_minor_formatter(lambda seconds, _: time_label(seconds) if one_decade(panel) else "")
    panel.grid(True, which="major", alpha=0.35)


def _bars(panel: Any, points: list[Point], title: str) -> None:
    largest = max((p.queries for p in points), default=0)
    shown = [p for p in points if p.queries == largest and p.contestant not in (SEQUENTIAL, SEQUENTIAL_SQL)]
    names = [p.contestant.replace(", ", "\n").replace(" with", "\nwith") for p in shown]
    places = range(len(shown))
    panel.bar([at - 0.2 for at in places], [p.seconds for p in shown], 0.4, color="tab:cyan", label="the join")
    panel.bar(
        [at + 0.2 for at in places],
        [p.views_seconds or 0.0 for p in shown],
        0.4,
        color="tab:gray",
        label="of which STR, RL and RR",
    )
    panel.set_xticks(places, names, fontsize=8)
    panel.set_yscale("log")
    times = [p.seconds for p in shown] or [1.0]
    panel.set_ylim(0.3 * min(times), 30 * max(times))
    panel.set_title(f"{title}, {largest:,} queries")
    panel.yaxis.set_major_formatter(lambda seconds, _: time_label(seconds))
    panel.grid(True, axis="y", which="major", alpha=0.35)
    panel.legend(frameon=False, loc="upper left")
