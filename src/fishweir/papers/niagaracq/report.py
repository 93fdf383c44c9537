"""Terminal output: the tables of figures, and the targets with the measurements."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fishweir.papers.experiment.closing import show_targets, warn_if_busy
from fishweir.papers.experiment.figures import Figure, Outcome, Target
from fishweir.papers.niagaracq.workloads import TYPES

LEGEND = """\
Milliseconds, medians. fired: queries; pairs: (query, row); rows: factorized results.
extract, match: the stages of grouped; alone: each query by itself on the parsed rows.
ratio: alone to grouped, both from the parsed rows; match only: each query by itself on values that were extracted
once for all queries, to grouped without extraction."""


def show(outcome: Outcome, console: Console) -> None:
    console.print(_contest(outcome.find(experiment="queries"), "Experiment 1: time against N"))
    console.print(_contest(outcome.find(experiment="changes"), "Experiment 2: time against C"))
    console.print(LEGEND, style="dim")
    warn_if_busy(outcome.about, console)
    rest = [f for f in outcome.figures if f.experiment in ("registration", "end to end")]
    if rest:
        console.print(_engine(rest))
    show_targets(outcome.targets, console)


def _contest(figures: list[Figure], title: str) -> Table:
    """One line for grouped and non-grouped together."""
    heads = ("type", "case", "N", "C", "fired", "pairs", "rows", "extract", "match", "alone", "ratio", "match only")
    table = Table(*heads, title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    alone = {(f.type, f.case, f.n, f.c): f for f in figures if f.contestant == "non-grouped"}
    for f in (f for f in figures if f.contestant == "grouped"):
        other = alone[f.type, f.case, f.n, f.c]
        table.add_row(
            f.type.removeprefix("Type "),
            f.case,
            *(_short(count) for count in (f.n, f.c, f.fired, f.pairs, f.result_rows)),
            _ms(f.extract_seconds),
            _ms(f.match_seconds),
            _ms(other.seconds) if other.seconds is not None else "not run",
            _times(f.ratio),
            _times(f.ratio_match),
        )
    for column in table.columns:
        column.justify, column.no_wrap = "right", True
    return table


def _engine(figures: list[Figure]) -> Table:
    table = Table("experiment", "what", "N", "seconds", "peak MB", "remarks", title="The whole engine")
    for f in figures:
        peak = f"{f.peak_mb:,.0f}" if f.peak_mb else ""
        table.add_row(f.experiment, f.contestant, f"{f.n:,}", f"{f.seconds:.2f}", peak, f.note)
    return table


def _short(count: int | None) -> str:
    """10k, 1M, 794k: the exact numbers are in the CSV."""
    if count is None or count < 10_000:
        return "" if count is None else str(count)
    return f"{count / 1e6:.4g}M" if count >= 1_000_000 else f"{count / 1e3:.3g}k"


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{1000 * seconds:,.2f}" if seconds < 1 else f"{1000 * seconds:,.0f}"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:,.1f}x"


# Targets


def targets(outcome: Outcome) -> list[Target]:
    """Each target at the sizes it names. Targets are not measured in a quick run."""
    return [
        *_faster(outcome),
        *_constant(outcome),
        _registered(outcome, "register_many", 1_000_000, 120, 4096),
        _registered(outcome, "execute", 100_000, 60, None),
        _end_to_end(outcome),
    ]


def _faster(outcome: Outcome, n: int = 10_000) -> list[Target]:
    found = []
    for type in TYPES:
        figures = [f for f in outcome.find(experiment="queries", type=type, n=n) if f.ratio is not None]
        words = [f"{f.case}: {_times(f.ratio)} ({_times(f.ratio_match)} on extracted values)" for f in figures]
        met = all((f.ratio or 0) >= 100 for f in figures) if figures else None
        found.append(Target(f"(a) {type}, N={n:,}: grouped 100x faster", "; ".join(words), met))
    return found


def _constant(outcome: Outcome, small: int = 10_000, large: int = 1_000_000) -> list[Target]:
    found = []
    for type in TYPES:
        times = [_grouped(outcome, type, n) for n in (small, large)]
        name = f"(b) {type}, F=100: N={large:,} at most 1.5x N={small:,}"
        if not all(times):
            found.append(Target(name, "", None))
            continue
        before, after = (f for f in times if f)
        growth = (after.seconds or 0) / (before.seconds or 1)
        match = (after.match_seconds or 0) / (before.match_seconds or 1)
        words = f"{_ms(before.seconds)} to {_ms(after.seconds)} ms: {growth:.2f}x"
        words += f" ({match:.2f}x without extraction)"
        found.append(Target(name, words, growth <= 1.5))
    return found


def _grouped(outcome: Outcome, type: str, n: int) -> Figure | None:
    found = outcome.find(experiment="queries", type=type, case="F=100", n=n, contestant="grouped")
    return found[0] if found else None


def _registered(outcome: Outcome, how: str, n: int, seconds: float, megabytes: float | None) -> Target:
    letter, room = ("(c)", " and 4 GB") if megabytes else ("(d)", "")
    name = f"{letter} {n:,} by {how} in under {seconds} s{room}"
    found = outcome.find(experiment="registration", contestant=how, n=n)
    if not found or found[0].seconds is None:
        return Target(name, "", None)
    took, peak = found[0].seconds, found[0].peak_mb or 0
    met = took < seconds and (megabytes is None or peak < megabytes)
    return Target(name, f"{took:.1f} s, peak {peak:,.0f} MB", met)


def _end_to_end(outcome: Outcome, small: int = 10_000, large: int = 1_000_000) -> Target:
    name = f"(b) end to end, F=100: N={large:,} at most 1.5x N={small:,}"
    times = [f.seconds for n in (small, large) for f in outcome.find(experiment="end to end", n=n)]
    if len(times) < 2 or times[0] is None or times[1] is None:
        return Target(name, "", None)
    words = f"{times[0]:.3f} to {times[1]:.3f} s per micro-batch: {times[1] / times[0]:.2f}x"
    return Target(name, words, times[1] <= 1.5 * times[0])
