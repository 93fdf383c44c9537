"""The state files that a home retains: which exist, and when they are merged and dropped.

The list is part of a micro-batch's commit, so state and results change together: a repeated micro-batch begins with the
list of the previous commit, and files that no commit names are removed. A file without needed state is dropped as a
whole. If there are more files than the stages probe about as fast as one (Stage.states_at_once), those of similar size
are merged, so a document is rewritten a logarithmic number of times, and not at all if windows are shorter than a few
micro-batches. A merge drops what no query needs any more. Each stage determines which state is needed (Stage.needed).
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from fishweir.evaluate.group import Needed, Stage, State
from fishweir.evaluate.outline import Outline
from fishweir.evaluate.watermarks import Watermarks
from fishweir.pipeline.states import SUFFIX, StateFile, forget_states, listed_states, write_states

MERGE_FACTOR = 2
SMALL = 1_000


class Retained:
    """The state files of a home, including the last micro-batch's; `dropped` are queries whose windows no longer
    count. Files are only read if their outlines are not enough: if more than times decides, or if there are more bytes
    than the limit, since it then matters which share of them is needed.
    """

    def __init__(
        self,
        folder: Path,
        stages: Mapping[str, Stage],
        files: Sequence[StateFile],
        dropped: Collection[int] = (),
        limit: float = math.inf,
    ) -> None:
        self.folder, self.stages, self.dropped = folder, stages, dropped
        self.files = [self._outlined(file) for file in files]
        self.bytes = sum(file.bytes for file in files)
        without = {kind for file in self.files for kind, outline in _outlines(file) if outline is None}
        read = {
            kind for kind, stage in stages.items() if kind in without or not stage.takes_outlines or self.bytes > limit
        }
        self.states = [self._known(file, read) for file in self.files]
        """By kind, the state of each file, or its outline if that is enough."""
        self._shares: tuple[Mapping[str, Needed], list[float]] = {}, []

    def _outlined(self, file: StateFile) -> StateFile:
        return file if file.outlines is not None else file.with_outlines(self._read(file))

    def _known(self, file: StateFile, read: Collection[str]) -> Mapping[str, State | Outline]:
        known = {kind: outline for kind, outline in _outlines(file) if kind in self.stages and outline is not None}
        return {**known, **self._read(file)} if any(kind in read for kind, _ in _outlines(file)) else known

    def _read(self, file: StateFile) -> Mapping[str, State]:
        return listed_states(self.folder, file.name, file.seal)

    def needed(self, watermarks: Watermarks) -> dict[str, Needed]:
        """By kind, the state that documents arriving after these files may still join."""
        needed: dict[str, Needed] = {}
        for kind, stage in self.stages.items():
            own = [some[kind] for some in self.states if kind in some]
            if own:
                needed[kind] = stage.needed(own, watermarks, self.dropped)
        return needed

    def size(self, needed: Mapping[str, Needed]) -> float:
        """The approximate size in bytes after everything else is dropped."""
        return sum(file.bytes * share for file, share in zip(self.files, self.shares(needed), strict=True))

    def shares(self, needed: Mapping[str, Needed]) -> list[float]:
        """The share of each file that is needed."""
        if self._shares[0] is not needed:
            shares = [
                max((needed[kind].share(state) for kind, state in some.items() if kind in needed), default=0.0)
                for some in self.states
            ]
            self._shares = needed, shares
        return self._shares[1]

    def merged(self, batch: int, needed: Mapping[str, Needed], whole: bool = False) -> list[StateFile]:
        """The list after a micro-batch; with `whole`, one file that contains only needed state."""
        kept = [file for file, share in zip(self.files, self.shares(needed), strict=True) if share > 0]
        groups = [[file] for file in kept]
        if whole and kept:
            groups = [kept]
        elif len(kept) > self._at_once():
            groups = _similar(kept)
        return [
            group[0] if len(group) == 1 and not whole else self._merged(f"merged-{batch:09d}-{i:03d}", group, needed)
            for i, group in enumerate(groups)
        ]

    def _at_once(self) -> int:
        """The number of files that all stages probe about as fast as one."""
        kinds = {kind for some in self.states for kind in some}
        return min((stage.states_at_once for kind, stage in self.stages.items() if kind in kinds), default=1)

    def _merged(self, name: str, group: Sequence[StateFile], needed: Mapping[str, Needed]) -> StateFile:
        states = [self._read(file) for file in group]
        merged = {
            kind: self.stages[kind].merged([some[kind] for some in states if kind in some], needed[kind])
            for kind in needed
            if any(kind in some for some in states)
        }
        return write_states(self.folder / f"{name}{SUFFIX}", merged)


def _outlines(file: StateFile) -> Collection[tuple[str, Outline | None]]:
    return (file.outlines or {}).items()


def _similar(files: Sequence[StateFile]) -> list[list[StateFile]]:
    """Adjacent files of similar size in groups."""
    groups: list[list[StateFile]] = []
    for file in files:
        groups.append([file])
        while len(groups) > 1 and _size(groups[-2]) <= max(SMALL, MERGE_FACTOR * _size(groups[-1])):
            last = groups.pop()
            groups[-1] += last
    return groups


def _size(group: Sequence[StateFile]) -> int:
    return sum(file.documents for file in group)


def remove_others(folder: Path, files: Sequence[StateFile]) -> None:
    """Removes files that neither the newest commit nor the previous one names, to which `fishweir repair` may go
    back.
    """
    names = {file.name for file in files}
    forget_states(folder, but=names)
    try:
        found = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in found:
        if name not in names and not name.startswith(".") and "." in name:
            with suppress(FileNotFoundError):
                os.unlink(f"{folder}/{name}")
