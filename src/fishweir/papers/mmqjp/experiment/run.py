"""Runs the whole experiment: at each point all contestants are first checked for agreement, then timed in the same run.

Prints tables on the terminal; writes CSV, JSON and a picture to the folder.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fishweir.papers.experiment.closing import finish, warn_if_missed
from fishweir.papers.experiment.figures import Outcome, about_run, pin_threads
from fishweir.papers.mmqjp.experiment import paper, plot, report
from fishweir.papers.mmqjp.experiment.contestants import Entry, entries
from fishweir.papers.mmqjp.experiment.work import load_items

NAME = "mmqjp"


def main(out: Path, quick: bool = False) -> None:
    """Runs the whole experiment. `quick` uses small sizes for a smoke test, and omits Spark."""
    if quick:
        run(out, quick, Console())
        return
    from fishweir.pipeline.spark.session import open_session

    session = open_session("local[*]")
    try:
        outcome = run(out, quick, Console(), session)
    finally:
        session.stop()
    warn_if_missed(outcome.targets, Console())


def run(
    out: Path,
    quick: bool,
    console: Console,
    session: Any = None,
    more: tuple[Entry, ...] = (),
    sizes: paper.Sizes | None = None,
) -> Outcome:
    """Runs the experiment. `more` are contestants besides MMQJP and Sequential. Without a session, Spark's are
    omitted."""
    pin_threads()
    sizes = sizes or (paper.QUICK if quick else paper.Sizes())
    items = load_items(sizes.items)
    console.print(f"Data: generated documents; {items.source}", markup=False, soft_wrap=True)
    outcome = Outcome(about_run(items.source, quick))
    outcome.about["versions"] |= {"duckdb": version("duckdb")}
    outcome.about["sequential"] = f"extrapolated from {100 * sizes.sample} queries, with statements from {sizes.sample}"
    outcome.about["patience"] = sizes.patience
    contestants = [*entries(sizes.sample, session, sizes.spark_at), *more]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=paper.steps(sizes, session))

        def say(words: str) -> None:
            progress.update(task, description=words)

        for points in paper.run(sizes, items, contestants, session, say):
            outcome.figures.extend(points)
            outcome.write(out, NAME)
            progress.advance(task)
    finish(outcome, out, NAME, report, plot.draw, console)
    return outcome
