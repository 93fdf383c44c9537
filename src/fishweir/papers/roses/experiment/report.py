"""Output of the experiment: figures, tables, targets and the picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fishweir.papers.experiment.closing import show_targets, warn_if_busy
from fishweir.papers.experiment.figures import Outcome, Target
from fishweir.papers.experiment.plot import load_pyplot

PLAN_NAMES = ("STA", "VCA with graph", "VCA with VCB")
STYLES = {
    "STA": {"color": "tab:red", "marker": "s"},
    "VCA with graph": {"color": "tab:orange", "marker": "D"},
    "VCA with VCB": {"color": "tab:blue", "marker": "o"},
    "each alone, same kernel": {"color": "tab:cyan", "marker": "^"},
    "rarest word": {"color": "tab:orange", "marker": "D"},
    "Aho-Corasick": {"color": "tab:green", "marker": "v"},
    "naive": {"color": "tab:red", "marker": "s"},
}
PLAN_PANELS = (("seconds", "time to optimize (s)"), ("cost", "share of the naive plan's cost"))
MATCH_PANELS = (("seconds", "time per item (s)"), ("register_seconds", "registration (s)"))
LEGEND = """\
Processor time of one thread. tokenize, match: milliseconds per item; pairs: (item, filter) pairs per item. ratio: total
time, with tokenizing, relative to VCA with VCB; match only: without tokenizing. *: on fewer items, see the CSV."""


@dataclass(frozen=True)
class RosesFigure:
    """`seconds` are those of the optimization, or of one item in total; None if it was not run, and `note` gives the
    reason."""

    experiment: str
    contestant: str
    n: int
    seconds: float | None
    conjuncts: int | None = None
    cost: float | None = None
    register_seconds: float | None = None
    tokenize_seconds: float | None = None
    match_seconds: float | None = None
    pairs: float | None = None
    note: str = ""

    def point(self) -> tuple[str, float, float | None]:
        """The point, with the plan's cost as its answer."""
        if self.experiment == "figure 8":
            return f"figure 8, {self.n:,} predicates", self.conjuncts or 0, self.cost
        return self.experiment, self.n, self.pairs if self.cost is None else self.cost


def show(outcome: Outcome, console: Console) -> None:
    console.print(_plans(outcome, "figure 7", "Figure 7: optimizing N conjunctions of 1 to 3 keywords"))
    console.print(_plans(outcome, "figure 8", "Figure 8: conjunctions of disjunctions of 1 to 5 keywords"))
    console.print(_matching(outcome))
    console.print(LEGEND, style="dim")
    warn_if_busy(outcome.about, console)
    show_targets(outcome.targets, console)


def _plans(outcome: Outcome, experiment: str, title: str) -> Table:
    table = Table("N", "conjuncts", title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("STA", "VCA, graph", "VCA, VCB"):
        table.add_column(name, justify="right", no_wrap=True)
        table.add_column("cost", justify="right", no_wrap=True)
    figures = outcome.find(experiment=experiment)
    for n, conjuncts in dict.fromkeys((f.n, f.conjuncts) for f in figures):
        cells = []
        for name in PLAN_NAMES:
            (f,) = [f for f in figures if (f.n, f.conjuncts, f.contestant) == (n, conjuncts, name)]
            cells += ["not run" if f.seconds is None else _time(f.seconds)]
            cells += ["" if f.cost is None else f"{100 * f.cost:.2f}%"]
        table.add_row(f"{n:,}", str(conjuncts or "1 to 3"), *cells)
    return table


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.2f} ms"


