"""The runs that a home retains: which there are, when they are merged, when they are dropped.

The list is part of a micro-batch's commit, so state and results change together: a repeated micro-batch begins with
the list of the commit before it, and files that no commit names are removed. Runs of like size are merged, so there
are few and a document is rewritten a logarithmic number of times; a merge leaves out what is older than the longest
window and what no query reads any more. A run that the longest window has passed is dropped whole.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from fishweir.pipeline.joining import cached_run
from fishweir.sharing.joins.stage import JoinStage
from fishweir.sharing.joins.state import write_run

MERGE_FACTOR = 2
SMALL = 1_000


@dataclass(frozen=True)
class RunFile:
    """A run in the list: how many documents it has, the time of its newest, its bytes."""

    name: str
    documents: int
    newest: float
    bytes: int


def run_file(folder: Path, name: str) -> RunFile:
    run = cached_run(folder / name)
    return RunFile(name, len(run), run.newest, run.nbytes)


def retained(
    folder: Path, stage: JoinStage, batch: int, old: Sequence[RunFile], new: Sequence[str], dead: Collection[int] = ()
) -> list[RunFile]:
    """The list after a micro-batch; `dead` are dropped queries, whose windows count no more."""
    runs = [*old, *(run_file(folder, name) for name in new)]
    if stage.is_empty:
        return []
    reach = stage.reach(dead)
    now = max((run.newest for run in runs), default=0.0)
    kept = [run for run in runs if run.documents and now - run.newest <= reach]
    groups: list[list[RunFile]] = []
    for run in kept:
        groups.append([run])
        while len(groups) > 1 and _size(groups[-2]) <= max(SMALL, MERGE_FACTOR * _size(groups[-1])):
            last = groups.pop()
            groups[-1] += last
    return [group[0] if len(group) == 1 else _merged(folder, stage, batch, group, (now, reach)) for group in groups]


def _size(group: Sequence[RunFile]) -> int:
    return sum(run.documents for run in group)


def _merged(
    folder: Path, stage: JoinStage, batch: int, group: Sequence[RunFile], window: tuple[float, float]
) -> RunFile:
    merged = stage.merged([cached_run(folder / run.name) for run in group], *window)
    name = f"merged-{batch:09d}-{group[0].name.removesuffix('.run')}"[:120] + ".run"
    write_run(folder / name, merged)
    return run_file(folder, name)


def remove_others(folder: Path, runs: Sequence[RunFile]) -> None:
    """Removes files that the newest commit does not name."""
    names = {run.name for run in runs}
    for path in folder.glob("*.run"):
        if path.name not in names:
            path.unlink(missing_ok=True)
