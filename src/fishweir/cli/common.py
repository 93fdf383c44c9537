"""Shared parts of the commands: the home option, error output, the progress bar."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fishweir.errors import FishweirError
from fishweir.pipeline.settings import DOCUMENTS_PER_BATCH, STATE_LIMIT

if TYPE_CHECKING:
    from rich.console import Console

    from fishweir.engine.runner import Progress as RunProgress
    from fishweir.engine.weir import Weir

Home = Annotated[Path, typer.Option("--home", help="The folder with the catalog, logs and results.")]
Guarded = Annotated[
    bool | None, typer.Option("--guard/--no-guard", help="Keep statements away from private networks and files.")
]
DEFAULT_HOME = Path("fishweir-home")
KERNELS = Path(__file__).parents[1] / "evaluate" / "kernels.txt"


@cache
def output() -> Console:
    """The console for formatted output."""
    return _console(stderr=False)


@cache
def errors() -> Console:
    """The console for errors and progress."""
    return _console(stderr=True)


def _console(stderr: bool) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=True, highlight=False, emoji=False)


class LateHandler(logging.Handler):
    """Shows log records; the rich handler is loaded with the first record."""

    def emit(self, record: logging.LogRecord) -> None:
        _rich_handler().emit(record)


@cache
def _rich_handler() -> logging.Handler:
    from rich.logging import RichHandler

    return RichHandler(console=errors(), show_time=False, show_path=False, markup=False)


@contextmanager
def opened(
    home: Path,
    must_exist: bool = False,
    runs: bool = False,
    documents_per_batch: int = DOCUMENTS_PER_BATCH,
    strategies: Sequence[str] = (),
    state_limit: int = STATE_LIMIT,
    defaults: str = "",
    guard: bool | None = None,
) -> Iterator[Weir]:
    """A weir that is closed at the end. If the command `runs` the job, the JVM is started before anything else."""
    with reporting_errors():
        if must_exist and not (home / "catalog.db").exists():
            raise FishweirError(f"there is no home at {home}; choose another with --home")
        requested = _parsed(strategies)
        if runs:
            from fishweir.pipeline.spark.jvm import start_jvm

            start_jvm()
            suggest_set_up()
        from fishweir.engine.weir import Weir

        options: dict[str, Any] = {"documents_per_batch": documents_per_batch, "state_limit": state_limit}
        with Weir(home, strategies=requested, defaults=defaults, guard=guard, **options) as weir:
            yield weir


def kernels_marker() -> Path:
    """The file in which `fishweir set-up` records that the kernels of this installation have been compiled."""
    from importlib.metadata import version

    from fishweir.java import cache_folder

    installed = f"{KERNELS}\n{version('numba')}\n".encode() + KERNELS.read_bytes()
    return cache_folder() / f"kernels-{hashlib.sha256(installed).hexdigest()[:8]}"


def suggest_set_up() -> None:
    """Explains why a first run takes longer, if `fishweir set-up` has not been run."""
    if not kernels_marker().exists():
        hint = "The kernels are not compiled yet, so this run takes longer. `fishweir set-up` compiles them once."
        errors().print(hint, style="yellow", markup=False)


@contextmanager
def reporting_errors() -> Iterator[None]:
    """Turns a Fishweir error into a message and ends the command."""
    try:
        yield
    except FishweirError as error:
        errors().print(f"error: {error}", style="red", markup=False)
        raise typer.Exit(1) from error


def _parsed(strategies: Sequence[str]) -> dict[str, str]:
    if not strategies:
        return {}
    from fishweir.papers.strategies import parse_options

    return parse_options(strategies)


class RunBar:
    """Shows the number of evaluated and arrived documents, the rate, and the number of queries."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.completed:,} of {task.total:,} documents"),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            console=errors(),
            transient=False,
        )
        self.task = self.bar.add_task("starting", total=0, rate="")
        self.first: int | None = None

    def __call__(self, progress: RunProgress) -> None:
        if self.first is None:
            self.first = progress.evaluated
        elapsed = self.bar.tasks[0].elapsed or 0.0
        rate = (progress.evaluated - self.first) / elapsed if elapsed else 0.0
        words = "idle" if progress.idle else f"{progress.queries:,} queries"
        self.bar.update(
            self.task,
            completed=progress.evaluated,
            total=progress.arrived,
            description=words,
            rate=f"{rate:,.0f}/s",
        )
