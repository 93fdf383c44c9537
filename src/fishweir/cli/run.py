"""`fishweir run SCRIPT`: registers a script's statements and runs the job."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fishweir.cli.common import DEFAULT_HOME, Guarded, Home, RunBar, errors, opened
from fishweir.errors import FishweirError, QueryError
from fishweir.pipeline.settings import DOCUMENTS_PER_BATCH, STATE_LIMIT

if TYPE_CHECKING:
    from fishweir.engine.weir import Weir


def _address(at: str | None) -> str | None:
    """Checks an address before anything is started."""
    if at is not None:
        from fishweir.delivery.unsubscribing import parse_address

        try:
            parse_address(at)
        except QueryError as error:
            raise typer.BadParameter(error.reason) from error
    return at


def run(
    script: Annotated[Path, typer.Argument(help="A file of statements in any language; - for standard input.")],
    home: Home = DEFAULT_HOME,
    until_idle: Annotated[bool, typer.Option("--until-idle", help="Stop when no work is left.")] = False,
    documents_per_batch: Annotated[
        int, typer.Option(help="The maximum number of documents per micro-batch.")
    ] = DOCUMENTS_PER_BATCH,
    strategy: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=NAME", help="Use a published algorithm, such as selections=sj-batch. Repeatable."),
    ] = None,
    state_limit: Annotated[
        int, typer.Option(metavar="MIB", min=1, help="Disk space in MiB that joins may use to wait for late items.")
    ] = STATE_LIMIT // 2**20,
    latency: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="The target latency; beyond it, the least important work is shed."),
    ] = None,
    defaults: Annotated[
        str, typer.Option(help="The schedule of statements without one, such as 'every 1 hour expire in 90 days'.")
    ] = "",
    unsubscribe_at: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Serve the unsubscribe links in mails here.", callback=_address),
    ] = None,
    guard: Guarded = None,
    results: Annotated[Path | None, typer.Option(help="Write all results of the home here, as JSON Lines.")] = None,
) -> None:
    """Register the statements of SCRIPT and run the job, until idle or until interrupted."""
    with opened(
        home,
        runs=True,
        documents_per_batch=documents_per_batch,
        strategies=strategy or (),
        state_limit=state_limit * 2**20,
        defaults=defaults,
        guard=guard,
    ) as weir:
        weir.execute(read_script(script))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: weir.stop())
        bar = RunBar()
        with bar.bar:
            weir.run(until_idle=until_idle, on_progress=bar, latency=latency, unsubscribe_at=unsubscribe_at)
        if results is not None:
            write_results(weir, results)
        summarise(weir)


def read_script(script: Path) -> str:
    if str(script) == "-":
        return sys.stdin.read()
    try:
        return script.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FishweirError(f"cannot read the script {script}: {error}") from error


def write_results(weir: Weir, path: Path) -> None:
    """Writes all results of the home, first under a temporary name."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        for result in weir.results():
            file.write(f"{result.to_json()}\n")
    temporary.replace(path)


def summarise(weir: Weir) -> None:
    from fishweir.engine.status import EngineStatus

    status = weir.status()
    assert isinstance(status, EngineStatus)
    errors().print(str(status), markup=False)
    aside = weir.set_aside() if status.set_aside else []
    for entry in aside[:20]:
        errors().print(f"  set aside {entry.document}: {entry.reason[:300]}", style="yellow", markup=False)
    if len(aside) > 20:
        errors().print(f"  and {len(aside) - 20:,} more", style="yellow")
