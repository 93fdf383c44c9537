"""The state files that a home retains: which exist, and when they are merged and dropped.

The list is part of a micro-batch's commit, so state and results change together: a repeated micro-batch begins with
the list of the commit before it, and files that no commit names are removed. Files of like size are merged, so there
are few and a document is rewritten a logarithmic number of times; a merge leaves out what no query needs any more. A
file of which nothing is needed is dropped whole. What is needed is for each stage to say (Stage.needed).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fishweir.evaluate.arrays import arrays_seal
from fishweir.evaluate.group import Needed, Stage
from fishweir.evaluate.watermarks import Watermarks
from fishweir.pipeline.states import SUFFIX, States, cached_states, write_states
from fishweir.sealed import damaged

MERGE_FACTOR = 2
SMALL = 1_000


@dataclass(frozen=True)
class StateFile:
    """A file in the list: how many documents it has, its bytes and its seal."""

    name: str
    documents: int
    bytes: int
    seal: str = ""


def state_file(folder: Path, name: str) -> StateFile:
    states = cached_states(folder / name)
    documents = max(map(len, states.values()), default=0)
    return StateFile(name, documents, (folder / name).stat().st_size, arrays_seal(folder / name))


def read_listed(folder: Path, file: StateFile) -> States:
    """The states of a file in the list, which must be the one that the commit means."""
    if arrays_seal(folder / file.name) != file.seal:
        raise damaged(folder / file.name, "is not the file that the commit names")
    return cached_states(folder / file.name)


class Retained:
    """The state files of a home, those of the last micro-batch included; `dropped` are queries whose windows count no
    more."""

    def __init__(
        self, folder: Path, stages: Mapping[str, Stage], files: Sequence[StateFile], dropped: Collection[int] = ()
    ) -> None:
        self.folder, self.stages, self.files, self.dropped = folder, stages, list(files), dropped
        self.states = [read_listed(folder, file) for file in files]
        self.bytes = sum(file.bytes for file in files)

    def needed(self, watermarks: Watermarks) -> dict[str, Needed]:
        """By kind, what documents may still join that come after these files."""
        needed: dict[str, Needed] = {}
        for kind, stage in self.stages.items():
            own = [some[kind] for some in self.states if kind in some]
            if own:
                needed[kind] = stage.needed(own, watermarks, self.dropped)
        return needed

    def size(self, needed: Mapping[str, Needed]) -> float:
        """About how many bytes are left when everything else is dropped."""
        return sum(
            file.bytes * max((needed[kind].share(state) for kind, state in some.items() if kind in needed), default=0.0)
            for file, some in zip(self.files, self.states, strict=True)
        )

    def merged(self, batch: int, needed: Mapping[str, Needed], whole: bool = False) -> list[StateFile]:
        """The list after a micro-batch; with `whole`, one file without anything that is not needed."""
        kept = [
            file
            for file, some in zip(self.files, self.states, strict=True)
            if any(kind in needed and needed[kind].share(state) > 0 for kind, state in some.items())
        ]
        groups: list[list[StateFile]] = []
        for file in kept:
            groups.append([file])
            while len(groups) > 1 and (whole or _size(groups[-2]) <= max(SMALL, MERGE_FACTOR * _size(groups[-1]))):
                last = groups.pop()
                groups[-1] += last
        return [
            group[0] if len(group) == 1 and not whole else self._merged(f"merged-{batch:09d}-{i:03d}", group, needed)
            for i, group in enumerate(groups)
        ]

    def _merged(self, name: str, group: Sequence[StateFile], needed: Mapping[str, Needed]) -> StateFile:
        states = [cached_states(self.folder / file.name) for file in group]
        merged = {
            kind: self.stages[kind].merged([some[kind] for some in states if kind in some], needed[kind])
            for kind in needed
            if any(kind in some for some in states)
        }
        write_states(self.folder / f"{name}{SUFFIX}", merged)
        return state_file(self.folder, f"{name}{SUFFIX}")


def _size(group: Sequence[StateFile]) -> int:
    return sum(file.documents for file in group)


def remove_others(folder: Path, files: Sequence[StateFile]) -> None:
    """Removes files that neither the newest commit names nor the one before, which `fishweir repair` may go back to."""
    names = {file.name for file in files}
    for name in os.listdir(folder) if folder.exists() else ():
        if name not in names and not name.startswith(".") and "." in name:
            (folder / name).unlink(missing_ok=True)
