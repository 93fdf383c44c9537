"""Which files are on local disks: network files may hang, so each is written by a separate sender."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

LOCAL = frozenset({"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"})
MOUNTS = Path("/proc/self/mounts")

Disk = tuple[str, bool]
"""The mount point with a trailing slash, and whether it is local."""


def local_disks() -> Sequence[Disk]:
    """The mounted disks, the longest path first; empty if they cannot be determined."""
    try:
        rows = [line.split(" ") for line in MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()]
    except OSError:
        return ()
    found = {f"{_plain(row[1]).rstrip('/')}/": row[2] in LOCAL for row in rows}  # the last mount at a path counts
    return sorted(found.items(), key=lambda disk: -len(disk[0]))


def _plain(path: str) -> str:
    """A path with its octal escapes, for spaces and other special characters, decoded."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)


def is_ordinary(path: str, disks: Sequence[Disk]) -> bool:
    """Whether a path is an ordinary file on a local disk, or does not exist yet."""
    if not next((local for place, local in disks if path.startswith(place)), False):
        return False
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
