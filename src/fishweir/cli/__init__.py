"""The command line, one file per command. A command imports what it needs when it runs."""

from __future__ import annotations

import atexit
import gc
import logging
import sys
from collections.abc import Callable, Iterable

import typer

from fishweir.cli import administer, bench, check, demo, execute, look, opml, run, set_up
from fishweir.cli.common import LateHandler

ABOUT = "Hundreds of thousands of standing queries over XML, feeds and tuples in one Spark job."
COMMANDS: dict[str, Callable[..., None] | typer.Typer] = {
    "run": run.run,
    "execute": execute.execute,
    "explain": look.explain,
    "status": look.status,
    "results": look.results,
    "check": check.check,
    "repair": check.repair,
    "list": administer.list_,
    "pause": administer.pause,
    "resume": administer.resume,
    "replace": administer.replace,
    "act": administer.act,
    "drop": administer.drop,
    "letters": administer.letters,
    "resend": administer.resend,
    "unsubscribe": administer.unsubscribe,
    "demo": demo.demo,
    "bench": bench.bench,
    "opml": opml.app,
    "set-up": set_up.set_up,
}


def application(names: Iterable[str]) -> typer.Typer:
    """The command line with the given commands."""
    app = typer.Typer(no_args_is_help=True, add_completion=False, help=ABOUT)
    app.callback()(settings)
    for name in names:
        command = COMMANDS[name]
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def settings(
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Log more."),
) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(message)s", handlers=[LateHandler()]
    )
    logging.getLogger("py4j").setLevel(logging.ERROR)


def main() -> None:
    """Builds the options of the one command that is called: those of all commands take 30 ms.

    Modules create many permanent objects. Searching them for garbage, while they are loaded and again when the process
    ends, took a third of the processor time of a short command.
    """
    gc.set_threshold(200_000, 20, 20)
    atexit.register(gc.freeze)
    command = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")
    application([command] if command in COMMANDS else COMMANDS)(prog_name="fishweir")


app = application(COMMANDS)
