"""Output of `fishweir bench paths`: the table, the target, and a plot of documents per second."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fishweir.papers.experiment.closing import show_targets, warn_if_busy
from fishweir.papers.experiment.figures import Figure, Outcome, Target
from fishweir.papers.experiment.plot import load_pyplot
from fishweir.papers.paths.contestants import Alone, Shared
from fishweir.papers.paths.queries import KINDS

LEGEND = """\
N: path queries; paths: those that differ in more than the order of predicates. Drawn with the parameters of YFilter's
experiments: at most 6 steps, each '*' and '//' with probability 0.2, without duplicates. Plain paths are run by the
automaton, paths with predicates as XSCL selections by the shared plan. Milliseconds on one processor for one pass over
all documents: parse; match (all hits, factorized); expand (every (node, path) pair written out, in addition to match);
first: the first match after registration, in which the automaton builds its states. register: parsing and adding the
texts; compile: by lxml. docs/s and ratio include parsing for both; trimmed: the ratio without the 1% of the paths that
are slowest in lxml, since '//*//*' takes it seconds; match only: without parsing. parsing: its share of Fishweir's
time. ~: lxml extrapolated from a sample, since it would take over 40 s; the results of the sample agree."""
SHOWN = {"plain": "plain paths", "predicates": "paths with predicates"}


@dataclass(frozen=True)
class PathFigure(Figure):
    """`n` queries on `c` documents. `extract_seconds` is the time of parsing, which `seconds` includes."""

    distinct: int | None = None
    register_seconds: float | None = None
    first_seconds: float | None = None
    expand_seconds: float | None = None
    ratio_trimmed: float | None = None

    @property
    def rate(self) -> float:
        """Documents per second, including parsing."""
        return (self.c or 0) / (self.seconds or 1)


def show(outcome: Outcome, console: Console) -> None:
    for kind in KINDS:
        figures = outcome.find(case=kind)
        if figures:
            console.print(_contest(figures, f"Documents per second: {SHOWN[kind]}"))
    for figure in outcome.figures:
        if figure.note:
            where = f"{figure.type}, {figure.case}, N={figure.n:,}"
            console.print(f"{where}: {figure.contestant}: {figure.note}", style="dim", markup=False, soft_wrap=True)
    console.print(LEGEND, style="dim", markup=False)
    warn_if_busy(outcome.about, console)
    show_targets(outcome.targets, console)


def _contest(figures: list[Any], title: str) -> Table:
    heads = (
        "documents",
        "N",
        "paths",
        "register",
        "compile",
        "first",
        "parse",
        "match",
        "expand",
        "docs/s",
        "lxml docs/s",
        "ratio",
        "trimmed",
        "match only",
        "parsing",
    )
    table = Table(*heads, title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    alone = {(f.type, f.n): f for f in figures if f.contestant == Alone.name}
    for f in (f for f in figures if f.contestant == Shared.name):
        other = alone[f.type, f.n]
        guessed = "~" if other.note else ""
        table.add_row(
            f.type,
            f"{f.n:,}",
            f"{f.distinct:,}",
            _ms(f.register_seconds),
            _ms(other.register_seconds),
            _ms(f.first_seconds),
            _ms(f.extract_seconds),
            _ms(f.match_seconds),
            _ms(f.expand_seconds),
            _number(f.rate),
            guessed + _number(other.rate),
            f"{guessed}{_number(f.ratio)}x",
            f"{guessed}{_number(f.ratio_trimmed)}x",
            f"{guessed}{_number(f.ratio_match)}x",
            f"{f.extract_seconds / f.seconds:.0%}",
        )
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    return table


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{1000 * seconds:,.1f}" if seconds < 0.1 else f"{1000 * seconds:,.0f}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def targets(outcome: Outcome, n: int = 10_000) -> list[Target]:
    """The targets, including parsing for both contestants. Not measured in a quick run."""
    found = []
    for kind in KINDS:
        figures: list[Any] = outcome.find(case=kind, n=n, contestant=Shared.name)
        words = [f"{f.type}: {_number(f.ratio)}x ({_number(f.ratio_trimmed)}x trimmed)" for f in figures]
        met = all(f.ratio >= 100 for f in figures) if figures else None
        found.append(Target(f"{SHOWN[kind]}: at {n:,} at least 100 times faster", "; ".join(words), met))
    return found


# Plot


def draw(outcome: Outcome, path: Path) -> None:
    """Draws one panel per kind of queries and set of documents: documents per second against N."""
    pyplot = load_pyplot()
    sets = list(dict.fromkeys(f.type for f in outcome.figures))
    picture, axes = pyplot.subplots(len(KINDS), len(sets), figsize=(6.4 * len(sets), 9.4), squeeze=False)
    for row, kind in zip(axes, KINDS, strict=True):
        for panel, name in zip(row, sets, strict=True):
            _panel(panel, outcome.find(type=name, case=kind))
            panel.set_title(f"{name}: {SHOWN[kind]}", fontsize=11.5)
            panel.set_xlabel("N, path queries")
            panel.set_ylabel("documents per second")
    for column in axes.T:
        low, high = (pick(limit(panel.get_ylim()) for panel in column) for pick, limit in ((min, min), (max, max)))
        for panel in column:
            panel.set_ylim(low / 2.2, high * 1.3)
    handles, labels = axes[-1][0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="lower center", ncols=2, frameon=False, fontsize=10.5)
    picture.suptitle(_heading(outcome), fontsize=12.5)
    picture.tight_layout(rect=(0, 0.07, 1, 0.99))
    picture.savefig(path, dpi=110)
    pyplot.close(picture)


def _panel(panel: Any, figures: list[Any]) -> None:
    shared = [f for f in figures if f.contestant == Shared.name]
    alone = [f for f in figures if f.contestant == Alone.name]
    sizes = [f.n for f in shared]
    parsing = [f.c / f.extract_seconds for f in shared]
    panel.plot(sizes, parsing, color="tab:gray", linestyle="--", label="parsing alone")
    style = {"color": "tab:blue", "marker": "o"}
    panel.plot(sizes, [f.rate for f in shared], label="Fishweir, with parsing", **style)
    pairs = [f.c / (f.seconds + f.expand_seconds) if f.expand_seconds is not None else None for f in shared]
    style = {"color": "tab:cyan", "marker": "^", "linestyle": ":", "markerfacecolor": "none"}
    panel.plot(sizes, pairs, label="the same, every (node, path) pair written out", **style)
    panel.plot(sizes, [f.rate for f in alone], color="tab:red", label="lxml, each distinct path alone, with parsing")
    for f in alone:
        panel.plot([f.n], [f.rate], color="tab:red", marker="s", markerfacecolor="none" if f.note else "tab:red")
    panel.plot([], [], color="tab:red", marker="s", markerfacecolor="none", linestyle="", label="extrapolated")
    panel.set_xscale("log")
    panel.set_yscale("log")
    _ratios(panel, shared, alone)
    panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
    panel.minorticks_off()
    panel.tick_params(labelleft=True)
    panel.yaxis.set_major_formatter(lambda rate, _: f"{rate:,.6g}")
    panel.grid(True, which="major", alpha=0.35)


def _ratios(panel: Any, shared: list[Any], alone: list[Any]) -> None:
    """Labels each N with the speed-up, on the side away from the other line."""
    for fast, slow in zip(shared, alone, strict=True):
        place = {"textcoords": "offset points", "xytext": (0, -15) if fast.ratio > 1 else (24, 0), "ha": "center"}
        words = f"{'~' if slow.note else ''}{_number(fast.ratio)}x"
        panel.annotate(words, (slow.n, slow.rate), color="tab:red", fontsize=9, **place)


def _heading(outcome: Outcome) -> str:
    about = outcome.about
    contest = "Path queries, YFilter's parameters, with Fishweir and with lxml"
    return f"{contest}, one core of {about['cores']}\n{about['data']}"
