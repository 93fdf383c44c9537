"""`fishweir check` and `fishweir repair`: verify a home and rebuild what can be rebuilt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from fishweir.cli.common import DEFAULT_HOME, Home, errors, reporting_errors

if TYPE_CHECKING:
    from fishweir.engine.check import OnProgress


def check(home: Home = DEFAULT_HOME) -> None:
    """Verify checksums, references, the chain of commits, and counts. The job may be running."""
    from fishweir.engine.check import check as verify

    with _bar("verifying") as progress:
        report = verify(home, progress)
    typer.echo(str(report))
    if not report.is_whole:
        raise typer.Exit(1)


def repair(
    home: Home = DEFAULT_HOME,
    discard_newest: Annotated[
        bool,
        typer.Option(help="Discard the newest micro-batch if it is damaged; the next run evaluates it again."),
    ] = False,
    accept_older_catalog: Annotated[
        bool,
        typer.Option(help="Continue with a catalog that lacks its newest changes, as after a power failure."),
    ] = False,
) -> None:
    """Rebuild damaged files where possible, and print what cannot be recovered. Nothing is deleted."""
    from fishweir.engine.repair import repair as rebuild

    with _bar("verifying") as progress:
        repaired = rebuild(home, discard_newest, progress, accept_older_catalog)
    typer.echo(str(repaired))
    if not repaired.left.is_whole:
        raise typer.Exit(1)


@contextmanager
def _bar(words: str) -> Iterator[OnProgress]:
    """A progress bar of verified bytes."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(words), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with reporting_errors(), Progress(*columns, console=errors()) as bar:
        task = bar.add_task(words, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
