"""State files: the state that the stages of a plan keep for some documents, one file with a section for each kind.

A section has the columns that its kind declares (the fields of its state). A file is written once, under a name given
by micro-batch and partition. It is mapped into memory for probing, and removed when no commit names it any more.
Its writer reports its outline, so that those who decide whether it is still needed do not read it.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fishweir.evaluate.arrays import sealed_arrays, write_arrays
from fishweir.evaluate.group import State
from fishweir.evaluate.outline import Outline
from fishweir.evaluate.plan.registry import KINDS
from fishweir.records import dataclass
from fishweir.sealed import Stamp, damaged, in_folder, length_of, stamp

States = dict[str, State]
"""States by kind."""

SUFFIX = ".state"
WRITTEN = 1 << 26
"""The size in bytes of the files whose content a process caches after writing them, up to a quarter of it each."""
READ = 64
"""The number of files that a process keeps open after reading them."""

Place = tuple[str, str]
"""Folder and name of a file."""
Known = tuple[Stamp, States, str]
"""The stamp of a file, its states and its seal."""

_written: dict[Place, Known] = {}
_read: dict[Place, Known] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class StateFile:
    """A file with its number of documents, its size in bytes and its seal, as commits name it."""

    name: str
    documents: int
    bytes: int
    seal: str = ""
    outlines: Mapping[str, Outline | None] | None = None
    """By kind, the outline of its state. Commits do not contain it: a job that starts reads the files."""

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "documents": self.documents, "bytes": self.bytes, "seal": self.seal}

    def with_outlines(self, states: Mapping[str, State]) -> StateFile:
        return replace(self, outlines={kind: getattr(state, "outline", None) for kind, state in states.items()})


SealedNames = tuple[tuple[str, str], ...]
"""Names of files, each with the seal of its file."""


def sealed_names(files: Iterable[StateFile]) -> SealedNames:
    return tuple((file.name, file.seal) for file in files)


def write_states(path: Path, states: Mapping[str, State]) -> StateFile:
    """Writes a state file."""
    arrays = {f"{kind}:{name}": array for kind, state in states.items() for name, array in state.arrays().items()}
    seal = in_folder(path, lambda: write_arrays(path, sorted(states), arrays))
    now, place = stamp(path), _place(path)
    with _lock:
        _written.pop(place, None)
        if now[0] <= WRITTEN // 4:
            _written[place] = now, dict(states), seal
        while sum(size for (size, _, _), _, _ in _written.values()) > WRITTEN:
            _written.pop(next(iter(_written)))
    documents = max(map(len, states.values()), default=0)
    return StateFile(place[1], documents, length_of(seal), seal).with_outlines(states)


def listed_states(folder: Path, name: str, seal: str) -> States:
    """The states of a file, verified by the seal in the commit. A file that has not changed is read once."""
    states, own = sealed_states(folder / name)
    if own != seal:
        raise damaged(folder / name, "is not the file that the commit names")
    return states


def cached_states(path: Path) -> States:
    """The states of a file, mapped into memory once per process. States that the process has just written are returned
    from memory. Only a repeated micro-batch writes a file again.
    """
    return sealed_states(path)[0]


def sealed_states(path: Path) -> tuple[States, str]:
    """The states of a file, and the seal that it contains."""
    now, place = stamp(path), _place(path)
    for known in (_written, _read):
        found = known.get(place)
        if found is not None and found[0] == now:
            return found[1:]
    states, seal = _states(path)
    with _lock:
        _read.pop(place, None)
        _read[place] = now, states, seal
        while len(_read) > READ:
            _read.pop(next(iter(_read)))
    return states, seal


def forget_states(folder: Path | None = None, but: Collection[str] = ()) -> None:
    """Frees the memory of files that nobody reads any more: all, or those in a folder except some. New states then use
    this memory, which is in the processor's cache and need not be cleared by the operating system."""
    place = None if folder is None else str(folder)
    with _lock:
        for known in (_written, _read):
            for gone in [(at, name) for at, name in known if place is None or (at == place and name not in but)]:
                del known[gone]


def _place(path: Path) -> Place:
    return os.path.split(path)  # type: ignore[return-value]


def _states(path: Path) -> tuple[States, str]:
    kinds, arrays, seal = sealed_arrays(path)
    own: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, array in arrays.items():
        kind, _, column = name.partition(":")
        own[kind][column] = array
    return {kind: KINDS[kind].read_state(own[kind]) for kind in kinds}, seal  # type: ignore[attr-defined]
