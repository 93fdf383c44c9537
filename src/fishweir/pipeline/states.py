"""State files: what the stages of a plan keep of some documents, one file, a section for each kind.

A section has the columns that its kind declares (the fields of its state). A file is written once, under a name given
by micro-batch and partition, mapped into memory by whoever probes it, and removed when no commit names it any more.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from fishweir.evaluate.arrays import read_arrays, write_arrays
from fishweir.evaluate.group import State
from fishweir.evaluate.plan.registry import KINDS
from fishweir.sealed import Stamp, stamp, writing

States = dict[str, State]
"""By kind."""

SUFFIX = ".state"
WRITTEN, SMALL = 4, 1 << 24
"""Files of which a process keeps what it wrote, if they are not too large."""

_written: dict[Path, tuple[Stamp, States]] = {}
_lock = threading.Lock()


def write_states(path: Path, states: Mapping[str, State]) -> str:
    """Their seal."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {f"{kind}:{name}": array for kind, state in states.items() for name, array in state.arrays().items()}
    seal = write_arrays(path, sorted(states), arrays)
    if path.stat().st_size <= SMALL:
        with _lock:
            _written[path] = stamp(path), dict(states)
            while len(_written) > WRITTEN:
                _written.pop(next(iter(_written)))
    return seal


def cached_states(path: Path) -> States:
    """Mapped into memory, once per process; what the process has just written itself is there as it was. Only a
    repeated micro-batch writes a file again."""
    now, written = stamp(path), _written.get(path)
    return written[1] if written is not None and written[0] == now else _states(path, now)


@lru_cache(maxsize=64)
def _states(path: Path, _stamp: Stamp) -> States:
    kinds, arrays = read_arrays(path)
    own: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, array in arrays.items():
        kind, _, column = name.partition(":")
        own[kind][column] = array
    return {kind: KINDS[kind].read_state(own[kind]) for kind in kinds}  # type: ignore[attr-defined]
