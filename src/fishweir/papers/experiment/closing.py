"""How every experiment ends: whether the machine was too busy to believe the times, and the targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from fishweir.papers.experiment.figures import Target

BUSY = "The machine was busy ({:.1f} processes waiting on {} cores): the times are too long and uneven."
VERDICTS = {True: "[green]yes[/]", False: "[red]no[/]", None: "not measured"}


def warn_if_busy(about: Mapping[str, Any], console: Console) -> None:
    load = max(about["load_before"], about["load_after"])
    if load > 1.5 * about["cores"]:
        console.print(BUSY.format(load, about["cores"]), style="yellow")


def show_targets(targets: Sequence[Target], console: Console) -> None:
    table = Table("target", "measured", "met", title="Targets")
    for target in targets:
        table.add_row(target.name, target.measured, VERDICTS[target.met])
    console.print(table)
