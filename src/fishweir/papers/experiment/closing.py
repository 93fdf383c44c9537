"""Output that all experiments share: progress, a warning if the machine was too busy to trust the times, and the
targets.

At the end it prints tables on the terminal and writes CSV, JSON and a picture to the folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from fishweir.papers.experiment.figures import Outcome, Target

BUSY = "The machine was busy ({:.1f} processes waiting on {} cores): the times are too long and uneven."
VERDICTS = {True: "[green]yes[/]", False: "[red]no[/]", None: "not measured"}


class Report(Protocol):
    """The module with an experiment's targets and tables."""

    def targets(self, outcome: Outcome) -> list[Target]: ...

    def show(self, outcome: Outcome, console: Console) -> None: ...


def finish(
    outcome: Outcome, out: Path, name: str, report: Report, draw: Callable[[Outcome, Path], object], console: Console
) -> None:
    """Writes and prints the measurements."""
    outcome.about["load_after"] = os.getloadavg()[0]
    outcome.targets = report.targets(outcome)
    outcome.write(out, name)
    draw(outcome, out / f"{name}.png")
    report.show(outcome, console)
    console.print(f"Written: {out / name}.csv, .json, .png", markup=False)


def warn_if_busy(about: Mapping[str, Any], console: Console) -> None:
    load = max(about["load_before"], about["load_after"])
    if load > 1.5 * about["cores"]:
        console.print(BUSY.format(load, about["cores"]), style="yellow")


def warn_if_missed(targets: Sequence[Target], console: Console) -> None:
    if any(target.met is False for target in targets):
        console.print("Not all targets were met.", style="yellow")


def counting_progress(console: Console) -> Progress:
    """A bar for each task, with its count and the elapsed time."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} of {task.total:,}"),
        TimeElapsedColumn(),
        console=console,
    )


def show_targets(targets: Sequence[Target], console: Console) -> None:
    table = Table("target", "measured", "met", title="Targets")
    for target in targets:
        table.add_row(target.name, target.measured, VERDICTS[target.met])
    console.print(table)
