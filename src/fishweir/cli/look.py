"""`fishweir explain`, `status` and `results`: read-only commands that do not start Spark."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fishweir.cli.common import DEFAULT_HOME, Home, opened

Query = Annotated[str | None, typer.Argument(help="The name of a query; all queries if omitted.")]


def explain(query: Query = None, home: Home = DEFAULT_HOME) -> None:
    """Show the group of a query, what it shares and which conditions are checked afterwards; or all groups."""
    with opened(home, must_exist=True) as weir:
        typer.echo(weir.explain(query))


def status(query: Query = None, home: Home = DEFAULT_HOME) -> None:
    """Show how often and when a query fired; or the state of the engine."""
    with opened(home, must_exist=True) as weir:
        typer.echo(str(weir.status(query)))


def results(query: Query = None, home: Home = DEFAULT_HOME) -> None:
    """Print results as JSON Lines."""
    with opened(home, must_exist=True) as weir:
        for result in weir.results(query):
            sys.stdout.write(f"{result.to_json()}\n")
