"""Spark's checkpoint: it must agree with the commits, but the job never resumes from it.

The commits record how far each stream has been evaluated. The checkpoint belongs to Spark; Fishweir adds a file with
the offsets of the job. A checkpoint that is missing or behind the commits does no harm: every start of the query begins
a new one. If a checkpoint is ahead of the commits, commits have been lost.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from fishweir.errors import HomeError
from fishweir.pipeline.home import read_json, write_json
from fishweir.pipeline.offsets import Offsets

RECORDED = "finished.json"


def reset_checkpoint(checkpoint: Path, offsets: Offsets) -> None:
    """Clears the checkpoint, unless it is ahead of the commits."""
    recorded = recorded_offsets(checkpoint)
    ahead = {stream: upto for stream, upto in recorded.items() if upto > offsets.get(stream, 0)}
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


def record_offsets(checkpoint: Path, offsets: Offsets) -> None:
    """Records the offsets of the job. Called when the job is idle or ends, not in each micro-batch."""
    if recorded_offsets(checkpoint) != offsets:
        checkpoint.mkdir(parents=True, exist_ok=True)
        write_json(checkpoint / RECORDED, offsets)


def recorded_offsets(checkpoint: Path) -> Offsets:
    """The offsets when the job was last idle or ended; empty if they cannot be read."""
    try:
        return {str(stream): int(upto) for stream, upto in read_json(checkpoint / RECORDED, {}).items()}
    except HomeError:
        return {}