def _matching(outcome: Outcome) -> Table:
    heads = ("N", "contestant", "register", "tokenize", "match", "pairs", "ratio", "match only")
    table = Table(*heads, title="Matching feed items", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    figures = outcome.find(experiment="matching")
    ours = {f.n: f for f in figures if f.contestant == "VCA with VCB"}
    for f in figures:
        own = ours[f.n]
        table.add_row(
            f"{f.n:,}",
            f.contestant + ("*" if f.note else ""),
            "" if f.register_seconds is None else f"{f.register_seconds:.2f} s",
            f"{1e3 * f.tokenize_seconds:.3f}",
            f"{1e3 * f.match_seconds:.3f}",
            f"{f.pairs:,.1f}",
            f"{f.seconds / own.seconds:.1f}x",
            f"{f.match_seconds / own.match_seconds:.1f}x",
        )
    for column in table.columns[2:]:
        column.justify, column.no_wrap = "right", True
    return table


def targets(outcome: Outcome) -> list[Target]:
    """Each target at the size it names. Targets are not measured in a quick run."""
    found = []
    for n, limit, share in ((10_000, 5.0, 0.03), (100_000, 120.0, None)):
        words = f"VCB optimizes {n:,} in under {limit:g} s" + (f" at most {100 * share:g}% of naive" if share else "")
        plans = outcome.find(experiment="figure 7", n=n, contestant="VCA with VCB")
        if not plans:
            found.append(Target(words, "", None))
            continue
        met = bool(plans[0].seconds < limit and (share is None or plans[0].cost <= share))
        found.append(Target(words, f"{plans[0].seconds:.2f} s, {100 * plans[0].cost:.2f}%", met))
    return [*found, _faster(outcome), _sublinear(outcome)]


def _at(outcome: Outcome, n: int, contestant: str) -> Any:
    found = outcome.find(experiment="matching", n=n, contestant=contestant)
    return found[0] if found else None


def _faster(outcome: Outcome, n: int = 100_000) -> Target:
    name = f"at {n:,} filters 3 times faster than the best simple solution"
    ours, others = _at(outcome, n, "VCA with VCB"), [_at(outcome, n, c) for c in ("rarest word", "Aho-Corasick")]
    if ours is None:
        return Target(name, "", None)
    best = min(others, key=lambda f: f.seconds)
    ratio = best.seconds / ours.seconds
    words = f"{ratio:.1f}x against {best.contestant}: {1e3 * best.seconds:.3f} and {1e3 * ours.seconds:.3f} ms per item"
    return Target(name, words, ratio >= 3)


def _sublinear(outcome: Outcome, few: int = 100_000, many: int = 1_000_000) -> Target:
    name = f"sublinear from {few:,} to {many:,} filters"
    before, after = _at(outcome, few, "VCA with VCB"), _at(outcome, many, "VCA with VCB")
    if before is None or after is None:
        return Target(name, "", None)
    growth = after.seconds / before.seconds
    words = f"{growth:.1f}x the time for {many // few}x the filters and {after.pairs / before.pairs:.1f}x the matches"
    return Target(name, words, growth < many / few)


def draw(outcome: Outcome, path: Path) -> None:
    """Draws figures 7 and 8 as in the paper, and matching against N."""
    pyplot = load_pyplot()
    picture, axes = pyplot.subplots(2, 3, figsize=(15, 9))
    for row, experiment, across in ((axes[0], "figure 7", "n"), (axes[1], "figure 8", "conjuncts")):
        label = "N, predicates" if across == "n" else "conjuncts of a predicate"
        for panel, (value, words) in zip(row, PLAN_PANELS, strict=False):
            _lines(panel, outcome.find(experiment=experiment), across, value)
            panel.set_title(f"{experiment.capitalize()}: {words}", fontsize=11)
            panel.set_xlabel(label)
            if across == "n":
                panel.set_xscale("log")
            else:
                panel.set_xticks(range(1, 6))
            if value == "seconds" or across == "n":
                panel.set_yscale("log")
            else:
                panel.set_ylim(0, 1)
            if value == "cost":
                panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
    matching = outcome.find(experiment="matching")
    for panel, (value, words) in zip((axes[0][2], axes[1][2]), MATCH_PANELS, strict=True):
        _lines(panel, matching, "n", value)
        panel.set_title(f"Matching feed items: {words}", fontsize=11)
        panel.set_xlabel("N, filters")
        panel.set_xscale("log")
        panel.set_yscale("log")
    for panel in axes.ravel():
        panel.grid(True, which="major", alpha=0.35)
        panel.legend(fontsize=8.5)
    picture.suptitle(f"RoSeS section 6 with Fishweir's plans: {outcome.about['data']}, one core", fontsize=13)
    picture.tight_layout(rect=(0, 0, 1, 0.98))
    picture.savefig(path, dpi=110)
    pyplot.close(picture)


def _lines(panel: Any, figures: list[Any], across: str, value: str) -> None:
    for name in dict.fromkeys(f.contestant for f in figures):
        line = [f for f in figures if f.contestant == name and getattr(f, value) is not None]
        if not line:
            continue
        panel.plot([getattr(f, across) for f in line], [getattr(f, value) for f in line], label=name, **STYLES[name])
