"""The runs that a home retains: which there are, when they are merged, when they are dropped.

The list is part of a micro-batch's commit, so state and results change together: a repeated micro-batch begins with
the list of the commit before it, and files that no commit names are removed. Runs of like size are merged, so there
are few and a document is rewritten a logarithmic number of times; a merge leaves out what is older than the longest
window and what no query reads any more. A run that the longest window has passed is dropped whole. Where windows
count rows, the newest of each stream are kept whatever their time. The runs of annotation joins (`.window`) are in the
same list and go the same way.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from fishweir.evaluate.join.annotations.stage import AnnotationStage
from fishweir.evaluate.join.annotations.state import write_items
from fishweir.evaluate.join.stage import JoinStage
from fishweir.evaluate.join.state import Needed, write_run
from fishweir.pipeline.annotated import WINDOW, cached_items
from fishweir.pipeline.joining import cached_run

MERGE_FACTOR = 2
SMALL = 1_000


@dataclass(frozen=True)
class RunFile:
    """A run in the list: how many documents it has, the time of its newest, its bytes; how many rows of changing
    files came, changed or went in it."""

    name: str
    documents: int
    newest: float
    bytes: int
    versions: int = 0


def run_file(folder: Path, name: str) -> RunFile:
    if name.endswith(WINDOW):
        items = cached_items(folder / name)
        return RunFile(name, len(items), items.newest, items.nbytes)
    run = cached_run(folder / name)
    return RunFile(name, len(run), run.newest, run.nbytes, len(run.versions))


def retained(
    folder: Path,
    stage: JoinStage | AnnotationStage,
    batch: int,
    old: Sequence[RunFile],
    new: Sequence[str],
    dead: Collection[int] = (),
    clock: float = math.inf,
) -> list[RunFile]:
    """The list after a micro-batch; `dead` are dropped queries, whose windows count no more. Windows are measured from
    the newest document, or from the `clock` where older ones are known to come."""
    runs = [*old, *(run_file(folder, name) for name in new)]
    if stage.is_empty:
        return []
    now = min(clock, max((run.newest for run in runs), default=0.0))
    needed = None
    if isinstance(stage, JoinStage):
        there = [run for run in runs if run.documents or run.versions]
        kept, needed = _joinable(folder, stage, there, now, stage.reach(dead))
    else:
        kept = [run for run in runs if run.documents and now - run.newest <= stage.reach]
    groups: list[list[RunFile]] = []
    for run in kept:
        groups.append([run])
        while len(groups) > 1 and _size(groups[-2]) <= max(SMALL, MERGE_FACTOR * _size(groups[-1])):
            last = groups.pop()
            groups[-1] += last
    return [
        group[0]
        if len(group) == 1
        else _write_merged(folder, stage, f"merged-{batch:09d}-{i:03d}{_kind(group[0])}", group, now, needed)
        for i, group in enumerate(groups)
    ]


def _joinable(
    folder: Path, stage: JoinStage, runs: Sequence[RunFile], now: float, reach: float
) -> tuple[list[RunFile], Needed]:
    """The runs of which some document may still meet others, and which documents may."""
    if not stage.rows:
        return [run for run in runs if run.versions or now - run.newest <= reach], stage.needed(now, reach, [])
    needed = stage.needed(now, reach, [cached_run(folder / run.name) for run in runs])
    return [run for run in runs if run.versions or needed(cached_run(folder / run.name)).any()], needed


def _kind(run: RunFile) -> str:
    return Path(run.name).suffix


def _size(group: Sequence[RunFile]) -> int:
    return sum(run.documents for run in group)


def _write_merged(
    folder: Path,
    stage: JoinStage | AnnotationStage,
    name: str,
    group: Sequence[RunFile],
    now: float,
    needed: Needed | None,
) -> RunFile:
    if isinstance(stage, AnnotationStage):
        write_items(folder / name, stage.merged([cached_items(folder / run.name) for run in group], now))
    else:
        write_run(folder / name, stage.merged([cached_run(folder / run.name) for run in group], needed))
    return run_file(folder, name)


def remove_others(folder: Path, runs: Sequence[RunFile]) -> None:
    """Removes files that the newest commit does not name."""
    names = {run.name for run in runs}
    for path in folder.glob("[!.]*.*"):
        if path.name not in names:
            path.unlink(missing_ok=True)
