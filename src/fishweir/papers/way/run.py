"""Runs the end-to-end experiment: from publish to results on disk and to a callback, through the public calls.

The experiment has parts (parts.py), each with its own table and targets; `--only` runs some of them. Each of several
parts runs in a process of its own, so that the memory that one leaves behind does not affect the next. Each part is
written when it ends, so an interrupted run keeps the finished parts.

All files are removed at the end. A file system may be slow after many files were removed: ext4 without a journal does
not use their inodes again for five minutes and looks at each of them for every new file, which then takes 0.5 ms
instead of 0.02 ms.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from fishweir.papers.experiment.closing import show_targets, warn_if_busy
from fishweir.papers.experiment.figures import Outcome, about_run
from fishweir.papers.way.part import Measured, Part, Setting
from fishweir.papers.way.parts import PARTS

NAME = "way"
ONLY = tuple(part.name for part in PARTS)
"""The parts that can be run separately."""


def main(out: Path, quick: bool = False, only: Sequence[str] = ()) -> None:
    """Runs the whole experiment, or some parts of it. `quick` uses small sizes for a smoke test."""
    parts = [part for part in PARTS if not only or part.name in only]
    with TemporaryDirectory(prefix="fishweir-bench-", ignore_cleanup_errors=True) as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        if len(parts) == 1:
            return alone(parts[0].name, out, quick)
        for part in parts:
            process = get_context("spawn").Process(target=alone, args=(part.name, out, quick))
            process.start()
            process.join()
            if process.exitcode:
                raise SystemExit(process.exitcode)
    return None


def alone(name: str, out: Path, quick: bool) -> None:
    """Runs one part."""
    setting = Setting(quick)
    try:
        run(next(part for part in PARTS if part.name == name), out, setting, Console())
    finally:
        setting.close()


def run(part: Part, out: Path, setting: Setting, console: Console) -> Outcome:
    """Measures a part, writes it and shows it."""
    outcome = Outcome(about_run("generated, seeded", setting.quick))
    with console.status(part.title) as status:
        setting.say = lambda doing: status.update(f"{part.title}: {doing}")
        measured = part.measure(setting)
    outcome.figures, outcome.targets = measured.figures, measured.targets
    outcome.about |= {"load_after": os.getloadavg()[0], "notes": measured.notes}
    name = f"{NAME}-{part.name}"
    outcome.write(out, name)
    if part.draw:
        part.draw(measured.figures, out / f"{name}.png")
    show(part, measured, console)
    warn_if_busy(outcome.about, console)
    console.print(f"Written: {out / name}.*", markup=False)
    return outcome


def show(part: Part, measured: Measured, console: Console) -> None:
    if measured.figures:
        console.print(tabulated(part.title, [asdict(figure) for figure in measured.figures]))
    for note in measured.notes:
        console.print(note, markup=False)
    if measured.targets:
        show_targets(measured.targets, console)


def tabulated(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    """A table of figures. What is the same in all rows is in the caption, so that the columns fit into a terminal."""
    common = {name for name in rows[0] if len(rows) > 1 and len({row[name] for row in rows}) == 1}
    told = [name for name in rows[0] if name in common and rows[0][name] is not None]
    caption = ", ".join(f"{_spaced(name)}: {shown(rows[0][name])}" for name in told)
    table = Table(title=title, caption=caption or None)
    for name in rows[0]:
        if name not in common:
            is_text = isinstance(rows[0][name], str)
            header = _spaced(name) if is_text else name.replace("_", "\n")  # narrow, so that texts have room
            table.add_column(header, no_wrap=not is_text, justify="left" if is_text else "right")
    for row in rows:
        table.add_row(*(shown(value) for name, value in row.items() if name not in common))
    return table


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def shown(value: Any) -> str:
    """A number with a sensible number of digits."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
