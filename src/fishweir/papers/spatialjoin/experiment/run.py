"""Runs the whole experiment: checks that all contestants find the same pairs, then measures them in one run.

Prints tables on the terminal; writes CSV, JSON and three pictures to the folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from fishweir.papers.experiment.closing import finish, warn_if_missed
from fishweir.papers.experiment.figures import Outcome, about_run, pin_threads
from fishweir.papers.spatialjoin.experiment import contest, joins, paper, plot, report
from fishweir.papers.spatialjoin.experiment.work import load_climate

NAME = "spatialjoin"
OTHERS = ("duckdb", "polars", "shapely", "numba")


@dataclass(frozen=True)
class Sizes:
    """The sizes of each experiment."""

    paper: paper.Sizes = field(default_factory=paper.Sizes)
    joins: joins.Sizes = field(default_factory=joins.Sizes)
    contest: contest.Sizes = field(default_factory=contest.Sizes)


QUICK = Sizes(paper.QUICK, joins.QUICK, contest.QUICK)


def main(out: Path, quick: bool = False) -> None:
    """Runs the whole experiment. `quick` uses small sizes for a smoke test."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    from fishweir.pipeline.spark.session import open_session

    session = open_session("local[1]")
    try:
        outcome = run(out, quick, Console(), session)
    finally:
        session.stop()
    warn_if_missed(outcome.targets, Console())


def run(out: Path, quick: bool, console: Console, session: Any = None, sizes: Sizes | None = None) -> Outcome:
    """Runs the experiment. Without a session, Spark's join is omitted."""
    pin_threads()
    sizes = sizes or (QUICK if quick else Sizes())
    climate = load_climate()
    console.print(f"Data: generated uniform and skewed tuples; {climate.source}", markup=False, soft_wrap=True)
    outcome = Outcome(about_run(climate.source, quick))
    outcome.about["versions"] |= {package: version(package) for package in OTHERS}
    with console.status("") as status:
        experiments: list[paper.Paper | joins.Joins | contest.Contest] = [
            paper.Paper(sizes.paper, climate, status.update),
            joins.Joins(sizes.joins, status.update),
            contest.Contest(sizes.contest, climate, status.update, session),
        ]
        for experiment in experiments:
            outcome.figures.extend(experiment.run())
            outcome.write(out, NAME)
    outcome.about["checked_pairs"] = sum(experiment.checked_pairs for experiment in experiments)
    finish(outcome, out, NAME, report, plot.draw, console)
    return outcome
