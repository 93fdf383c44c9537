"""`fishweir bench NAME`: the experiments, with a table and a plot."""

from __future__ import annotations

import atexit
import gc
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from fishweir.cli.common import errors

EXPERIMENTS = {
    "delivery": "fishweir.papers.delivery.run",
    "lateness": "fishweir.papers.lateness.run",
    "mmqjp": "fishweir.papers.mmqjp.experiment.run",
    "niagaracq": "fishweir.papers.niagaracq.run",
    "paths": "fishweir.papers.paths.run",
    "reading": "fishweir.papers.paths.reading",
    "refresh": "fishweir.papers.refresh.run",
    "roses": "fishweir.papers.roses.experiment.run",
    "shedding": "fishweir.papers.shedding.run",
    "spatialjoin": "fishweir.papers.spatialjoin.experiment.run",
    "way": "fishweir.papers.way.run",
}

EXTRA = ("ahocorasick", "duckdb", "matplotlib", "polars", "shapely")
"""The modules that the extra `bench` installs."""


def bench(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(EXPERIMENTS)}.")],
    out: Annotated[Path, typer.Option(help="Folder for table and plot.")] = Path("bench-results"),
    quick: Annotated[bool, typer.Option("--quick", help="Use small sizes, as a functional check.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Run only this part of the experiment; repeatable.")] = None,
) -> None:
    """Run an experiment: check that all systems agree, then measure them in one run."""
    if name not in EXPERIMENTS:
        raise typer.BadParameter(f"there is no experiment {name}; choose one of: {', '.join(EXPERIMENTS)}")
    missing = [module for module in EXTRA if find_spec(module) is None]
    if missing:
        errors().print(
            f"error: experiments need {', '.join(missing)}: pip install 'fishweir[bench]'", style="red", markup=False
        )
        raise typer.Exit(1)
    out.mkdir(parents=True, exist_ok=True)
    atexit.unregister(gc.freeze)  # DuckDB would print a page of warnings about objects that are not freed
    experiment = import_module(EXPERIMENTS[name])
    if only:
        parts: tuple[str, ...] = getattr(experiment, "ONLY", ())
        for part in only:
            if part not in parts:
                raise typer.BadParameter(
                    f"{name} has no part {part}; its parts are: {', '.join(parts) or 'none'}", param_hint="--only"
                )
        experiment.main(out, quick, only)
    else:
        experiment.main(out, quick)
