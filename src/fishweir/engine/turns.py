"""How often Python's threads take turns while a job runs.

A thread that waits for a file or a socket gives up its turn. It gets it back when another thread gives way, which one
that computes does after 5 ms by default. A micro-batch makes dozens of such calls while callbacks compute. With shorter
turns the job does not wait for them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

TURN = 0.0005
"""Seconds."""

_lock = threading.Lock()
_running: list[float] = []
"""For each run the turn that there was before it."""


@contextmanager
def short_turns() -> Iterator[None]:
    """Several runs of a process may overlap: the last one to end restores what the first one found."""
    with _lock:
        _running.append(sys.getswitchinterval() if not _running else _running[0])
        sys.setswitchinterval(min(TURN, _running[0]))
    try:
        yield
    finally:
        with _lock:
            before = _running.pop()
            if not _running:
                sys.setswitchinterval(before)
