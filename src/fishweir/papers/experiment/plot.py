"""Draws figures 5.3 to 5.8 of NiagaraCQ from the measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fishweir.papers.experiment.figures import Figure, Outcome
from fishweir.papers.niagaracq.workloads import CASES, TYPES

TITLES = {
    "Type 1": "Type 1: Symbol = constant (fig. 5.3)",
    "Type 2": "Type 2: Change_Ratio > constant (fig. 5.5)",
    "Type 2b": "Type 2b: constant < Change_Ratio < constant",
    "Type 3": "Type 3: Symbol = constant and\nCurrent_Price < constant (fig. 5.6)",
    "Type 4": "Type 4: Industry = constant,\njoined with companies.xml (fig. 5.7)",
    "Type 1+3": "Mix of types 1 and 3 (fig. 5.8)",
}
LINES = (
    ("non-grouped", "F=N", "seconds", "non-grouped, F=N case", {"color": "tab:red", "marker": "s"}),
    ("non-grouped", "F=100", "seconds", "non-grouped, F=100 case",
     {"color": "tab:orange", "marker": "D", "linestyle": "--", "markerfacecolor": "none"}),
    ("grouped", "F=N", "seconds", "grouped, F=N case", {"color": "tab:blue", "marker": "o"}),
    ("grouped", "F=100", "seconds", "grouped, F=100 case",
     {"color": "tab:cyan", "marker": "^", "linestyle": "--", "markerfacecolor": "none"}),
    ("grouped", "F=N", "match_seconds", "grouped, F=N case: matching without\nwitness extraction",
     {"color": "tab:blue", "linestyle": ":", "marker": ".", "alpha": 0.7}),
)  # fmt: skip


def load_pyplot() -> Any:
    """Loads matplotlib with a backend that draws to files."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def draw(outcome: Outcome, path: Path) -> None:
    """Draws one panel per query type, time against N; then experiment 2, time against C; the last panel is the
    legend."""
    pyplot = load_pyplot()
    picture, axes = pyplot.subplots(2, 4, figsize=(19, 9.5), sharey=True)
    panels = axes.ravel()
    for panel, type in zip(panels, TYPES, strict=False):
        _panel(panel, outcome.find(experiment="queries", type=type), "n")
        panel.set_title(TITLES[type], fontsize=11)
        panel.set_xlabel("N, installed queries")
    changes, legend = panels[len(TYPES) :]
    _panel(changes, outcome.find(experiment="changes"), "c")
    changes.set_title("Experiment 2: Type 1, F = N = 2,000 (fig. 5.4)", fontsize=11)
    changes.set_xlabel("C, changed rows")
    for row in axes:
        row[0].set_ylabel("time for one round (median)")
    legend.axis("off")
    legend.legend(*panels[0].get_legend_handles_labels(), loc="center", frameon=False, fontsize=10.5)
    picture.suptitle(_heading(outcome), fontsize=13)
    picture.tight_layout(rect=(0, 0, 1, 0.98))
    picture.savefig(path, dpi=110)
    pyplot.close(picture)


def _panel(panel: Any, figures: list[Figure], across: str) -> None:
    for contestant, case, value, label, style in LINES:
        line = [f for f in figures if (f.contestant, f.case) == (contestant, case) and getattr(f, value)]
        if line:
            across_values = [getattr(f, across) for f in line]
            panel.plot(across_values, [getattr(f, value) for f in line], label=label, **style)
    _mark_not_run(panel, figures)
    panel.set_xscale("log")
    panel.set_yscale("log")
    sizes = sorted({getattr(f, across) for f in figures})
    panel.set_xticks(sizes, [_short(size) for size in sizes])
    panel.minorticks_off()
    panel.tick_params(labelleft=True)
    panel.yaxis.set_major_formatter(lambda seconds, _: _time(seconds))
    panel.grid(True, which="major", alpha=0.35)


def _short(count: int) -> str:
    return f"{count // 1_000_000}M" if count >= 1_000_000 else f"{count:,}"


def _time(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else f"{1000 * seconds:g} ms"


def _mark_not_run(panel: Any, figures: list[Figure]) -> None:
    """Marks missing points in the corner that is then free: non-grouped takes longest, and stops before the largest
    N."""
    left_out = {case: [_short(f.n) for f in figures if f.seconds is None and f.case == case] for case in CASES}
    lines = [f"{case} case, N = {', '.join(sizes)}" for case, sizes in left_out.items() if sizes]
    if len({tuple(sizes) for sizes in left_out.values()}) == 1 and lines:
        lines = [f"N = {', '.join(left_out[CASES[0]])}"]
    if lines:
        words = "\n".join(["non-grouped", "not run:", *lines])
        place = {"transform": panel.transAxes, "ha": "right", "va": "top"}
        panel.text(0.98, 0.97, words, fontsize=8.5, color="tab:red", **place)


def _heading(outcome: Outcome) -> str:
    changed = {f.c for f in outcome.find(experiment="queries")}
    rows = " or ".join(f"{c:,}" for c in sorted(c for c in changed if c))
    about = outcome.about
    data = about["data"].split(" of /")[0].split(" (")[0]
    where = f"{data}, one core of {about['cores']}"
    return f"NiagaraCQ section 5 with Fishweir's kernel: {rows} changed rows, {where}"
