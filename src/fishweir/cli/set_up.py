"""`fishweir set-up`: prepares what the first run would otherwise have to wait for.

A wheel cannot contain compiled kernels or Spark's archived classes: both depend on the machine and on where Python and
Java are installed. A file in the cache folder records which kernels have been compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from fishweir.cli.common import errors, kernels_marker, reporting_errors

if TYPE_CHECKING:
    from rich.progress import Progress


def set_up(
    spark: Annotated[
        bool, typer.Option(help="Archive Spark's classes, which takes 170 MB in the cache folder.")
    ] = True,
) -> None:
    """Compile the kernels and archive Spark's classes, so that no run waits for it. Downloads Java if necessary."""
    with reporting_errors(), _progress() as bar:
        _compile_kernels(bar)
        if spark:
            _archive_classes(bar)


@contextmanager
def _progress() -> Iterator[Progress]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors()) as bar:
        yield bar


def _compile_kernels(bar: Progress) -> None:
    from fishweir.evaluate.precompile import compile_all, recorded

    task = bar.add_task("kernels", total=len(recorded()))
    for kernels, _ in compile_all():
        bar.advance(task, kernels)
    marker = kernels_marker()
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()


def _archive_classes(bar: Progress) -> None:
    from fishweir.pipeline.spark import class_archive

    task = bar.add_task("Spark's classes", total=1)
    class_archive.main()
    bar.advance(task)
