"""`fishweir execute`: registers statements; the job may be running in another process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fishweir.cli.common import DEFAULT_HOME, Guarded, Home, opened
from fishweir.cli.run import read_script


def execute(
    statements: Annotated[str | None, typer.Argument(help="Statements, as text.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="A script file; - for standard input.")] = None,
    home: Home = DEFAULT_HOME,
    guard: Guarded = None,
) -> None:
    """Register statements, all or nothing, and print the names of the queries."""
    if (statements is None) == (file is None):
        raise typer.BadParameter("pass either statements or --file")
    if statements is not None and len(statements.split()) == 1 and Path(statements).is_file():
        raise typer.BadParameter(f"{statements} is a file; to execute its statements, pass --file {statements}")
    with opened(home, guard=guard) as weir:
        text = statements if statements is not None else read_script(file or Path("-"))
        for name in weir.execute(text):
            typer.echo(name)
