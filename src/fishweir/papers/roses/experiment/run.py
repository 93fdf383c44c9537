"""Runs the whole experiment: checks that all contestants agree, then measures them in one run.

Prints tables on the terminal; writes CSV, JSON and a picture to the folder.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fishweir.papers.experiment.closing import finish, warn_if_missed
from fishweir.papers.experiment.figures import Outcome, about_run, pin_threads
from fishweir.papers.roses.experiment import report
from fishweir.papers.roses.experiment.matching import measure_matching
from fishweir.papers.roses.experiment.plans import measure_plans
from fishweir.papers.roses.experiment.work import load_items

NAME = "roses"
ITEMS, QUICK_ITEMS = 20_000, 1_000


def main(out: Path, quick: bool = False) -> None:
    """Runs the whole experiment. `quick` uses small sizes for a smoke test."""
    outcome = run(out, quick, Console())
    warn_if_missed(outcome.targets, Console())


def run(out: Path, quick: bool, console: Console) -> Outcome:
    pin_threads()
    items = load_items(QUICK_ITEMS if quick else ITEMS)
    console.print(f"Data: {items.source}", markup=False, soft_wrap=True)
    outcome = Outcome(about_run(items.source, quick))
    with console.status("") as status:
        for measure in (measure_plans, measure_matching):
            for figure in measure(items, quick, status.update):
                outcome.figures.append(figure)
            outcome.write(out, NAME)
    finish(outcome, out, NAME, report, report.draw, console)
    return outcome
