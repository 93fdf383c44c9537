"""Spark's checkpoint, which has to agree with the commits but is never what the job goes on from.

The commits say how far each stream has been evaluated. A checkpoint that is missing or behind them costs nothing: every
start of the query begins a new one where the commits end. One that is ahead of them has seen commits which are gone.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from fishweir.errors import HomeError
from fishweir.pipeline.offsets import Offsets


def begin_anew(checkpoint: Path, offsets: Offsets) -> None:
    """Clears the checkpoint, unless it has seen more finished than the commits have."""
    finished = finished_offsets(checkpoint)
    ahead = {stream: upto for stream, upto in finished.items() if upto > offsets.get(stream, 0)}
    if ahead:
        shown = ", ".join(
            f"stream {id}: entry {upto}, commits end at {offsets.get(id, 0)}" for id, upto in ahead.items()
        )
        raise HomeError(
            f"{checkpoint} is ahead of the commits ({shown}): the newest files in results/commits are missing. Restore "
            f"them from a backup, or delete {checkpoint} to evaluate these entries again"
        )
    if checkpoint.exists():
        shutil.rmtree(checkpoint)


def finished_offsets(checkpoint: Path) -> Offsets:
    """Where the last micro-batch ended that Spark saw finish; what cannot be read says nothing."""
    for batch in sorted(_batches(checkpoint / "commits"), reverse=True):
        try:
            line = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[2]
            return {str(stream): int(upto) for stream, upto in json.loads(line).items()}
        except (OSError, ValueError, IndexError, AttributeError):
            continue
    return {}


def _batches(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.glob("[0-9]*") if path.name.isdecimal()] if folder.exists() else []
