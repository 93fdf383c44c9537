"""`fishweir opml import FILE` and `fishweir opml export [FILE]`: feed lists in the format of other feed readers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fishweir.cli.common import DEFAULT_HOME, Guarded, Home, opened
from fishweir.errors import FishweirError

app = typer.Typer(no_args_is_help=True, help="Import and export lists of feeds (OPML).")


@app.command("import")
def import_feeds(
    file: Annotated[Path, typer.Argument(help="An OPML file.")],
    home: Home = DEFAULT_HOME,
    guard: Guarded = None,
) -> None:
    """Register the feeds of FILE and print their names. Feeds that the home already has are skipped."""
    with opened(home, guard=guard) as weir:
        try:
            names = weir.import_opml(file.read_bytes())
        except OSError as error:
            raise FishweirError(f"cannot read {file}: {error.strerror}") from error
        for name in names:
            typer.echo(name)


@app.command("export")
def export_feeds(
    file: Annotated[Path | None, typer.Argument(help="The file to write; standard output if omitted.")] = None,
    home: Home = DEFAULT_HOME,
) -> None:
    """Write the feeds of the home as OPML, without passwords."""
    with opened(home, must_exist=True) as weir:
        text = weir.export_opml()
        if file is None:
            typer.echo(text)
        else:
            file.write_text(text, encoding="utf-8")
