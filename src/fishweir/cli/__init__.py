"""The command line, one file per command. A command imports what it needs when it runs."""

from __future__ import annotations

import atexit
import gc
import logging

import typer

from fishweir.cli import administer, bench, check, demo, execute, look, opml, run
from fishweir.cli.common import LateHandler

# Modules make many objects that stay. Looking for garbage among them, while they are loaded and once more when the
# process ends, took a third of the processor time of a short command.
gc.set_threshold(50_000, 20, 20)
atexit.register(gc.freeze)

ABOUT = "Hundreds of thousands of standing queries over XML, feeds and tuples in one Spark job."

app = typer.Typer(no_args_is_help=True, add_completion=False, help=ABOUT)
app.command()(run.run)
app.command()(execute.execute)
app.command()(look.explain)
app.command()(look.status)
app.command()(look.results)
app.command()(check.check)
app.command()(check.repair)
app.command("list")(administer.list_)
app.command()(administer.pause)
app.command()(administer.resume)
app.command()(administer.replace)
app.command()(administer.act)
app.command()(administer.drop)
app.command()(administer.letters)
app.command()(administer.resend)
app.command()(administer.unsubscribe)
app.command()(demo.demo)
app.command()(bench.bench)
app.add_typer(opml.app, name="opml")


@app.callback()
def settings(
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Log more."),
) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(message)s", handlers=[LateHandler()]
    )
    logging.getLogger("py4j").setLevel(logging.ERROR)
