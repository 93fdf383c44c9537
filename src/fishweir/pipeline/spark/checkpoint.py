"""The checkpoint, which must agree with the commits but is never what the job resumes from.

The commits record how far each stream has been evaluated. The checkpoint belongs to Spark, with a note of Fishweir
beside its files. A checkpoint that is missing or behind the commits does no harm: every start of the query begins a new
one. A checkpoint that is ahead of the commits has seen commits that are gone.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from fishweir.errors import HomeError
from fishweir.pipeline.home import read_json, write_json
from fishweir.pipeline.offsets import Offsets

FINISHED = "finished.json"


def begin_anew(checkpoint: Path, offsets: Offsets) -> None:
    """Clears the checkpoint, unless it is ahead of the commits."""
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


def finish(checkpoint: Path, offsets: Offsets) -> None:
    """Notes the offsets of the job. Called when the job is idle or ends, not in each micro-batch."""
    if finished_offsets(checkpoint) != offsets:
        checkpoint.mkdir(parents=True, exist_ok=True)
        write_json(checkpoint / FINISHED, offsets)


def finished_offsets(checkpoint: Path) -> Offsets:
    """The offsets when the job was last idle or ended; empty if the note cannot be read."""
    try:
        return {str(stream): int(upto) for stream, upto in read_json(checkpoint / FINISHED, {}).items()}
    except HomeError:
        return {}
