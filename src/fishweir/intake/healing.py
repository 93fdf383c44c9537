"""Healing a log: lists what a process left behind that died while it appended, or sets it aside.

The list of segments is not synchronized with the disk, so the same applies after the machine has stopped: newest
segments may be on the disk without a line. What is whole becomes a part of the log. The newest segment may not have
been written completely; it was not acknowledged then. If others follow, it is damaged: its numbers are not used again.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
import uuid
from pathlib import Path

from fishweir.errors import HomeError
from fishweir.intake.durable import synchronize
from fishweir.intake.packs import SUFFIX, has_segments_behind, packed_from, read_packed
from fishweir.intake.segment_list import Listed, add_line, locked, newest_file, read_rows
from fishweir.intake.segments import Segments
from fishweir.sealed import damaged, seal_of, writing

logger = logging.getLogger("fishweir.home")

PATIENCE, PAUSE = 1.0, 0.005
"""The seconds that opening a log waits for new lines of a writer that holds the lock, and between two attempts."""


def heal(segments: Segments, list_file: int) -> None:
    """Called with the lock."""
    _list_found(segments, list_file)
    if not segments.is_complete:
        _check_complete(segments)
        segments.is_complete = True


def _check_complete(segments: Segments) -> None:
    """Raises an error if files follow behind a gap: their lines are missing, too, and the next numbers are in use. The
    first append of a process looks for them, since the folder of a log with large segments has many files."""
    if newest_file(segments.folder) > segments.head:
        gap = f"has no segment that begins with entry {segments.head + 1:,}, and lines of its list are missing"
        raise damaged(Path(segments.folder), gap)


def _list_found(segments: Segments, list_file: int) -> None:
    """Lists what has no line, or sets it aside."""
    segments.refresh()
    if os.fstat(list_file).st_size > segments.read_upto:
        os.ftruncate(list_file, segments.read_upto)  # a line was cut off
    synchronized = ""
    while (found := segments.unlisted()) is not None:
        path, start = found
        listed = _whole_packed(Path(path), start) if path.endswith(SUFFIX) else _whole_own(Path(path))
        if listed is None:
            _set_aside(segments, Path(path), start)
        else:
            if path != synchronized:  # its writer may have died before it did so; nobody writes to it now
                synchronize(path)
                synchronized = path
            first = segments.head + 1
            segments.add(first, listed, add_line(list_file, first, listed))


def heal_if_needed(segments: Segments) -> None:
    """As `heal`. Waits a moment for a writer that has the lock, which is what mostly happens; if that writer heals the
    log, as long as it takes. A log that may only be read is not healed."""
    head, ends = -1, 0.0
    while segments.unlisted() is not None:
        if segments.head > head:
            head, ends = segments.head, time.monotonic() + PATIENCE
        try:
            with locked(segments.folder, wait=False) as list_file:
                return heal(segments, list_file)
        except BlockingIOError:
            if time.monotonic() > ends:
                return None
            time.sleep(PAUSE)
            segments.refresh()
        except (OSError, HomeError):
            return None
    return None


def _whole_own(path: Path) -> Listed | None:
    """A segment with a file of its own, if it is whole."""
    try:
        return Listed(read_rows(path), seal_of(path))
    except HomeError as error:
        _must_be_about_content(error)
        return None


def _whole_packed(path: Path, start: int) -> Listed | None:
    """The segment at a position of a pack, if it is whole."""
    try:
        for found in packed_from(path, start):
            read_packed(path, start, found.seal)
            return Listed(found.rows, found.seal, int(path.stem), start)
    except HomeError as error:
        _must_be_about_content(error)
    return None


def _must_be_about_content(error: HomeError) -> None:
    """Raises an error that says nothing about the content, as when a file cannot be opened."""
    if isinstance(error.__cause__, OSError) and error.__cause__.errno is not None:
        raise error


def _set_aside(segments: Segments, path: Path, start: int) -> None:
    """Moves data that were not written completely out of the way."""
    if newest_file(segments.folder) > segments.head + 1 or (path.suffix == SUFFIX and has_segments_behind(path, start)):
        raise damaged(path, "is damaged, and lines of its list are missing")
    aside = path.with_suffix(f".{uuid.uuid4().hex[:8]}.incomplete")
    if start:
        with writing(aside, aside), open(path, "r+b") as file, open(aside, "wb") as target:
            file.seek(start)
            shutil.copyfileobj(file, target)
            target.flush()
            file.truncate(start)
            os.fsync(file.fileno())
    else:
        with writing(aside):
            path.rename(aside)
    shown = f"{path} was not written completely when the machine stopped"
    logger.warning("%s: it is set aside as %s, and the log continues after entry %d", shown, aside.name, segments.head)
